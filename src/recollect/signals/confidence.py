"""Confidence: the probability that a classifier gives to the right label."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from recollect.models.access import Access
from recollect.models.model import Kind
from recollect.signals.aggregation import ANY_LOGPROB, average_tokens, get_logprobs, score_records
from recollect.signals.evidence import TARGET, Evidence
from recollect.signals.scores import Scores


@dataclass(frozen=True, kw_only=True)
class Confidence:
    """The probability of a record's label under a classifier.

    Song & Mittal 2021, "Systematic Evaluation of Privacy Risks of Machine Learning Models". It orders
    records as `loss` does; a user's mean differs.
    """

    name: ClassVar[str] = "confidence"
    paper: ClassVar[str] = "Song & Mittal 2021, Systematic Evaluation of Privacy Risks of Machine Learning Models"
    kinds: ClassVar[tuple[Kind, ...]] = ("classifier",)
    needs: ClassVar[Mapping[str, Access]] = {TARGET: ANY_LOGPROB}

    def score(self, evidence: Evidence, corpus: str) -> Scores:
        """The probability of each record's label."""
        return score_records(
            evidence,
            corpus,
            [TARGET],
            lambda found: average_tokens(found[0], np.exp(get_logprobs(found[0]).astype(np.float64))),
        )
