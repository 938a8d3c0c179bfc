"""Exposure: what is claimed of its intervals, p-values and fitted curve holds."""

import math

import numpy as np
import pytest
from scipy import stats as scipy_stats

from recollect.stats import superuniformity_p
from recollect.stats.exposure import exposure, fit_skew_normal, rank_p, sampled_exposure
from recollect.stats.significance import binomial_p
from recollect.testing.refusals import refused


def test_exposure_is_the_bits_that_the_rank_takes_off_the_space():
    assert exposure(282, 10**9) == pytest.approx(21.76, abs=0.01)
    with refused("out_of_range"):
        exposure(11, 10)
    with refused("out_of_range"):
        exposure(0, 10)


def test_a_secret_that_was_never_planted_has_on_average_1_44_bits():
    rng = np.random.default_rng(0)
    space = 10**9
    found = [exposure(int(rank), space) for rank in rng.integers(1, space + 1, 20_000)]
    assert np.mean(found) == pytest.approx(1 / math.log(2), abs=0.04)


@pytest.mark.parametrize("share", [1e-9, 0.001, 0.02, 0.3, 1.0])
@pytest.mark.parametrize("draws", [20, 500])
def test_the_sampled_interval_covers_the_true_exposure_as_often_as_it_claims(share, draws):
    rng = np.random.default_rng(1)
    space = 10**9
    rank = max(1, round(share * space))
    missed = 0
    for _ in range(1000):
        found = sampled_exposure(rank, rng.integers(1, space + 1, draws), space)
        missed += exposure(rank, space) not in found.interval
        assert found.interval.low <= found.value <= found.interval.high
    assert binomial_p(missed, 1000, 0.05) > 0.001


def test_no_draw_as_likely_gives_a_lower_bound_and_never_more_than_the_space():
    found = sampled_exposure(1.0, np.full(1000, 2.0), 10**9)
    assert found.interval.high == pytest.approx(math.log2(10**9))
    assert 8 < found.interval.low < found.value < 10
    assert sampled_exposure(1.0, np.full(1000, 2.0), 100).value == pytest.approx(math.log2(100))
    with refused("too_few_draws"):
        sampled_exposure(1.0, [], 10)


def test_ties_count_against_the_finding():
    assert sampled_exposure(2.0, np.full(1000, 2.0), 10**9).value == 0.0


def test_p_values_of_secrets_that_were_never_planted_are_uniform():
    rng = np.random.default_rng(2)
    found = [rank_p(rng.normal(), rng.normal(size=199)) for _ in range(2000)]
    assert superuniformity_p(found) > 0.001
    assert scipy_stats.kstest(found, "uniform").pvalue > 0.001


def test_the_fitted_curve_is_right_where_draws_are_skew_normal():
    rng = np.random.default_rng(3)
    true = scipy_stats.skewnorm(3.0, 40.0, 8.0)
    fit = fit_skew_normal(true.rvs(8000, random_state=rng), rng=rng, refits=30)
    assert fit.goodness_of_fit_p > 0.01
    for cost in (42.0, 39.0, 36.0):
        found = fit.exposure(cost)
        assert found.value == pytest.approx(-math.log2(true.cdf(cost)), rel=0.15, abs=0.1)


def test_a_curve_that_does_not_fit_is_reported():
    rng = np.random.default_rng(4)
    two_humps = np.concatenate([rng.normal(20, 1, 1000), rng.normal(40, 1, 1000)])
    assert fit_skew_normal(two_humps, rng=rng, refits=3).goodness_of_fit_p < 1e-6


def test_fits_are_accepted_as_often_as_they_should_be():
    rng = np.random.default_rng(5)
    p = [fit_skew_normal(rng.normal(size=400), rng=rng, refits=0).goodness_of_fit_p for _ in range(80)]
    assert binomial_p(int((np.array(p) < 0.05).sum()), len(p), 0.05) > 0.001


def test_deep_tails_are_numbers_and_agree_with_a_normal_curve():
    rng = np.random.default_rng(6)
    fit = fit_skew_normal(rng.normal(size=1000), rng=rng, refits=3)
    plain = type(fit)(shape=0.0, location=0.0, scale=1.0, goodness_of_fit_p=1.0, refits=((0.0, 0.0, 1.0),), draws=1000)
    for cost in (-3.0, -6.0, -20.0, -100.0):
        expected = -scipy_stats.norm.logcdf(cost) / math.log(2)
        assert plain.exposure(cost).value == pytest.approx(expected, rel=1e-4)
    with refused("too_few_draws"):
        fit_skew_normal([1.0] * 20, rng=rng)
