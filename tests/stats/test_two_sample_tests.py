"""Two groups compared: the tests fire no more often than they say, and the effect has the right sign."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from scipy import stats

from recollect.stats import (
    OwnedValues,
    auc,
    binomial_p,
    kolmogorov_smirnov,
    mann_whitney,
    permutation,
    superuniformity_p,
)
from recollect.testing.refusals import refused


def test_mann_whitney_speaks_for_members_that_score_higher():
    rng = np.random.default_rng(0)
    high, low = rng.normal(1, 1, 60), rng.normal(0, 1, 80)
    assert mann_whitney(high, low).p < 1e-4
    assert mann_whitney(low, high).p > 0.99
    assert mann_whitney(low, high, alternative="less").p < 1e-4
    assert mann_whitney(high, low).effect == auc(high, low)


def test_mann_whitney_is_exact_for_few_values():
    members, others = [3.0, 5.0, 8.0], [1.0, 2.0, 4.0, 6.0]
    pooled = np.array(members + others)
    wins = [
        sum(pooled[i] > pooled[j] for i in chosen for j in set(range(7)) - set(chosen))
        for chosen in combinations(range(7), 3)
    ]
    assert mann_whitney(members, others).p == pytest.approx(np.mean([w >= wins[0] for w in wins]))


@pytest.mark.parametrize("test", [mann_whitney, kolmogorov_smirnov])
def test_tests_for_independent_values_refuse_users_with_several(test):
    with refused("several_values_per_user"):
        test(OwnedValues(np.arange(3.0), ["a", "a", "b"]), OwnedValues(np.arange(2.0), ["c", "c"]))
    with refused("several_values_per_user"):
        test(OwnedValues(np.arange(2.0), ["a", "b"]), OwnedValues(np.arange(2.0), ["b", "c"]))


def test_kolmogorov_smirnov_equals_the_largest_gap_of_the_two_curves():
    rng = np.random.default_rng(1)
    a, b = rng.integers(0, 12, 40).astype(float), rng.integers(3, 15, 30).astype(float)
    twin = max(abs(np.mean(a <= t) - np.mean(b <= t)) for t in range(15))
    found = kolmogorov_smirnov(a, b)
    assert found.effect.value == pytest.approx(twin)
    assert found.p == pytest.approx(stats.ks_2samp(a, b).pvalue)


def test_permutation_approaches_the_exact_p_value_of_all_dealings():
    members, others = np.array([4.0, 7.0, 9.0]), np.array([1.0, 2.0, 3.0, 8.0, 5.0])
    pooled = np.concatenate([members, others])
    means = [pooled[list(chosen)].mean() for chosen in combinations(range(8), 3)]
    exact = np.mean([m >= members.mean() - 1e-12 for m in means])
    found = permutation(members, others, rng=np.random.default_rng(0))
    assert found.p == pytest.approx(exact, abs=0.02)
    assert found.effect.value == pytest.approx(members.mean() - others.mean())


def test_permutation_of_ranks_approaches_mann_whitney():
    rng = np.random.default_rng(2)
    a, b = rng.normal(0.5, 1, 25), rng.normal(0, 1, 30)
    found = permutation(a, b, of="ranks", rng=rng)
    assert found.p == pytest.approx(mann_whitney(a, b).p, abs=0.02)
    assert found.effect == auc(a, b)


def test_alternatives_point_where_they_say():
    rng = np.random.default_rng(3)
    high, low = rng.normal(1, 1, 40), rng.normal(0, 1, 40)
    p = {way: permutation(high, low, alternative=way, rng=rng, draws=999).p for way in ("greater", "less", "two-sided")}
    assert p["greater"] < 0.01
    assert p["less"] > 0.99
    assert p["two-sided"] < 0.02


def test_a_two_sided_p_value_is_twice_the_smaller_one():
    high, low = np.arange(20.0) + 3, np.arange(20.0)
    one, both = (
        permutation(high, low, alternative=way, rng=np.random.default_rng(0)).p for way in ("greater", "two-sided")
    )
    assert 0.001 < one < 0.4
    assert both == pytest.approx(2 * one)


def test_a_permutation_test_never_says_zero():
    found = permutation(np.arange(100.0) + 1000, np.arange(100.0), rng=np.random.default_rng(0), draws=999)
    assert found.p == pytest.approx(1 / 1000)


def test_equal_values_give_no_evidence_and_no_interval():
    found = permutation([0.1] * 5, [0.1] * 7, rng=np.random.default_rng(0), draws=999)
    assert found.p == 1
    assert found.effect.interval is None


def test_users_on_both_sides_cannot_be_dealt_out():
    with refused("users_on_both_sides"):
        permutation(
            OwnedValues(np.arange(3.0), ["a", "b", "c"]),
            OwnedValues(np.arange(2.0), ["c", "d"]),
            rng=np.random.default_rng(0),
        )


def test_an_unknown_comparison_is_refused():
    with refused("unknown_choice"):
        permutation([1, 2], [3, 4], of="mean", rng=np.random.default_rng(0))  # type: ignore[arg-type]


@pytest.mark.parametrize("of", ["means", "ranks"])
def test_permutation_of_users_holds_when_records_of_a_user_are_alike(of):
    rng = np.random.default_rng(4)
    p = []
    for _ in range(300):
        sizes = rng.integers(1, 10, 24)
        users = np.repeat(np.arange(24), sizes)
        values = np.repeat(rng.normal(0, 1, 24), sizes) + rng.normal(0, 0.3, sizes.sum())
        member = users < 10
        found = permutation(
            OwnedValues(values[member], users[member]),
            OwnedValues(values[~member], users[~member]),
            rng=rng,
            of=of,
            draws=199,
        )
        p.append(found.p)
    assert superuniformity_p(p) > 0.001
    assert binomial_p(int(np.sum(np.array(p) <= 0.05)), len(p), 0.05) > 0.001


@pytest.mark.parametrize("test", [mann_whitney, kolmogorov_smirnov])
def test_rank_tests_fire_no_more_often_than_they_say(test):
    rng = np.random.default_rng(5)
    p = [test(rng.integers(0, 30, 25), rng.integers(0, 30, 40)).p for _ in range(500)]
    assert superuniformity_p(p) > 0.001


def test_the_distance_of_two_distributions_lies_in_its_interval():
    rng = np.random.default_rng(6)
    true = 2 * stats.norm.cdf(0.5) - 1  # of two normal distributions one standard deviation apart
    misses = sum(
        true not in kolmogorov_smirnov(rng.normal(1, 1, 100), rng.normal(0, 1, 100)).effect.interval for _ in range(300)
    )
    assert binomial_p(misses, 300, 0.05) > 0.001
