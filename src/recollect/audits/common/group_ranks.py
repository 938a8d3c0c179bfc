"""Ranks of pieces within groups, such as of the records of each unit: they say which pieces a cut keeps."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from recollect.audits.common.amounts import Floats, Ints


def rank_within_groups(groups: tuple[Ints, ...], order: Floats | Ints, *, distinct: bool = False) -> Ints:
    """The rank of every piece within its group, from 0: which pieces a cut of the matching keeps.

    >>> rank_within_groups((np.array([0, 0, 1, 0]),), np.array([0.5, 0.1, 0.9, 0.3])).tolist()
    [2, 0, 0, 1]

    Args:
        groups: The group of each piece, by one or more numbers [pieces].
        order: What the pieces are ranked by, once or in several ways [..., pieces].
        distinct: Whether no two of these values are alike, as random ones are: then they are sorted three times as
            fast. Otherwise pieces that are alike keep their order.
    """
    if not order.size:
        return np.zeros(order.shape, dtype=np.int64)
    group = groups[-1]
    for inner in groups[-2::-1]:
        group = group * (1 + int(inner.max())) + inner
    kind: Literal["stable"] | None = None if distinct else "stable"
    if (width := _find_common_size(group)) is not None:
        rows = np.argsort(order.reshape(-1, width), axis=1, kind=kind)
        rank = np.empty_like(rows)
        rank[np.arange(len(rows))[:, None], rows] = np.arange(width)
        return rank.reshape(order.shape)
    # stable: what is in order stays in order within its group; small integers are sorted by radix
    small, sizes = _shrink(group), np.bincount(group)
    place = np.arange(len(group)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    rank = np.empty(order.shape, dtype=np.int64)
    for one, ranks in zip(order.reshape(-1, len(group)), rank.reshape(-1, len(group)), strict=True):
        sorting = np.argsort(one, kind=kind)
        ranks[sorting[np.argsort(small[sorting], kind="stable")]] = place
    return rank


def _find_common_size(group: Ints) -> int | None:
    """For a matching: how many pieces every group has, if all have as many, next to each other; else None."""
    width = int(np.searchsorted(group, group[0], side="right"))
    if len(group) % width:
        return None
    rows = group.reshape(-1, width)
    regular = (rows[:, :1] == rows).all() and (rows[1:, 0] > rows[:-1, 0]).all()
    return width if regular else None


def _shrink(group: Ints) -> NDArray[np.integer[Any]]:
    """The numbers of a matching in as few bytes as they need."""
    return group.astype(np.int16) if group.max(initial=0) < np.iinfo(np.int16).max else group
