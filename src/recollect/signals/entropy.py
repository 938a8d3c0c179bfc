"""Entropy: a model hesitates less where it was trained, whatever the truth."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from recollect.models.access import Access
from recollect.models.answers import Answers
from recollect.models.model import Kind
from recollect.signals.evidence import TARGET, Evidence
from recollect.signals.per_record import DISTRIBUTION, Measured, mean_of, scores_by
from recollect.signals.scores import Scores


@dataclass(frozen=True, kw_only=True)
class Entropy:
    """Minus the mean entropy of the model's predictions.

    Song & Mittal 2021, "Systematic Evaluation of Privacy Risks of Machine Learning Models". It does not
    look at what was right: a model that is sure and wrong scores high.
    """

    name: ClassVar[str] = "entropy"
    paper: ClassVar[str] = "Song & Mittal 2021, Systematic Evaluation of Privacy Risks of Machine Learning Models"
    kinds: ClassVar[tuple[Kind, ...]] = ("causal", "masked", "seq2seq", "classifier")
    needs: ClassVar[Mapping[str, Access]] = {TARGET: DISTRIBUTION}

    def score(self, evidence: Evidence, corpus: str) -> Scores:
        """Minus the mean entropy over each record's symbols."""
        return scores_by(evidence, corpus, [TARGET], lambda answers: _certainty(answers[0]))


def _certainty(answers: Answers) -> Measured:
    """Minus the mean entropy, by record digest."""
    assert answers.entropy is not None  # noqa: S101 - the signal's `needs` say so
    return mean_of(answers, -answers.entropy)
