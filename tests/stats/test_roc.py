"""ROC curves, rates and thresholds: equal to trying every threshold, ties against the attacker."""

from __future__ import annotations

import sys
import tracemalloc

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binom, norm

from recollect.errors import NotEnoughData
from recollect.stats import OwnedValues, auc, best_threshold, binomial_p, roc_curve, threshold_at, tpr_at_fpr
from recollect.stats.groups import make_group
from recollect.stats.roc import _compute_threshold_limits

scores = st.lists(st.integers(-5, 5).map(float), min_size=1, max_size=20)
others_for_a_tenth = st.lists(st.integers(-5, 5).map(float), min_size=10, max_size=25)


def naive_tpr(members, others, fpr):
    """The best that any threshold reaches while flagging at most a share `fpr` of the others."""
    best = 0.0
    for threshold in [*members, *others]:
        if np.mean(np.array(others) >= threshold) <= fpr + 1e-12:
            best = max(best, np.mean(np.array(members) >= threshold))
    return best


@given(members=scores, others=scores)
@settings(deadline=None, max_examples=60)
def test_curve_equals_flagging_at_every_threshold(members, others):
    curve = roc_curve(members, others)
    distinct = sorted({*members, *others}, reverse=True)
    assert curve.threshold.tolist() == [np.inf, *distinct]
    assert curve.tpr == pytest.approx([0, *(np.mean(np.array(members) >= t) for t in distinct)])
    assert curve.fpr == pytest.approx([0, *(np.mean(np.array(others) >= t) for t in distinct)])


@given(
    members=st.lists(st.integers(-5, 5).map(float), min_size=2, max_size=20), others=scores.filter(lambda s: len(s) > 1)
)
@settings(deadline=None, max_examples=40)
def test_area_under_the_curve_is_the_auc(members, others):
    curve = roc_curve(members, others)
    assert np.trapezoid(curve.tpr, curve.fpr) == pytest.approx(auc(members, others).value)


def test_a_thinned_curve_keeps_its_ends_and_reads_the_same_where_it_must():
    rng = np.random.default_rng(0)
    whole = roc_curve(rng.normal(1, 1, 4000), rng.normal(0, 1, 3000))
    rates = [0.001, 0.01, 0.1]
    thin = whole.thin(300, rates=rates)
    assert len(thin.fpr) <= 300 + len(rates)
    assert [(curve.fpr[i], curve.tpr[i]) for curve in (whole, thin) for i in (0, -1)] == [(0, 0), (1, 1)] * 2
    assert thin.tpr_at(rates).tolist() == whole.tpr_at(rates).tolist()
    places = np.geomspace(1e-3, 1, 200)
    assert thin.tpr_at(places) == pytest.approx(whole.tpr_at(places), abs=0.02)
    assert set(zip(thin.threshold, thin.fpr, thin.tpr, strict=True)) <= set(
        zip(whole.threshold, whole.fpr, whole.tpr, strict=True)
    )


def test_a_curve_of_few_points_is_not_thinned():
    curve = roc_curve([3.0, 2.0], [1.0])
    assert curve.thin(100) is curve


@given(members=scores, others=others_for_a_tenth, fpr=st.sampled_from([0.1, 0.2, 0.29, 0.5, 0.99]))
@settings(deadline=None, max_examples=80)
def test_tpr_at_fpr_equals_trying_every_threshold(members, others, fpr):
    estimate = tpr_at_fpr(members, others, fpr=fpr)
    assert estimate.value == pytest.approx(naive_tpr(members, others, fpr))
    assert estimate.value == pytest.approx(float(roc_curve(members, others).tpr_at(fpr)))
    assert estimate.value in estimate.interval
    assert np.mean(np.array(others) > threshold_at(np.array(others), fpr)) <= fpr + 1e-12


@pytest.mark.parametrize("fpr", [0.001, 0.1, 0.5, 0.999])
def test_a_constant_score_finds_nobody_at_any_rate_below_one(fpr):
    assert tpr_at_fpr([1.0] * 100, [1.0] * 1000, fpr=fpr).value == 0
    assert roc_curve([1.0] * 100, [1.0] * 1000).tpr_at(np.array([fpr, 1.0])).tolist() == [0, 1]


def test_exactly_the_allowed_number_of_others_is_flagged():
    others = np.arange(10.0)
    members = others + 0.5
    assert tpr_at_fpr(members, others, fpr=0.1).value == pytest.approx(0.2)  # above 8: 8.5 and 9.5
    assert tpr_at_fpr(members, others, fpr=0.19).value == pytest.approx(0.2)
    assert tpr_at_fpr(members, others, fpr=0.2).value == pytest.approx(0.3)
    # 0.29 × 100 is a little less than 29 in floating point; 29 others may be flagged all the same.
    assert threshold_at(np.arange(100.0), 0.29) == 70


def test_ties_with_infinite_scores_are_ties():
    curve = roc_curve([-np.inf, 1.0], [-np.inf, -np.inf])
    assert curve.fpr.tolist() == [0, 0, 1]


def test_members_with_higher_scores_are_found_and_with_lower_ones_are_not():
    rng = np.random.default_rng(0)
    high, low = rng.normal(3, 1, 500), rng.normal(0, 1, 500)
    assert tpr_at_fpr(high, low, fpr=0.1).interval.low > 0.8
    assert tpr_at_fpr(low, high, fpr=0.1).interval.high < 0.1


@given(members=scores, others=scores)
@settings(deadline=None, max_examples=60)
def test_best_threshold_equals_trying_all_pairs_and_takes_the_largest_of_equals(members, others):
    def balanced(threshold):
        found = sum(m >= threshold for m in members)
        return found * len(others) + sum(o < threshold for o in others) * len(members)

    threshold, accuracy = best_threshold(members, others)
    best = max(map(balanced, [*members, *others]))
    assert threshold == max(t for t in [*members, *others] if balanced(t) == best)
    assert accuracy == pytest.approx(best / (2 * len(members) * len(others)))


def work_of(compute):
    """How many lines of Python a computation runs, and how many bytes it holds at once: no clock can move either."""
    lines, before = 0, sys.gettrace()

    def count(frame, event, argument):
        nonlocal lines
        lines += event == "line"
        return count

    sys.settrace(count)
    try:
        compute()
    finally:
        sys.settrace(before)
    tracemalloc.start()
    try:
        compute()
        return lines, tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


ROC_WORK = {
    "roc_curve": roc_curve,
    "auc": auc,
    "tpr_at_fpr": lambda members, others: tpr_at_fpr(members, others, fpr=0.01),
}


@pytest.mark.parametrize("computed", ROC_WORK)
def test_ten_times_the_scores_take_no_more_lines_and_ten_times_the_memory(computed):
    rng = np.random.default_rng(0)

    def work(n):
        members, others = rng.normal(0.5, 1, n), rng.normal(0, 1, n)
        return work_of(lambda: ROC_WORK[computed](members, others))

    work(100)  # what is imported or remembered the first time is not counted
    (lines, held), (more_lines, more_held) = work(2_000), work(20_000)
    assert more_lines <= 1.1 * lines
    assert more_held <= 12 * held


@pytest.mark.parametrize(
    ("slow", "caught"),
    [
        (lambda members, others: np.mean(members[:, None] > others), "memory"),
        (lambda members, others: np.mean([np.mean(member > others) for member in members]), "lines"),
    ],
)
def test_work_that_grows_with_the_square_is_found_out(slow, caught):
    (lines, held), (more_lines, more_held) = (
        work_of(lambda n=n: slow(np.arange(float(n)), np.arange(float(n)))) for n in (200, 2_000)
    )
    assert (more_lines > 1.1 * lines) == (caught == "lines")
    assert (more_held > 12 * held) == (caught == "memory")


@pytest.mark.parametrize("shift", [0.0, 1.5, 4.0])
@pytest.mark.parametrize(("n_others", "fpr"), [(100, 0.01), (100, 0.1), (1000, 0.01)])
def test_interval_pays_for_the_threshold_and_covers_as_often_as_it_claims(shift, n_others, fpr):
    rng = np.random.default_rng(1)
    runs, true = 400, norm.sf(norm.isf(fpr) - shift)
    misses = sum(
        true not in tpr_at_fpr(rng.normal(shift, 1, 80), rng.normal(0, 1, n_others), fpr=fpr).interval
        for _ in range(runs)
    )
    assert binomial_p(misses, runs, 0.05) > 0.001, misses / runs


@pytest.mark.parametrize(("n_others", "fpr"), [(100, 0.1), (100, 0.01), (1000, 0.01), (57, 0.3)])
def test_limits_of_the_threshold_are_the_nearest_order_statistics_that_hold(n_others, fpr):
    high, low = _compute_threshold_limits(make_group(np.arange(float(n_others))), n_others * (1 - fpr), fpr, 0.95)
    # How many others are at or above each limit; the number above the true threshold is binomial.
    above_high = 0 if np.isinf(high) else n_others - int(high)
    above_low = n_others + 1 if np.isinf(low) else n_others - int(low)
    too_low = [binom.cdf(k - 1, n_others, fpr) for k in (above_high, above_high + 1)]
    too_high = [binom.sf(k - 1, n_others, fpr) for k in (above_low, above_low - 1)]
    assert too_low[0] <= 0.0125 < too_low[1]
    assert too_high[0] <= 0.0125 < too_high[1]


@pytest.mark.parametrize("just", ["below", "above"])
def test_interval_holds_for_the_worst_members_there_can_be(just):
    """Members who crowd at the true threshold, so that a slip of it changes everything."""
    rng = np.random.default_rng(3)
    runs, misses = 400, 0
    elsewhere, crowd, true = (2.0, 0.9 - 1e-9, 0.3) if just == "below" else (0.0, 0.9 + 1e-9, 0.7)
    for _ in range(runs):
        members = np.where(rng.random(300) < 0.3, elsewhere, crowd)
        misses += true not in tpr_at_fpr(members, rng.random(200), fpr=0.1).interval
    assert binomial_p(misses, runs, 0.05) > 0.001, misses / runs


def test_an_interval_for_the_members_alone_would_miss_too_often():
    """Clopper–Pearson at the chosen threshold, as if it had been known: shows that the test above can fail."""
    from recollect.stats import proportion

    rng = np.random.default_rng(1)
    runs, true = 300, norm.sf(norm.isf(0.01) - 1.5)
    misses = 0
    for _ in range(runs):
        members, others = rng.normal(1.5, 1, 400), rng.normal(0, 1, 400)
        misses += true not in proportion(members > threshold_at(others, 0.01)).interval
    assert binomial_p(misses, runs, 0.05) < 1e-6


@pytest.mark.parametrize("alike", [0.0, 0.8])
def test_interval_covers_when_records_of_a_user_are_alike(alike):
    rng = np.random.default_rng(2)
    runs, misses, users, records = 300, 0, 40, 10
    owners, true = np.repeat(np.arange(users), records), norm.sf(norm.isf(0.05) - 1.5)
    for _ in range(runs):
        habits = np.repeat(rng.normal(0, alike**0.5, (2, users)), records, axis=1)
        own = rng.normal(0, (1 - alike) ** 0.5, (2, users * records))
        members, others = habits + own + np.array([[1.5], [0]])
        estimate = tpr_at_fpr(OwnedValues(members, owners), OwnedValues(others, owners + users), fpr=0.05)
        misses += true not in estimate.interval
    assert binomial_p(misses, runs, 0.05) > 0.001, misses / runs


def test_records_of_one_user_have_no_rate_with_an_interval():
    many, one = OwnedValues(np.arange(30.0), [f"u{i}" for i in range(30)]), OwnedValues(np.arange(30.0), ["ann"] * 30)
    for members, others in ((one, many), (many, one)):
        with pytest.raises(NotEnoughData, match="at least 2 users among the"):
            tpr_at_fpr(members, others, fpr=0.1)
