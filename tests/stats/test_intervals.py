"""Proportions and means with intervals that count users."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from recollect.stats import OwnedValues, binomial_p, clopper_pearson, mean, proportion, weighted_sum
from recollect.stats.groups import make_group
from recollect.stats.intervals import Estimate, Interval, effective_size
from recollect.testing.refusals import refused


@given(n=st.integers(1, 60), share=st.floats(0, 1), confidence=st.sampled_from([0.5, 0.9, 0.95, 0.99]))
@settings(deadline=None, max_examples=60)
def test_clopper_pearson_equals_scipys_exact_interval(n, share, confidence):
    hits = round(share * n)
    ours = clopper_pearson(hits, n, confidence=confidence)
    twin = stats.binomtest(hits, n).proportion_ci(confidence, method="exact")
    assert (ours.low, ours.high) == pytest.approx((twin.low, twin.high), abs=1e-9)


@pytest.mark.parametrize("n", [1, 2, 7, 30])
@pytest.mark.parametrize("rate", [0.0, 0.02, 0.3, 0.5, 0.9, 1.0])
def test_clopper_pearson_covers_as_often_as_it_claims_whatever_the_rate(n, rate):
    weights = stats.binom.pmf(np.arange(n + 1), n, rate)
    covering = [rate in clopper_pearson(hits, n) for hits in range(n + 1)]
    assert weights[covering].sum() >= 0.95


def test_all_hits_and_no_hits_are_mirror_images():
    none, every = proportion([0] * 10), proportion([1] * 10)
    assert none.interval.low == 0
    assert every.interval.high == 1
    assert none.interval.high == pytest.approx(1 - every.interval.low)
    assert 0 < none.interval.high < 1


def test_confidence_out_of_range_is_refused():
    with refused("out_of_range"):
        clopper_pearson(1, 2, confidence=95)


def test_a_user_who_repeats_itself_counts_once():
    once = proportion([1, 0, 1, 1, 0, 0, 1, 0])
    repeated = proportion(OwnedValues(np.repeat([1, 0, 1, 1, 0, 0, 1, 0], 50), np.repeat(np.arange(8), 50)))
    assert repeated.value == once.value
    assert repeated.n == {"records": 400, "users": 8}
    # As wide as eight records, up to Student's factor.
    assert repeated.interval.high - repeated.interval.low >= once.interval.high - once.interval.low


def test_effective_size_lies_between_one_record_per_user_and_all():
    rng = np.random.default_rng(0)
    alike = make_group(OwnedValues(np.repeat(rng.random(40) < 0.5, 10), np.repeat(np.arange(40), 10)))
    independent = make_group(OwnedValues(rng.random(4000) < 0.5, np.repeat(np.arange(400), 10)))
    assert 35 < effective_size(alike, alike.values > 0) < 41
    assert 3000 < effective_size(independent, independent.values > 0) <= 4000


def test_when_all_records_agree_each_user_counts_once():
    estimate = proportion(OwnedValues(np.ones(500), np.repeat(np.arange(5), 100)))
    assert estimate.interval == clopper_pearson(5, 5)


def test_mean_with_one_record_per_user_is_students():
    values = np.random.default_rng(0).normal(3, 2, 12)
    twin = stats.ttest_1samp(values, 0).confidence_interval(0.95)
    ours = mean(values)
    assert ours.value == pytest.approx(values.mean())
    assert (ours.interval.low, ours.interval.high) == pytest.approx((twin.low, twin.high))


def test_mean_by_user_does_not_shrink_when_records_are_copied():
    values = np.random.default_rng(1).normal(0, 1, 10)
    copied = mean(OwnedValues(np.repeat(values, 100), np.repeat(np.arange(10), 100)))
    once = mean(values)
    assert (copied.interval.low, copied.interval.high) == pytest.approx((once.interval.low, once.interval.high))


def test_a_constant_mean_has_no_interval_and_says_why():
    estimate = mean([2.5] * 9)
    assert (estimate.value, estimate.interval) == (2.5, None)
    assert "same value" in estimate.why_no_interval


def test_a_difference_has_the_sign_of_first_minus_second():
    high, low = proportion([1] * 90 + [0] * 10), proportion([1] * 20 + [0] * 80)
    fall = weighted_sum([(1, high), (-1, low)], n={"first": 100, "second": 100})
    rise = weighted_sum([(1, low), (-1, high)], n={"first": 100, "second": 100})
    assert fall.value == pytest.approx(0.7)
    assert fall.interval.low > 0.5
    assert (rise.interval.low, rise.interval.high) == pytest.approx((-fall.interval.high, -fall.interval.low))


def test_a_sum_with_a_part_that_has_no_interval_has_none_either():
    lone = Estimate(value=1.0, interval=None, n={}, method="maximum", why_no_interval="a maximum")
    summed = weighted_sum([(1, proportion([1, 0])), (1, lone)], n={})
    assert (summed.value, summed.interval, summed.why_no_interval) == (1.5, None, "a maximum")


def test_squares_of_unequal_limits_add_up_on_their_own_side():
    part = Estimate(value=0.5, interval=Interval(0.4, 0.9, 0.95), n={}, method="m")
    summed = weighted_sum([(1, part), (-1, part)], n={})
    assert (summed.interval.low, summed.interval.high) == pytest.approx((-np.hypot(0.1, 0.4), np.hypot(0.4, 0.1)))


@pytest.mark.parametrize("correlation", [0.0, 0.5, 0.95])
@pytest.mark.parametrize("rate", [0.05, 0.5])
def test_proportion_by_user_covers_the_true_rate_as_often_as_it_claims(correlation, rate):
    rng = np.random.default_rng(5)
    runs, misses = 1500, 0
    users = np.repeat(np.arange(40), 8)
    for _ in range(runs):
        own, shared = rng.random(320), np.repeat(rng.random(40), 8)
        hits = np.where(rng.random(320) < correlation, shared, own) < rate
        misses += rate not in proportion(OwnedValues(hits, users)).interval
    assert binomial_p(misses, runs, 0.05) > 0.001, misses / runs


@pytest.mark.parametrize("users", [3, 10, 40])
def test_mean_by_user_covers_the_true_mean_as_often_as_it_claims(users):
    rng = np.random.default_rng(6)
    runs, misses = 1000, 0
    owners = np.repeat(np.arange(users), 5)
    for _ in range(runs):
        values = np.repeat(rng.normal(0, 1, users), 5) + rng.normal(0, 1, 5 * users)
        misses += 0 not in mean(OwnedValues(values, owners)).interval
    assert binomial_p(misses, runs, 0.05) > 0.001, misses / runs
