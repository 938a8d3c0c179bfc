"""LiRA: a record's likelihood ratio, with normal curves fitted to shadow models that saw it and that did not."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from recollect.models.access import Access
from recollect.models.model import Kind
from recollect.signals.evidence import SHADOW, TARGET, Evidence
from recollect.signals.fleets import Flags, believed, side_means
from recollect.signals.per_record import ANY_LOGPROB
from recollect.signals.scores import Floats, Scores

LEAST_DEVIATION = 0.01
"""In logits: no two trainings agree better than this, and no score is divided by less."""
ALL_BUT_CERTAIN = 1e-7
"""The least distance from certainty that single precision tells from none."""


@dataclass(frozen=True, kw_only=True)
class Lira:
    """The likelihood ratio of the target's confidence: as of models that saw the record against those that did not.

    Carlini et al. 2022, "Membership Inference Attacks From First Principles", the online attack. Confidence is
    log(p / (1 − p)) of the label or, for texts, of the geometric mean of the symbols' probabilities.
    """

    each: bool = False
    """Whether every record has deviations of its own; as in the paper, that pays with 64 shadows or more."""

    name: ClassVar[str] = "lira"
    paper: ClassVar[str] = "Carlini et al. 2022, Membership Inference Attacks From First Principles"
    kinds: ClassVar[tuple[Kind, ...]] = ("causal", "masked", "seq2seq", "classifier")
    needs: ClassVar[Mapping[str, Access]] = {TARGET: ANY_LOGPROB, SHADOW: ANY_LOGPROB}

    def score(self, evidence: Evidence, corpus: str) -> Scores:
        """The log-likelihood ratio of each record."""
        found = believed(evidence, corpus)
        target, shadows = confidence(found.scores.values), confidence(found.shadows)
        inside, outside = side_means(shadows, found.seen)
        with_it = deviation(shadows, inside, found.seen, each=self.each)
        without = deviation(shadows, outside, ~found.seen, each=self.each)
        return found.answer(_log_normal(target, inside, with_it) - _log_normal(target, outside, without))


def confidence(mean_logprob: Floats) -> Floats:
    """The logit of a probability, from its logarithm.

    >>> confidence(np.log([0.5, 0.9])).round(3).tolist()
    [0.0, 2.197]
    """
    doubt = np.maximum(-np.expm1(mean_logprob), ALL_BUT_CERTAIN)
    return np.asarray(mean_logprob - np.log(doubt))


def deviation(values: Floats, mean: Floats, counted: Flags, *, each: bool) -> Floats:
    """How much the shadows of one side differ about a record [records]: on average or, with `each`, about this one."""
    squares = np.square((values - mean[:, None]) * counted).sum(axis=1)
    freedom = np.maximum(counted.sum(axis=1) - 1, 0)
    pooled = squares.sum() / max(1, freedom.sum())
    own = np.where(freedom > 0, squares / np.maximum(freedom, 1), pooled) if each else np.full(len(values), pooled)
    return np.asarray(np.maximum(np.sqrt(own), LEAST_DEVIATION))


def _log_normal(values: Floats, mean: Floats, spread: Floats) -> Floats:
    """The logarithm of the normal density, but for a constant."""
    return np.asarray(-np.log(spread) - np.square((values - mean) / spread) / 2)
