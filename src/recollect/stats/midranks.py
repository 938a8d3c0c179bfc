"""Ranks of values that may tie."""

from __future__ import annotations

import numpy as np

from recollect.stats.groups import Floats


def midranks(values: Floats) -> Floats:
    """The rank of each value along the last axis, from 1 for the smallest; tied values share the mean of theirs.

    >>> midranks(np.array([5.0, 1.0, 5.0, 2.0])).tolist()
    [3.5, 1.0, 3.5, 2.0]
    """
    order = np.argsort(values, axis=-1)
    ordered = np.take_along_axis(values, order, axis=-1)
    differs, end = ordered[..., 1:] != ordered[..., :-1], np.ones((*values.shape[:-1], 1), dtype=np.bool_)
    place = np.arange(values.shape[-1])
    first = np.where(np.concatenate([end, differs], axis=-1), place, 0)
    last = np.where(np.concatenate([differs, end], axis=-1), place, values.shape[-1])
    first, last = np.maximum.accumulate(first, axis=-1), np.minimum.accumulate(last[..., ::-1], axis=-1)[..., ::-1]
    ranks = np.empty(values.shape)
    np.put_along_axis(ranks, order, 1 + (first + last) / 2, axis=-1)
    return ranks
