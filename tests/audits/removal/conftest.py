"""Records to compare."""

from __future__ import annotations

import numpy as np
import pytest

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
