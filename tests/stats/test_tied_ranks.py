"""The rank test where values tie, against dealing the values out in every way."""

from itertools import combinations

import numpy as np
import pytest
from scipy import stats

from recollect.stats import binomial_p
from recollect.stats.tied_ranks import mann_whitney_p, rank_sum_p
from recollect.stats.two_sample_tests import mann_whitney


def deal_out(ours, theirs):
    """The slow twin: the share of all ways to deal out the values in which the rank sum is as high, and as low."""
    ranks = stats.rankdata([*ours, *theirs])
    sums = np.array([ranks[list(chosen)].sum() for chosen in combinations(range(len(ranks)), len(ours))])
    observed = ranks[: len(ours)].sum()
    return np.mean(sums >= observed - 1e-9), np.mean(sums <= observed + 1e-9)


@pytest.mark.parametrize("seed", range(20))
def test_tied_values_are_counted_as_if_dealt_out_in_every_way(seed):
    rng = np.random.default_rng(seed)
    ours, theirs = (rng.integers(0, 3, size).astype(float) for size in rng.integers(1, 7, 2))
    ours[0] = theirs[0]
    above, below = deal_out(ours, theirs)
    assert rank_sum_p(ours, theirs, "greater") == pytest.approx(above)
    assert rank_sum_p(ours, theirs, "less") == pytest.approx(below)
    assert rank_sum_p(ours, theirs, "two-sided") == pytest.approx(min(1, 2 * min(above, below)))


@pytest.mark.parametrize(("members", "others"), [(5, 22), (40, 400), (400, 40)])
def test_nearly_constant_scores_are_significant_no_more_often_than_stated(members, others):
    """All but one or two scores are the same: the normal approximation fired in 18 % of such worlds at 2.5 %."""
    rng, worlds, fired = np.random.default_rng(0), 200, 0
    for _ in range(worlds):
        values = rng.permutation(np.r_[np.ones(1 + rng.integers(2)), np.zeros(members + others)][: members + others])
        fired += rank_sum_p(values[:members], values[members:], "greater") < 0.025
    assert binomial_p(fired, worlds, 0.025) > 0.001


def test_without_ties_it_is_the_usual_test():
    rng = np.random.default_rng(1)
    ours, theirs = rng.normal(0.4, 1, 30), rng.normal(0, 1, 40)
    assert mann_whitney(ours, theirs).p == stats.mannwhitneyu(ours, theirs, alternative="greater").pvalue


@pytest.mark.parametrize("alternative", ["greater", "less", "two-sided"])
@pytest.mark.parametrize(("ours", "theirs"), [(3, 40), (9, 9), (20, 99), (60, 30)])
def test_the_normal_approximation_is_that_of_scipy_to_the_last_bit(ours, theirs, alternative):
    rng = np.random.default_rng(ours)
    for digits in (3, 15):
        one, other = (np.round(rng.normal(shift, 1, n), digits) for shift, n in ((0.3, ours), (0, theirs)))
        other[:2] = one[:2] if digits == 3 and min(ours, theirs) > 9 else other[:2]  # a few ties
        assert rank_sum_p(one, other, alternative) == stats.mannwhitneyu(one, other, alternative=alternative).pvalue


@pytest.mark.parametrize("alternative", ["greater", "less", "two-sided"])
@pytest.mark.parametrize(("ours", "theirs"), [(1, 1), (1, 20), (8, 8), (9, 30), (60, 100)])
def test_mann_whitney_is_that_of_scipy_however_many_values_tie(ours, theirs, alternative):
    rng = np.random.default_rng(theirs)
    for values in (2, 5, 10**9):
        one, other = (rng.integers(0, values, n).astype(float) for n in (ours, theirs))
        one[0], other[0] = 0, 1
        assert mann_whitney_p(one, other, alternative) == stats.mannwhitneyu(one, other, alternative=alternative).pvalue
