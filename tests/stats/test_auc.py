"""AUC: the right number, the right way round, and intervals that count users."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import norm, t

from recollect.stats import Interval, OwnedValues, ValuesLike, auc, binomial_p, bootstrap, placements
from recollect.stats.groups import Group, make_groups
from recollect.testing.refusals import refused

scores = st.lists(st.integers(-5, 5).map(float), min_size=2, max_size=15)


class WeightedAuc:
    """The AUC as a function of how often each user was drawn, by one sort and running sums."""

    def __init__(self, a: Group, b: Group) -> None:
        order = np.argsort(a.values, kind="stable")
        ordered = a.values[order]
        self._members, self._others = a.users[order], b.users
        self._below = np.searchsorted(ordered, b.values, side="left")
        self._not_above = np.searchsorted(ordered, b.values, side="right")

    def __call__(self, drawn: np.ndarray) -> np.ndarray:
        running = np.zeros((len(drawn), len(self._members) + 1))
        np.cumsum(drawn[:, self._members], axis=1, out=running[:, 1:])
        total, weights = running[:, -1], drawn[:, self._others]
        lost = (running[:, self._below] + running[:, self._not_above]) / 2
        won = total * weights.sum(axis=1) - np.einsum("ij,ij->i", lost, weights)
        return won / (total * weights.sum(axis=1))


def resampled_interval(members: ValuesLike, others: ValuesLike) -> Interval:
    """The interval of the AUC by drawing users again, so that each side keeps its size."""
    a, b = make_groups(members, others)
    strata = (a.sizes > 0).astype(np.int64) + 2 * (b.sizes > 0)
    return bootstrap(WeightedAuc(a, b), strata, rng=np.random.default_rng(0), width=len(a) + len(b))


def naive_auc(members, others):
    return np.mean([(m > o) + 0.5 * (m == o) for m in members for o in others])


def naive_interval(members, others):
    """Obuchowski 1997 by loops over users; members and others are dictionaries of users' scores."""
    flat_m = [s for scores in members.values() for s in scores]
    flat_o = [s for scores in others.values() for s in scores]
    value = naive_auc(flat_m, flat_o)
    chance = value * (1 - value)
    total = through_m = through_o = 0.0
    for user in {**members, **others}:
        as_member = sum(naive_auc([s], flat_o) - value for s in members.get(user, [])) / len(flat_m)
        as_other = sum(naive_auc(flat_m, [s]) - value for s in others.get(user, [])) / len(flat_o)
        as_member *= (len(members) / (len(members) - 1)) ** 0.5
        as_other *= (len(others) / (len(others) - 1)) ** 0.5
        total, through_m, through_o = (
            total + (as_member + as_other) ** 2,
            through_m + as_member**2,
            through_o + as_other**2,
        )
    extra_m, extra_o = chance / len(members) ** 2, chance / len(others) ** 2
    a, b = through_m + extra_m, through_o + extra_o
    freedom = (a + b) ** 2 / (a**2 / (len(members) - 1) + b**2 / (len(others) - 1))
    half = t.ppf(0.975, freedom) * (total + extra_m + extra_o) ** 0.5 / chance
    logit = np.log(value / (1 - value))
    return [1 / (1 + np.exp(-(logit + way * half))) for way in (-1, 1)]


def owned(by_user):
    return OwnedValues(
        np.array([s for scores in by_user.values() for s in scores]),
        [u for u, scores in by_user.items() for _ in scores],
    )


@given(members=scores, others=scores)
@settings(deadline=None, max_examples=80)
def test_auc_equals_counting_all_pairs(members, others):
    estimate = auc(members, others)
    assert estimate.value == pytest.approx(naive_auc(members, others))
    assert estimate.value in estimate.interval
    assert 0 <= estimate.interval.low <= estimate.interval.high <= 1


@given(members=scores, others=scores)
@settings(deadline=None, max_examples=60)
def test_swapping_the_sides_mirrors_value_and_interval(members, others):
    one, other = auc(members, others), auc(others, members)
    assert one.value == pytest.approx(1 - other.value)
    assert one.interval.low == pytest.approx(1 - other.interval.high)


@given(members=scores, others=scores, seed=st.integers(0, 99))
@settings(deadline=None, max_examples=40)
def test_order_and_scale_of_scores_do_not_matter(members, others, seed):
    rng = np.random.default_rng(seed)
    moved = auc(np.exp(rng.permutation(members)), np.exp(rng.permutation(others)))
    assert moved.value == pytest.approx(auc(members, others).value)
    assert moved.interval.low == pytest.approx(auc(members, others).interval.low)


def test_members_with_higher_scores_give_an_auc_above_one_half():
    rng = np.random.default_rng(0)
    estimate = auc(rng.normal(1, 1, 200), rng.normal(0, 1, 300))
    assert estimate.interval.low > 0.6
    assert estimate.n == {"members": 200, "others": 300, "member_users": 200, "other_users": 300}


def test_infinite_scores_are_ranked_like_any_other():
    assert auc([np.inf, 0.0], [-np.inf, 0.0]).value == pytest.approx(0.875)


def test_interval_equals_obuchowskis_by_loops_even_with_users_on_both_sides():
    rng = np.random.default_rng(4)
    members = {f"u{i}": (rng.integers(0, 9, rng.integers(1, 5)) + 1.0).tolist() for i in range(6)}
    others = {f"u{i}": rng.integers(0, 9, rng.integers(1, 4)).tolist() for i in range(3, 11)}
    found = auc(owned(members), owned(others)).interval
    assert [found.low, found.high] == pytest.approx(naive_interval(members, others))


def test_copies_of_a_users_records_do_not_narrow_the_interval():
    rng = np.random.default_rng(5)
    members, others = rng.normal(1, 1, 12), rng.normal(0, 1, 15)
    once = auc(members, others)
    copied = auc(
        OwnedValues(np.repeat(members, 30), np.repeat(np.arange(12), 30)),
        OwnedValues(np.repeat(others, 30), np.repeat(np.arange(100, 115), 30)),
    )
    assert copied.value == pytest.approx(once.value)
    assert (copied.interval.low, copied.interval.high) == pytest.approx((once.interval.low, once.interval.high))


@pytest.mark.parametrize(
    ("members", "others", "value"), [([2, 3], [0, 1], 1.0), ([0, 1], [2, 3], 0.0), ([1] * 3, [1] * 3, 0.5)]
)
def test_unanimous_scores_still_leave_doubt(members, others, value):
    estimate = auc(members, others)
    assert estimate.value == value
    assert estimate.interval.high - estimate.interval.low > 0.5
    lopsided = auc(members, others * 500)
    assert lopsided.interval.high - lopsided.interval.low > 0.5
    many = auc(members * 500, others * 500)
    assert many.interval.high - many.interval.low < 0.02


@given(members=scores, others=scores, seed=st.integers(0, 99))
@settings(deadline=None, max_examples=40)
def test_weighted_auc_equals_repeating_the_drawn_records(members, others, seed):
    rng = np.random.default_rng(seed)
    a, b = make_groups(
        OwnedValues(np.array(members), np.arange(len(members)) // 2),
        OwnedValues(np.array(others), np.arange(len(others)) // 3),
    )
    drawn = rng.integers(1, 4, (3, a.population)).astype(float)
    repeated = [
        naive_auc(np.repeat(a.values, row[a.users].astype(int)), np.repeat(b.values, row[b.users].astype(int)))
        for row in drawn
    ]
    assert WeightedAuc(a, b)(drawn) == pytest.approx(repeated)


def test_bootstrap_and_delong_agree_where_both_may_be_used():
    rng = np.random.default_rng(6)
    a = OwnedValues(np.repeat(rng.normal(0.7, 1, 80), 4) + rng.normal(0, 1, 320), np.repeat(np.arange(80), 4))
    b = OwnedValues(np.repeat(rng.normal(0, 1, 90), 4) + rng.normal(0, 1, 360), np.repeat(np.arange(80, 170), 4))
    drawn, formula = resampled_interval(a, b), auc(a, b).interval
    assert (drawn.low, drawn.high) == pytest.approx((formula.low, formula.high), abs=0.015)


def test_bootstrap_refuses_sides_that_do_not_overlap():
    with refused("constant_statistic"):
        resampled_interval([5.0, 6.0, 7.0, 8.0], [1.0, 2.0, 3.0, 4.0])


def test_placements_count_ties_half():
    assert placements(np.array([3.0, 1.0, 2.0]), np.array([2.0, 2.0])).tolist() == [1, 0, 0.5]


NULL_AND_PLANTED = [(0.5, 2, 2), (0.5, 10, 100), (0.5, 50, 50), (0.8, 30, 30), (0.97, 20, 200), (0.995, 40, 40)]


@pytest.mark.parametrize(("true", "n_members", "n_others"), NULL_AND_PLANTED)
def test_interval_covers_the_true_auc_as_often_as_it_claims(true, n_members, n_others):
    rng = np.random.default_rng(7)
    runs, shift = 600, norm.ppf(true) * 2**0.5
    misses = sum(
        true not in auc(rng.normal(shift, 1, n_members), rng.normal(0, 1, n_others)).interval for _ in range(runs)
    )
    assert binomial_p(misses, runs, 0.05) > 0.001, misses / runs


@pytest.mark.parametrize("shared", [False, True])
@pytest.mark.parametrize("true", [0.5, 0.8])
def test_interval_covers_when_records_of_a_user_are_alike(true, shared):
    rng = np.random.default_rng(8)
    runs, misses, users, records = 500, 0, 30, 5
    owners = np.repeat(np.arange(users), records)
    for _ in range(runs):
        habit = np.repeat(rng.normal(0, 1, users), records)
        other_habit = habit if shared else np.repeat(rng.normal(0, 1, users), records)
        members = habit + rng.normal(norm.ppf(true) * 2, 1, users * records)
        others = other_habit + rng.normal(0, 1, users * records)
        found = auc(OwnedValues(members, owners), OwnedValues(others, owners if shared else owners + users))
        misses += true not in found.interval
    assert binomial_p(misses, runs, 0.05) > 0.001, misses / runs


def test_near_one_a_few_users_with_many_records_do_not_lose_all_certainty():
    users, records = 12, 30
    owners = np.repeat(np.arange(users), records)
    members, others = 100.0 + np.arange(users * records), -100.0 - np.arange(users * records)
    others[0] = members[0] + 0.5  # one pair of 129,600 is out of order
    found = auc(OwnedValues(members, owners), OwnedValues(others, owners + users)).interval
    assert found.low > 0.7
    mirrored = auc(OwnedValues(others, owners + users), OwnedValues(members, owners)).interval
    assert [mirrored.low, mirrored.high] == pytest.approx([1 - found.high, 1 - found.low])


@pytest.mark.parametrize(("true", "records"), [(0.97, 1), (0.97, 20), (0.999, 20)])
def test_near_one_the_interval_of_few_users_still_covers(true, records):
    rng = np.random.default_rng(9)
    runs, misses, users = 500, 0, 12
    sizes = rng.integers(1, records + 1, users)
    owners = np.repeat(np.arange(users), sizes)
    for _ in range(runs):
        members = rng.normal(0, 1, users)[owners] + rng.normal(norm.ppf(true) * 2, 1, len(owners))
        others = rng.normal(0, 1, users)[owners] + rng.normal(0, 1, len(owners))
        misses += true not in auc(OwnedValues(members, owners), OwnedValues(others, owners + users)).interval
    assert binomial_p(misses, runs, 0.05) > 0.001, misses / runs


def test_taking_records_for_independent_would_miss_too_often():
    """The same data without owners: shows that the test above can fail."""
    rng = np.random.default_rng(8)
    runs, misses, users, records = 200, 0, 30, 5
    for _ in range(runs):
        members = np.repeat(rng.normal(0, 1, users), records) + rng.normal(0, 1, users * records)
        others = np.repeat(rng.normal(0, 1, users), records) + rng.normal(0, 1, users * records)
        misses += 0.5 not in auc(members, others).interval
    assert binomial_p(misses, runs, 0.05) < 1e-6
