"""The annex: which questions of EDPB Opinion 28/2024 on AI models the results speak to, and which they do not."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from recollect.report.questions import Light, light_of
from recollect.results.result import Result

OPINION = (
    "European Data Protection Board, Opinion 28/2024 on certain data protection aspects related to the processing of "
    "personal data in the context of AI models, adopted on 17 December 2024"
)
CAVEATS = (
    "These findings are evidence for an assessment. They are not a certificate, and no combination of them makes "
    "a model anonymous.",
    "The Opinion asks that, with all means reasonably likely to be used, the likelihood of extraction and of obtaining "
    "personal data from queries be insignificant for every person whose data trained the model. Tests show what "
    "the means that were tried have found; other means may find more.",
    "The Opinion leaves the judgement to the supervisory authority, case by case, and asks for more than tests: how "
    "the data were chosen and prepared, how the model was trained and limited, how it is governed and documented.",
)
NOTHING = "No audit of this run speaks to it."


@dataclass(frozen=True, kw_only=True)
class Matter:
    """A question of the Opinion."""

    about: str
    audits: tuple[str, ...] = ()
    """The audits whose findings are evidence."""
    remark: str = ""
    """How far they reach."""


@dataclass(frozen=True, kw_only=True)
class Evidence:
    """A question of the Opinion, and what was found."""

    matter: Matter
    answers: tuple[tuple[str, Light, str], ...]
    """Audit, light and verdict."""


MATTERS = (
    Matter(
        about="Likelihood of extraction: can personal data of those whose data trained the model be drawn out of it "
        "directly, also with some probability only?",
        audits=("exposure", "extraction", "leakage"),
        remark="Exposure measures made-up or known secrets; it stands for data of the same kind.",
    ),
    Matter(
        about="Likelihood of obtaining such data from queries, intentionally or not",
        audits=("leakage", "extraction"),
        remark="Leakage prompts the model with the contexts of its own training data.",
    ),
    Matter(
        about="Likelihood of inference: can it be inferred that a person’s data were used for training?",
        audits=("membership", "provenance"),
    ),
    Matter(
        about="Erasure: are data that had to be removed still in the model?",
        audits=("removal", "membership"),
        remark="Bears on the consequences of unlawful processing and on requests for erasure.",
    ),
    Matter(
        about="Attribute inference, model inversion and reconstruction of inputs other than text of a known format",
        remark="Recollect has no test of these.",
    ),
    Matter(
        about="Documentation of tests and of residual risk",
        remark="Settings, limits, counts, intervals and digests of all that was used are in this report and in "
        "results/*.json. How grave the remaining risk is, they do not say.",
    ),
)


def evidence_of(results: Mapping[str, Result]) -> list[Evidence]:
    """What the results say to each question of the Opinion."""
    return [
        Evidence(
            matter=matter,
            answers=tuple(
                (name, light_of(results[name]), results[name].verdict_text) for name in matter.audits if name in results
            ),
        )
        for matter in MATTERS
    ]
