"""Many labellings of the same values at once: ranks, conformal p-values and their corrections, one row per labelling.

What `stats` computes for one division of units into two sides, this computes for hundreds: for placebos.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from recollect.stats.groups import Floats

Bools = NDArray[np.bool_]
Ints = NDArray[np.int64]


def rank_conformally(values: Floats, tested: Bools, against: Bools) -> Floats:
    """For each labelling the conformal p-value of each tested unit, infinite for all who are not tested.

    >>> tested = np.array([[True, False, False], [False, True, False]])
    >>> rank_conformally(np.array([3.0, 2.0, 1.0]), tested, ~tested).round(3).tolist()
    [[0.333, inf, inf], [inf, 0.667, inf]]

    Args:
        values: Of each unit; NaN for those that are never tested nor compared with.
        tested: Who is tested [rows, units].
        against: Who they are compared with [rows, units].
    """
    order = np.argsort(-values, kind="stable")
    _, last = _find_ties(values[order])
    above = np.cumsum(against[:, order], axis=1)[:, last]
    p = np.empty(tested.shape)
    p[:, order] = (1 + above) / (1 + against.sum(axis=1, keepdims=True))
    return np.where(tested, p, np.inf)


def sum_ranks(values: Floats, above: Bools, below: Bools) -> Floats:
    """For each labelling van Elteren's rank sum of one stratum, less its mean, and its variance [2, rows].

    >>> above = np.array([[True, False, False]])
    >>> sum_ranks(np.array([3.0, 2.0, 1.0]), above, ~above).round(3).ravel().tolist()
    [0.25, 0.042]

    Args:
        values: Of each unit; NaN for those that are in no row.
        above: Who is on the one side [rows, units].
        below: Who is on the other.
    """
    order = np.argsort(values, kind="stable")
    first, last = _find_ties(values[order])
    inside = (above | below)[:, order]
    count = np.concatenate([np.zeros((len(inside), 1), dtype=np.int64), np.cumsum(inside, axis=1)], axis=1)
    ranks = (count[:, first] + 1 + count[:, last + 1]) / 2
    n, m = above.sum(axis=1), below.sum(axis=1)
    total = n + m
    centred = np.where(inside, ranks - (total[:, None] + 1) / 2, 0) / (total[:, None] + 1)
    both = (n > 0) & (m > 0)
    statistic = np.where(both, (centred * above[:, order]).sum(axis=1), 0)
    variance = n * m * np.square(centred).sum(axis=1) / np.maximum(1, total * (total - 1))
    return np.stack([statistic, np.where(both, variance, 0)])


def min_benjamini_hochberg(p: Floats, counts: Ints) -> Floats:
    """For each labelling the smallest p-value after Benjamini and Hochberg's correction; infinite without any.

    >>> min_benjamini_hochberg(np.array([[0.01, 0.5, np.inf]]), np.array([2])).tolist()
    [0.02]

    Args:
        p: P-values, infinite where nothing is tested [rows, units].
        counts: How many are tested in each row.
    """
    ordered = np.sort(p, axis=1)
    corrected = ordered * (np.maximum(counts, 1)[:, None] / np.arange(1, p.shape[1] + 1))
    return np.asarray(np.where(counts > 0, corrected.min(axis=1), np.inf))


def _find_ties(ordered: Floats) -> tuple[Ints, Ints]:
    """For all labellings at once: the first and the last place of values that are equal in ascending order."""
    new = np.append(True, ordered[1:] != ordered[:-1])
    starts = np.flatnonzero(new)
    group = np.cumsum(new) - 1
    ends = np.append(starts[1:] - 1, len(ordered) - 1)
    return starts[group], ends[group]
