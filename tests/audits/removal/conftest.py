"""Records to compare."""

from __future__ import annotations

import numpy as np
import pytest

from recollect.audits.removal.neighbours import Neighbours
from recollect.corpora.record import Record


@pytest.fixture
def images():
    """Makes arrays of some labels around a centre."""

    def made(rng, count, *, shift=0.0, name="a", labels=2):
        return [
            Record(id=f"{name}{i:03d}", array=rng.normal(shift, 1, (3, 3)).astype(np.float32), label=i % labels)
            for i in range(count)
        ]

    return made


def _measure_pairs(ours, theirs, count, *, itself=False):
    """The nearest of all pairs, and how far they are on average."""
    table = np.linalg.norm(ours[:, None] - theirs[None], axis=2)
    if itself:
        np.fill_diagonal(table, np.inf)
    order = np.argsort(table, axis=1)[:, :count]
    return order, np.take_along_axis(table, order, axis=1).mean(axis=1)


@pytest.fixture(scope="session")
def all_pairs():
    """Finds the neighbours of two sets of points by all pairs."""

    def find(ours, theirs, count=3):
        near, distance = _measure_pairs(ours, theirs, count)
        among, usual = _measure_pairs(theirs, theirs, count, itself=True)
        return Neighbours(audited=near, controls=among, distances=(distance, usual))

    return find
