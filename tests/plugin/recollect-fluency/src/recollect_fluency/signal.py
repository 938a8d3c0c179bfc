"""Top share: a model predicts what it was trained on more often."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from recollect.checks import check_at_least
from recollect.models.access import Access
from recollect.models.answers import Answers
from recollect.models.model_options import Kind
from recollect.signals.aggregation import ValueByRecord, average_tokens, score_records
from recollect.signals.evidence import TARGET, Evidence
from recollect.signals.scores import Scores


@dataclass(frozen=True, kw_only=True)
class TopShare:
    """The share of a record's tokens that are among the model's top k."""

    top_k: int = 1
    """A token counts as predicted if it is among the top k."""

    name: ClassVar[str] = "top-share"
    paper: ClassVar[str] = "an example"
    kinds: ClassVar[tuple[Kind, ...]] = ("causal", "masked", "seq2seq")

    def __post_init__(self) -> None:
        check_at_least(1, top_k=self.top_k)

    @property
    def needs(self) -> Mapping[str, Access]:
        """Ranked tokens; no probabilities."""
        return {TARGET: Access.top(self.top_k)}

    def score(self, evidence: Evidence, corpus: str) -> Scores:
        """The share of each record's tokens that the target predicts."""
        return score_records(evidence, corpus, [TARGET], lambda answers: self._measure(answers[0]))

    def _measure(self, answers: Answers) -> ValueByRecord:
        """The share by record; a rank of 0 says that the token is not among those shown."""
        predicted = (answers.rank >= 1) & (answers.rank <= self.top_k)
        return average_tokens(answers, predicted.astype(np.float64))
