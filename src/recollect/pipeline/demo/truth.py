"""What is true of the demonstration's models, so that everybody can see whether each verdict is right."""

from __future__ import annotations

from dataclasses import dataclass

from recollect.results.result import Outcome, Result


@dataclass(frozen=True, kw_only=True)
class Truth:
    """What is known of one model."""

    model: str
    known: str
    """What it learnt, in one sentence."""
    outcome: Outcome
    """What an audit ought to say of it."""

    def right(self, result: Result) -> bool:
        """Whether a verdict is right."""
        return result.outcome == self.outcome


TRUTHS = {
    "unprotected": {
        "provenance": Truth(
            model="language model",
            known="It was trained on 30 of these 60 people.",
            outcome="found",
        ),
        "exposure": Truth(
            model="language model",
            known="15 made-up secrets stood in its training data, 1, 4 or 16 times.",
            outcome="found",
        ),
        "leakage": Truth(
            model="language model",
            known="It was trained on these texts, again and again.",
            outcome="found",
        ),
        "membership": Truth(
            model="masked language model",
            known="It was trained on 20 of these 40 patients.",
            outcome="found",
        ),
        "removal": Truth(
            model="digits classifier",
            known="200 pictures were to be deleted; nobody did anything.",
            outcome="found",
        ),
    },
    "protected": {
        "exposure": Truth(
            model="private language model",
            known="It saw the same secrets, with so much noise that none can stand out (ε = 2 per person).",
            outcome="not found",
        ),
        "leakage": Truth(
            model="private language model",
            known="It saw the same texts, with so much noise that nobody's can stand out (ε = 2 per person).",
            outcome="not found",
        ),
        "removal": Truth(
            model="retrained classifier",
            known="It was trained anew without the 200 pictures.",
            outcome="not found",
        ),
    },
}
"""By plan, and by audit."""
