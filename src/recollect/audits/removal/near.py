"""Neighbours: the controls nearest to each audited record, by what they are, not by what a model says of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from recollect.audits.removal.rates import Near
from recollect.corpora.record import Record
from recollect.stats.owners import Floats

BLOCK = 512
"""Records whose distances are held at once."""
FEATURES = 2**12
"""Places that words are hashed to."""
_WORD = r"\S+"


def neighbours(audited: Sequence[Record], controls: Sequence[Record], count: int) -> Near:
    """The nearest controls of each audited record, and of each control, among those of the same label.

    Args:
        audited: The audited records.
        controls: The controls.
        count: How many neighbours each has.
    """
    ours, theirs = _features(audited, controls)
    labels = [[record.label for record in side] for side in (audited, controls)]
    codes = {label: i for i, label in enumerate(dict.fromkeys([*labels[1], *labels[0]]))}
    a, b = (np.array([codes[label] for label in side], dtype=np.int64) for side in labels)
    count = min(count, max(1, len(controls) - 1))
    near, distance = _nearest(ours, theirs, (a, b), count, itself=False)
    among, usual = _nearest(theirs, theirs, (b, b), count, itself=True)
    return Near(audited=near, controls=among, distances=(distance, usual))


def _nearest(
    ours: Floats, theirs: Floats, labels: tuple[NDArray[np.int64], NDArray[np.int64]], count: int, *, itself: bool
) -> tuple[NDArray[np.int64], Floats]:
    """The places of the nearest [ours, count], and how far they are on average; a label too rare has no limit."""
    found, far = np.empty((len(ours), count), dtype=np.int64), np.empty(len(ours))
    for label in np.unique(labels[0]):
        mine, same = np.flatnonzero(labels[0] == label), np.flatnonzero(labels[1] == label)
        # where too few have the label, others stand in, infinitely far away
        among = np.concatenate([same, np.flatnonzero(labels[1] != label)[:count]])
        for places in np.split(mine, range(BLOCK, len(mine), BLOCK)):
            table = _distances(ours[places], theirs[among])
            table[:, len(same) :] = np.inf
            if itself:
                table[places[:, None] == among[None]] = np.nan  # sorted last
            order = smallest(table, count)
            found[places] = among[order]
            far[places] = np.take_along_axis(table, order, axis=1).mean(axis=1)
    return found, far


def smallest(table: Floats, count: int) -> NDArray[np.int64]:
    """The places of the smallest in each row, by size and then by place: equals are taken alike in any block."""
    found = np.argpartition(table, count - 1, axis=1)[:, :count]
    values = np.take_along_axis(table, found, axis=1)
    found = np.take_along_axis(found, np.lexsort((found, values), axis=1), axis=1)
    # where more equal the last one than there is room for, the whole row is sorted
    tied = (table <= values.max(axis=1, keepdims=True)).sum(axis=1) != count
    found[tied] = np.argsort(table[tied], axis=1, kind="stable")[:, :count]
    return found


def _distances(ours: Floats, theirs: Floats) -> Floats:
    """How far each of ours is from each of theirs [ours, theirs]."""
    squares = np.square(ours).sum(axis=1)[:, None] + np.square(theirs).sum(axis=1)[None] - 2 * ours @ theirs.T
    found: Floats = np.sqrt(np.maximum(squares, 0))
    return found


def _features(audited: Sequence[Record], controls: Sequence[Record]) -> tuple[Floats, Floats]:
    """The values of arrays; the words of texts, hashed, each text of length one."""
    if controls[0].array is not None:
        both = [
            np.stack([np.ravel(np.asarray(r.array, dtype=np.float64)) for r in side]) for side in (audited, controls)
        ]
        return both[0], both[1]
    from sklearn.feature_extraction.text import HashingVectorizer

    words: Any = HashingVectorizer(n_features=FEATURES, token_pattern=_WORD, alternate_sign=False, norm="l2")
    ours, theirs = (words.transform([f"{r.source or ''} {r.predicted}" for r in side]) for side in (audited, controls))
    return ours.toarray(), theirs.toarray()
