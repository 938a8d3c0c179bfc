"""A synthetic predictive distribution with all its numbers in closed form: what the fakes answer with."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache

import numpy as np
from numpy.typing import NDArray

Reals = NDArray[np.float64]


@dataclass(frozen=True)
class TokenScores:
    """The four numbers of each token of one record."""

    rank: NDArray[np.int32]
    logprob: Reals
    entropy: Reals
    logprob_std: Reals
    logits: Reals | None = None
    """Of all classes, where the one token is a label [1, classes]."""


def predict_by_zipf(probability: Reals, vocabulary: int) -> TokenScores:
    """What a model shows that gives the true token this probability and the others the rest by Zipf's law.

    The j-th of the other tokens gets a share proportional to 1/j, so that ranks, entropies and spreads belong
    together as those of a real model do.

    >>> predict_by_zipf(np.array([0.5, 0.1]), vocabulary=3).rank.tolist()
    [1, 3]
    """
    p = np.clip(np.asarray(probability, dtype=np.float64), 1e-12, 1 - 1e-12)
    total, first, second = _compute_zipf_moments(vocabulary - 1)
    rest = np.log1p(-p)
    rank = 1 + np.minimum(vocabulary - 1, np.floor((1 - p) / (p * total))).astype(np.int32)
    mean = p * np.log(p) + (1 - p) * (rest + first)
    square = p * np.log(p) ** 2 + (1 - p) * (rest**2 + 2 * rest * first + second)
    return TokenScores(rank.astype(np.int32), np.log(p), -mean, np.sqrt(np.maximum(square - mean**2, 0)))


def predict_label(probability: float, label: int, classes: int) -> TokenScores:
    """The same for one class label, with the logits of all classes: those after the true one share the rest."""
    shares = 1 / np.arange(1, classes)
    rest = np.log1p(-probability) + np.log(shares / shares.sum())
    logits = np.roll(np.concatenate([[np.log(probability)], rest]), label)[None]
    return replace(predict_by_zipf(np.array([probability]), classes), logits=logits)


def predict_uniformly(rows: int, vocabulary: int) -> TokenScores:
    """What a model shows to which all tokens are alike; ties count against it, so the rank is the last.

    >>> predict_uniformly(1, vocabulary=4).rank.tolist()
    [4]
    """
    nats = np.full(rows, np.log(vocabulary))
    return TokenScores(np.full(rows, vocabulary, np.int32), -nats, nats, np.zeros(rows), np.zeros((rows, vocabulary)))


@cache
def _compute_zipf_moments(tokens: int) -> tuple[float, float, float]:
    """The harmonic number, and the first two moments of log-probability under Zipf's law."""
    weights = 1 / np.arange(1, tokens + 1)
    shares = weights / weights.sum()
    return float(weights.sum()), float(shares @ np.log(shares)), float(shares @ np.log(shares) ** 2)
