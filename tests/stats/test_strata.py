"""Rank tests within strata: one stratum is Mann–Whitney, labels within strata hold their rate, and shifts are found."""

import numpy as np
import pytest

from recollect.stats import mann_whitney
from recollect.stats.significance import superuniformity_p
from recollect.stats.strata import EXACT_UNITS, van_elteren
from recollect.testing.refusals import refused


@pytest.mark.parametrize("n", [6, 40, 300])
def test_one_stratum_is_mann_whitney(n):
    rng = np.random.default_rng(n)
    above, below = rng.normal(0.3, 1, n), rng.normal(0, 1, n)
    p = mann_whitney(above, below).p
    assert van_elteren([(above, below)], rng=rng).p == pytest.approx(p, abs=0.02)
    assert (2 * n > EXACT_UNITS) == (n == 300)


def test_strata_that_differ_do_not_matter_and_a_shift_within_them_does():
    rng = np.random.default_rng(1)
    worlds = {0.0: [], 1.0: []}
    for shift, found in worlds.items():
        for _ in range(60):
            places = rng.normal(0, 20, 8)
            strata = [(rng.normal(a + shift, 1, 2), rng.normal(a, 1, 5)) for a in places]
            found.append(van_elteren(strata, rng=rng, draws=499).p)
    assert superuniformity_p(worlds[0.0]) > 0.01
    assert np.mean(np.array(worlds[1.0]) <= 0.05) > 0.8


def test_strata_of_one_side_say_nothing():
    one, other = np.array([3.0, 4.0]), np.array([1.0, 2.0])
    test = van_elteren([(one, other), (one, np.zeros(0)), (np.zeros(0), other)], rng=np.random.default_rng(0))
    assert (test.strata, test.above, test.below) == (1, 2, 2)
    with refused("no_common_strata"):
        van_elteren([(one, np.zeros(0))], rng=np.random.default_rng(0))


@pytest.mark.parametrize("sizes", [(1, 9), (9, 1), (1, 1)])
def test_one_unit_of_a_side_has_the_p_value_of_all_places_it_could_take(sizes):
    values = np.random.default_rng(3).normal(size=sum(sizes))
    above, below = values[: sizes[0]], values[sizes[0] :]
    ranks = values.argsort().argsort()
    sums = [ranks[i] if sizes[0] == 1 else ranks.sum() - ranks[i] for i in range(len(values))]
    observed = ranks[: sizes[0]].sum()
    expected = np.mean([each >= observed for each in sums])
    assert van_elteren([(above, below)], rng=np.random.default_rng(0)).p == pytest.approx(expected, abs=0.02)
