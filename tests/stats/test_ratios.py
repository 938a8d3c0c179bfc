"""Ratios of totals: their intervals cover the truth for few users and unequal ones, and stay in the possible range."""

from __future__ import annotations

import numpy as np
import pytest

from recollect.errors import NotEnoughData
from recollect.stats import binomial_p
from recollect.stats.ratios import compute_ratio_interval
from recollect.testing.refusals import refused


@pytest.mark.parametrize("users", [2, 3, 4, 5, 20])
def test_interval_covers_the_true_ratio_of_few_users_as_often_as_it_claims(users):
    rng, runs = np.random.default_rng(users), 400
    amounts = np.full(users, 100.0)
    covered = sum(4.0 in compute_ratio_interval(rng.normal(4, 0.5, users) * amounts, amounts) for _ in range(runs))
    assert binomial_p(runs - covered, runs, 0.05) > 0.001, covered / runs


@pytest.mark.parametrize("users", [3, 5, 10, 20])
def test_interval_covers_the_true_share_where_users_have_unequal_amounts(users):
    rng, runs, given, misses = np.random.default_rng(users), 400, 0, 0
    for _ in range(runs):
        amounts = np.round(np.exp(rng.normal(6, 1, users))) + 5
        hits = rng.binomial(amounts.astype(int), rng.beta(8, 12, users))
        try:
            misses += 0.4 not in compute_ratio_interval(hits.astype(float), amounts, is_share=True)
            given += 1
        except NotEnoughData:
            continue
    assert given > runs / 2
    assert binomial_p(misses, given, 0.05) > 0.001, misses / given


def test_two_users_say_little_and_no_share_leaves_its_range():
    interval = compute_ratio_interval(np.array([40.0, 60.0]), np.array([100.0, 100.0]), is_share=True)
    assert 0 < interval.low < 0.1
    assert 0.9 < interval.high < 1


def test_a_user_who_decides_alone_is_refused():
    with refused("one_user_decides"):
        compute_ratio_interval(np.array([400.0, 6.0]), np.array([1000.0, 10.0]), is_share=True)
    with refused("one_user_decides"):
        compute_ratio_interval(np.array([3.0, 0.0, 0.0]), np.array([10.0, 10.0, 10.0]), is_share=True)


def test_users_who_do_not_differ_and_a_single_one_are_refused():
    with refused("constant_statistic"):
        compute_ratio_interval(np.zeros(3), np.ones(3), is_share=True)
    with refused("too_few_users"):
        compute_ratio_interval(np.ones(1), np.ones(1))
