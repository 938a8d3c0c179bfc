"""KS as published: the ratio of distances between class probabilities."""

from __future__ import annotations

import numpy as np
import pytest

from recollect.audits.removal.ks import compute_ks_rho, measure_ks_distance
from recollect.testing.refusals import refused


def naive_distance(one, other):
    """The slow twin: the largest distance of the two step functions, over every value."""
    a, b = (np.exp(z) / np.exp(z).sum(axis=1, keepdims=True) for z in (one, other))
    return max(abs((a <= level).mean() - (b <= level).mean()) for level in [*a.ravel(), *b.ravel()])


def test_the_ratio_is_that_of_the_distances_of_all_class_probabilities():
    rng = np.random.default_rng(0)
    target, calibration, query = rng.normal(size=(3, 20, 4)) * np.array([1.0, 3.0, 2.0])[:, None, None]
    assert measure_ks_distance(target, query) == pytest.approx(naive_distance(target, query))
    assert compute_ks_rho(target, calibration, query) == pytest.approx(
        naive_distance(target, query) / naive_distance(calibration, query)
    )
    with refused("identical_models"):
        compute_ks_rho(target, query, query)
