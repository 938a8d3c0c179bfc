"""Min-K%++: how far each token's log-probability is above the model's own expectation."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from recollect.checks import check_between
from recollect.models.access import Access
from recollect.models.answers import Answers, Floats
from recollect.models.model import Kind
from recollect.signals.aggregation import DISTRIBUTION, average_lowest_tokens, get_logprobs, score_records
from recollect.signals.evidence import TARGET, Evidence
from recollect.signals.scores import Scores


@dataclass(frozen=True, kw_only=True)
class MinKPlusPlus:
    """The mean standardised log-probability of a record's lowest tokens (Min-K%++).

    Zhang et al. 2024, "Min-K%++: Improved Baseline for Detecting Pre-Training Data from Large Language Models",
    (log p − μ) / σ, where μ and σ are mean and deviation of log-probability under the prediction itself.
    """

    fraction: float = 0.2
    """The share of tokens that count, between 0 and 1; at least one token does."""

    name: ClassVar[str] = "min-k-plus-plus"
    paper: ClassVar[str] = "Zhang et al. 2024, Min-K%++"
    kinds: ClassVar[tuple[Kind, ...]] = ("causal", "masked", "seq2seq")
    needs: ClassVar[Mapping[str, Access]] = {TARGET: DISTRIBUTION}

    def __post_init__(self) -> None:
        check_between(0, 1, fraction=self.fraction)

    def score(self, evidence: Evidence, corpus: str) -> Scores:
        """The mean over each record's lowest tokens."""
        return score_records(
            evidence,
            corpus,
            [TARGET],
            lambda found: average_lowest_tokens(found[0], standardise_logprobs(found[0]), fraction=self.fraction),
        )


def standardise_logprobs(answers: Answers) -> Floats:
    """Min-K%++ of each token: its log-probability in deviations above its expectation.

    0 where all tokens are equally likely.
    """
    assert answers.entropy is not None and answers.logprob_std is not None  # noqa: S101, PT018 - the signal's `needs` say so
    above = get_logprobs(answers).astype(np.float64) + answers.entropy
    flat = answers.logprob_std <= 0
    return np.asarray(np.where(flat, 0.0, above / np.where(flat, 1.0, answers.logprob_std)))
