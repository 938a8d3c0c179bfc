"""Means of bounded and of exponential values: intervals that cover as often as they claim, for few values too."""

from __future__ import annotations

import math
import tracemalloc

import numpy as np
import pytest
from scipy import stats

from recollect.stats import binomial_p, bounded_mean, clopper_pearson, exponential_mean
from recollect.testing.refusals import refused

BITS = math.log2(10**6)


def draw_null(rng, n):
    """Exposures of secrets that were never seen."""
    return np.minimum(BITS, -np.log2(rng.random(n)))


def draw_mixture(share):
    """Exposures of secrets of which a share is memorised as far as can be."""
    return lambda rng, n: np.where(rng.random(n) < share, BITS, draw_null(rng, n))


def draw_middle(rng, n):
    return np.clip(rng.normal(10, 3, n), 0, BITS)


EXPOSURES = {"none": draw_null, "some": draw_mixture(0.1), "most": draw_mixture(0.9), "middle": draw_middle}


@pytest.mark.parametrize("n", [5, 20])
@pytest.mark.parametrize("name", EXPOSURES)
def test_the_interval_of_a_bounded_mean_covers_as_often_as_it_claims(name, n):
    draw, rng = EXPOSURES[name], np.random.default_rng(n)
    truth = draw(np.random.default_rng(1), 10**6).mean()
    worlds = 120
    covered = sum(truth in bounded_mean(draw(rng, n), low=0.0, high=BITS).interval for _ in range(worlds))
    assert binomial_p(covered, worlds, 0.95, alternative="less") > 0.001


@pytest.mark.slow
@pytest.mark.parametrize("n", [5, 10, 20, 50])
@pytest.mark.parametrize("name", EXPOSURES)
def test_the_interval_of_a_bounded_mean_covers_in_many_worlds(name, n):
    draw, rng = EXPOSURES[name], np.random.default_rng(n)
    truth = draw(np.random.default_rng(1), 10**6).mean()
    covered = sum(truth in bounded_mean(draw(rng, n), low=0.0, high=BITS).interval for _ in range(1000))
    assert binomial_p(covered, 1000, 0.95, alternative="less") > 0.001


@pytest.mark.parametrize("hits", [0, 1, 7, 19, 20])
def test_of_zeros_and_ones_it_is_clopper_and_pearsons(hits):
    found = bounded_mean([1.0] * hits + [0.0] * (20 - hits), low=0.0, high=1.0).interval
    exact = clopper_pearson(hits, 20)
    assert (found.low, found.high) == pytest.approx((exact.low, exact.high), abs=0.01)


@pytest.mark.parametrize("values", [[0.0] * 5, [20.0] * 5, [0.0, 20.0, 20.0, 20.0, 20.0], [3.0] * 6])
def test_the_interval_never_leaves_the_possible_range_and_holds_the_mean(values):
    found = bounded_mean(values, low=0.0, high=20.0)
    assert 0 <= found.interval.low <= found.value <= found.interval.high <= 20


def test_many_values_take_bounded_memory_and_agree_with_student():
    values = np.random.default_rng(0).random(3000)
    found = bounded_mean(values, low=0.0, high=1.0).interval
    half = stats.t.ppf(0.975, 2999) * values.std(ddof=1) / np.sqrt(3000)
    assert found.high - found.low == pytest.approx(2 * half, rel=0.05)


def test_few_values_and_values_outside_the_range_are_refused():
    with refused("too_few_values"):
        bounded_mean([1.0] * 4, low=0.0, high=2.0)
    for values in ([1, 1, 1, 1, 3], [-1, 1, 1, 1, 1]):
        with refused("out_of_range"):
            bounded_mean(values, low=0.0, high=2.0)


@pytest.mark.parametrize("n", [2, 10, 50])
def test_the_interval_of_an_exponential_mean_is_exact(n):
    rng, worlds = np.random.default_rng(n), 2000
    covered = sum(1 / math.log(2) in exponential_mean(-np.log2(rng.random(n))).interval for _ in range(worlds))
    assert binomial_p(covered, worlds, 0.95, alternative="two-sided") > 0.001


@pytest.mark.parametrize("n", [2, 3, 5, 20, 50])
def test_the_interval_of_a_mean_exposure_never_leaves_the_possible_range_and_covers(n):
    rng, worlds = np.random.default_rng(n), 400
    found = [exponential_mean(draw_null(rng, n), high=BITS) for _ in range(worlds)]
    found += [exponential_mean(np.full(n, bits), high=BITS) for bits in (1e-9, 1.0, BITS)]
    assert all(0 <= each.interval.low <= each.value <= each.interval.high <= BITS for each in found)
    covered = sum(1 / math.log(2) in each.interval for each in found[:worlds])
    assert binomial_p(covered, worlds, 0.95, alternative="less") > 0.001


def test_a_mean_of_zeros_has_no_interval_and_says_why():
    assert "all 3 values are 0" in exponential_mean([0.0, 0.0, 0.0]).why_no_interval
    with refused("too_few_values"):
        exponential_mean([])


def test_memory_does_not_grow_with_the_number_of_draws():
    tracemalloc.start()
    bounded_mean(np.linspace(0, 1, 1000), low=0.0, high=1.0)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 110_000_000  # all weights of 20,000 draws take 160 MB
