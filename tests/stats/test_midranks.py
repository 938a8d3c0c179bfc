"""Midranks, against SciPy's."""

import numpy as np
import pytest
from scipy import stats

from recollect.stats.midranks import midranks


@pytest.mark.parametrize("shape", [(0,), (1,), (9,), (40, 1), (5, 30)])
@pytest.mark.parametrize("ties", [2, 1000])
def test_midranks_are_those_of_scipy(shape, ties):
    values = np.random.default_rng(ties).integers(0, ties, shape).astype(np.float64)
    values[values == 0] = -np.inf
    assert midranks(values).tolist() == stats.rankdata(values, axis=-1).tolist()
