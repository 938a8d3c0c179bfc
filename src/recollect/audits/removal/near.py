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
    found, far = [], []
    squares = np.square(theirs).sum(axis=1)
    for first in range(0, len(ours), BLOCK):
        some = ours[first : first + BLOCK]
        table = np.square(some).sum(axis=1)[:, None] + squares[None] - 2 * some @ theirs.T
        table[labels[0][first : first + BLOCK, None] != labels[1][None]] = np.inf
        if itself:
            table[np.arange(len(some)), first + np.arange(len(some))] = np.inf
        # by distance and then by place, so that equals are taken alike in any block
        order = np.argsort(table, axis=1, kind="stable")[:, :count]
        found.append(order)
        far.append(np.sqrt(np.maximum(np.take_along_axis(table, order, axis=1), 0)).mean(axis=1))
    return np.concatenate(found), np.concatenate(far)


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
