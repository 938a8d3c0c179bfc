"""LiRA: a record's likelihood ratio, from normal distributions fitted to shadow models trained on it and not."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from recollect.models.access import Access
from recollect.models.model import Kind
from recollect.signals.aggregation import ANY_LOGPROB
from recollect.signals.evidence import SHADOW, TARGET, Evidence
from recollect.signals.scores import Floats, Scores
from recollect.signals.shadow_scores import BoolArray, compute_in_out_means, score_with_shadows

MIN_STD = 0.01
"""In logits: no two trainings agree better than this, and no score is divided by less."""
MIN_COMPLEMENT = 1e-7
"""The smallest distance from probability 1 that single precision resolves."""


@dataclass(frozen=True, kw_only=True)
class Lira:
    """The likelihood ratio of the target's confidence: models trained on the record against those that were not.

    Carlini et al. 2022, "Membership Inference Attacks From First Principles", the online attack. Confidence is
    log(p / (1 − p)) of the label or, for texts, of the geometric mean of the tokens' probabilities.
    """

    per_record_variance: bool = False
    """Whether every record has deviations of its own; as in the paper, that pays with 64 shadows or more."""
    even: bool = False
    """Whether as many shadows count for every record, none trained on it; audits do so where shadows are uneven."""

    name: ClassVar[str] = "lira"
    paper: ClassVar[str] = "Carlini et al. 2022, Membership Inference Attacks From First Principles"
    kinds: ClassVar[tuple[Kind, ...]] = ("causal", "masked", "seq2seq", "classifier")
    needs: ClassVar[Mapping[str, Access]] = {TARGET: ANY_LOGPROB, SHADOW: ANY_LOGPROB}

    def score(self, evidence: Evidence, corpus: str) -> Scores:
        """The log-likelihood ratio of each record."""
        found = score_with_shadows(evidence, corpus, even=self.even)
        found.require_both_sides(self.name)
        target, shadows = compute_logit(found.scores.values), compute_logit(found.shadows)
        inside, outside = compute_in_out_means(shadows, found.trained_on)
        own = self.per_record_variance and not self.even
        std_in = estimate_std(shadows, inside, found.trained_on, per_record=own)
        std_out = estimate_std(shadows, outside, ~found.trained_on, per_record=own)
        inside, outside = found.compute_in_out_means(shadows)
        return found.select_scores(
            _compute_log_density(target, inside, std_in) - _compute_log_density(target, outside, std_out)
        )


def compute_logit(mean_logprob: Floats) -> Floats:
    """The logit of a probability, from its logarithm: the confidence that LiRA compares.

    >>> compute_logit(np.log([0.5, 0.9])).round(3).tolist()
    [0.0, 2.197]
    """
    doubt = np.maximum(-np.expm1(mean_logprob), MIN_COMPLEMENT)
    return np.asarray(mean_logprob - np.log(doubt))


def estimate_std(values: Floats, mean: Floats, counted: BoolArray, *, per_record: bool) -> Floats:
    """LiRA's standard deviation of the shadows of one side about a record [records].

    On average or, with `per_record_variance`, about this one.
    """
    squares = np.square((values - mean[:, None]) * counted).sum(axis=1)
    degrees_of_freedom = np.maximum(counted.sum(axis=1) - 1, 0)
    pooled = squares.sum() / max(1, degrees_of_freedom.sum())
    own = (
        np.where(degrees_of_freedom > 0, squares / np.maximum(degrees_of_freedom, 1), pooled)
        if per_record
        else np.full(len(values), pooled)
    )
    return np.asarray(np.maximum(np.sqrt(own), MIN_STD))


def _compute_log_density(values: Floats, mean: Floats, std: Floats) -> Floats:
    """The logarithm of the normal density that LiRA fits, but for a constant."""
    return np.asarray(-np.log(std) - np.square((values - mean) / std) / 2)
