"""Lowest tokens (Min-K%): training data has few unlikely tokens."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from recollect.checks import check_between
from recollect.models.access import Access
from recollect.models.model import Kind
from recollect.signals.aggregation import ANY_LOGPROB, average_lowest_tokens, get_logprobs, score_records
from recollect.signals.evidence import TARGET, Evidence
from recollect.signals.scores import Scores


@dataclass(frozen=True, kw_only=True)
class LowestTokens:
    """The mean log-probability of a record's least likely tokens (Min-K%).

    Shi et al. 2024, "Detecting Pretraining Data from Large Language Models".
    """

    fraction: float = 0.2
    """The share of tokens that count, between 0 and 1; at least one token does."""

    name: ClassVar[str] = "lowest-tokens"
    paper: ClassVar[str] = "Shi et al. 2024, Detecting Pretraining Data from Large Language Models"
    kinds: ClassVar[tuple[Kind, ...]] = ("causal", "masked", "seq2seq")
    needs: ClassVar[Mapping[str, Access]] = {TARGET: ANY_LOGPROB}

    def __post_init__(self) -> None:
        check_between(0, 1, fraction=self.fraction)

    def score(self, evidence: Evidence, corpus: str) -> Scores:
        """The mean over each record's least likely tokens."""
        return score_records(
            evidence,
            corpus,
            [TARGET],
            lambda found: average_lowest_tokens(found[0], get_logprobs(found[0]), fraction=self.fraction),
        )
