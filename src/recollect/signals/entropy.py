"""Entropy: a model's predictive entropy is lower on its training data, whatever the true token."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from recollect.models.access import Access
from recollect.models.answers import Answers
from recollect.models.model import Kind
from recollect.signals.aggregation import DISTRIBUTION, ValueByRecord, average_tokens, score_records
from recollect.signals.evidence import TARGET, Evidence
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
        """Minus the mean entropy over each record's tokens."""
        return score_records(evidence, corpus, [TARGET], lambda answers: _compute_negative_entropy(answers[0]))


def _compute_negative_entropy(answers: Answers) -> ValueByRecord:
    """Minus the mean entropy, by record digest."""
    assert answers.entropy is not None  # noqa: S101 - the signal's `needs` say so
    return average_tokens(answers, -answers.entropy)
