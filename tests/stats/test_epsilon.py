"""Lower bounds on ε: no larger than the truth as often as they claim, and positive where something leaks."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from recollect.stats import (
    binomial_p,
    clopper_pearson,
    epsilon_from_counts,
    epsilon_from_guesses,
    epsilon_from_one_run,
    epsilon_from_rates,
    epsilon_from_scores,
    one_run_p,
)
from recollect.testing.refusals import refused


def naive_one_run_p(epsilon, canaries, guesses, correct, delta):
    """Corollary 5.4 by adding up."""
    success = 1 / (1 + np.exp(-epsilon))
    mass = [stats.binom.pmf(k, guesses, success) for k in range(guesses + 1)]
    slack = max((sum(mass[correct - i : correct]) / i for i in range(1, correct + 1)), default=0.0)
    return min(1.0, sum(mass[correct:]) + 2 * canaries * delta * slack)


@given(
    guesses=st.integers(1, 40),
    share=st.floats(0, 1),
    epsilon=st.floats(0, 5),
    delta=st.sampled_from([0.0, 1e-5, 1e-3, 0.1]),
)
@settings(deadline=None, max_examples=80)
def test_one_run_p_equals_adding_up(guesses, share, epsilon, delta):
    correct, canaries = round(share * guesses), 2 * guesses
    ours = one_run_p(epsilon, canaries=canaries, guesses=guesses, correct=correct, delta=delta)
    assert ours == pytest.approx(naive_one_run_p(epsilon, canaries, guesses, correct, delta), abs=1e-9)


@pytest.mark.parametrize(
    ("canaries", "guesses", "correct", "delta", "printed"),
    [(1000, 100, 75, 1e-4, 0.673), (100_000, 1510, 1439, 1e-5, 2.675)],
)
def test_the_papers_own_examples_come_out(canaries, guesses, correct, delta, printed):
    """Steinke et al. 2023, appendix D and section 7."""
    found = epsilon_from_guesses(canaries=canaries, guesses=guesses, correct=correct, delta=delta)
    assert found.value == pytest.approx(printed, abs=1e-3)


def test_one_run_bound_without_delta_inverts_clopper_pearson():
    rate = clopper_pearson(80, 100, confidence=0.9).low  # one-sided 0.95
    found = epsilon_from_guesses(canaries=500, guesses=100, correct=80)
    assert found.value == pytest.approx(np.log(rate / (1 - rate)), abs=1e-5)


def test_delta_only_lowers_the_bound():
    bounds = [
        epsilon_from_guesses(canaries=1000, guesses=100, correct=90, delta=d).value for d in (0, 1e-6, 1e-4, 1e-2)
    ]
    assert bounds == sorted(bounds, reverse=True)
    assert bounds[0] > bounds[-1]


def test_bound_from_counts_equals_the_definition_both_ways():
    tail = 0.025
    low = stats.beta.ppf(tail, 30, 71)
    high = stats.beta.ppf(1 - tail, 3, 98)
    found = epsilon_from_counts(true_positives=30, members=100, false_positives=2, non_members=100, delta=0.01)
    assert found.value == pytest.approx(np.log((low - 0.01) / high))
    assert found.interval.low == found.value
    assert found.interval.high == np.inf
    mirrored = epsilon_from_counts(true_positives=98, members=100, false_positives=70, non_members=100, delta=0.01)
    assert mirrored.value == pytest.approx(found.value)


def test_a_bound_is_never_negative_and_chance_shows_nothing():
    assert epsilon_from_counts(true_positives=50, members=100, false_positives=50, non_members=100).value == 0
    assert epsilon_from_counts(true_positives=0, members=100, false_positives=100, non_members=100).value == 0
    assert epsilon_from_guesses(canaries=100, guesses=100, correct=50).value == 0
    assert epsilon_from_guesses(canaries=100, guesses=100, correct=0).value == 0


def test_ties_go_against_the_auditor():
    assert epsilon_from_one_run(np.ones(200), np.ones(200)).n["correct"] == 0
    assert epsilon_from_scores(np.ones(200), np.ones(200), rng=np.random.default_rng(0)).value == 0


def test_higher_scores_of_planted_canaries_are_what_counts():
    rng = np.random.default_rng(1)
    high, low = rng.normal(3, 1, 300), rng.normal(0, 1, 300)
    assert epsilon_from_one_run(high, low).value > 2
    assert epsilon_from_one_run(low, high).value == 0
    assert epsilon_from_scores(high, low, rng=rng).value > 2
    assert epsilon_from_scores(low, high, rng=rng).value == 0


def test_guesses_are_counted_exactly():
    found = epsilon_from_one_run([9.0, 8.0, 0.5, 5.0, 4.0], [7.0, 1.0, 0.0, 3.0, 2.0], guesses_per_side=3)
    # The three highest are planted, planted, left out; the three lowest left out, planted, left out.
    assert found.n == {"canaries": 10, "guesses": 6, "correct": 4}


def test_too_few_canaries_or_scores_are_refused():
    with refused("too_few_guesses") as refusal:
        epsilon_from_one_run(np.arange(10.0), np.arange(10.0), guesses_per_side=2)
    assert refusal.error.needed == 5
    with refused("too_few_members") as refusal:
        epsilon_from_scores(np.arange(11.0), np.arange(50.0), rng=np.random.default_rng(0))
    assert refusal.error.needed == 12
    with refused("too_few_canaries") as refusal:
        epsilon_from_one_run(np.arange(10.0), np.arange(10.0), guesses_per_side=15)
    assert refusal.error.needed == 30
    perfect = epsilon_from_scores(np.arange(12.0) + 100, np.arange(12.0), rng=np.random.default_rng(0))
    assert perfect.value > 0


@pytest.mark.parametrize("size", [50, pytest.param(500, marks=pytest.mark.slow)])
@pytest.mark.parametrize("delta", [0.0, 1e-5])
def test_leak_free_runs_give_a_positive_bound_no_more_often_than_claimed(size, delta):
    rng = np.random.default_rng(2)
    runs, by_scores, by_one_run = 300, 0, 0
    for _ in range(runs):
        scores = rng.normal(0, 1, 2 * size)
        tossed = rng.random(2 * size) < 0.5
        by_one_run += epsilon_from_one_run(scores[tossed], scores[~tossed], delta=delta).value > 0
        by_scores += epsilon_from_scores(scores[:size], scores[size:], rng=rng, delta=delta).value > 0
    assert binomial_p(by_scores, runs, 0.05) > 0.001, by_scores / runs
    assert binomial_p(by_one_run, runs, 0.05) > 0.001, by_one_run / runs


@pytest.mark.parametrize("epsilon", [0.5, 2.0])
def test_bounds_do_not_exceed_the_true_epsilon_more_often_than_claimed(epsilon):
    """Randomised response: each record's bit is told truly with probability exp(ε) / (1 + exp(ε)), the worst case."""
    rng = np.random.default_rng(3)
    runs, over_scores, over_one_run, positive = 300, 0, 0, 0
    for _ in range(runs):
        planted = rng.random(400) < 0.5
        told = planted ^ (rng.random(400) > 1 / (1 + np.exp(-epsilon)))
        scores = told + rng.random(400) / 2  # distinguished, without ties
        one_run = epsilon_from_one_run(scores[planted], scores[~planted], guesses_per_side=100).value
        over_one_run += one_run > epsilon
        positive += one_run > 0
        over_scores += epsilon_from_scores(scores[planted], scores[~planted], rng=rng).value > epsilon
    assert binomial_p(over_one_run, runs, 0.05) > 0.001, over_one_run / runs
    assert binomial_p(over_scores, runs, 0.05) > 0.001, over_scores / runs
    assert positive > 0.9 * runs


@pytest.mark.parametrize("size", [12, 250])
def test_the_number_of_guesses_read_off_the_scores_holds_the_bound_and_shows_more(size):
    """Two clusters of scores, as memorised canaries have: a fixed tenth of guesses cannot show what all of them do."""
    rng = np.random.default_rng(5)
    runs, over, epsilon = 150, 0, 1.0
    for _ in range(runs):
        planted = rng.random(2 * size) < 0.5
        told = planted ^ (rng.random(2 * size) > 1 / (1 + np.exp(-epsilon)))
        scores = 5.0 * told + rng.normal(0, 1, 2 * size)
        over += epsilon_from_one_run(scores[planted], scores[~planted]).value > epsilon
    assert binomial_p(over, runs, 0.05) > 0.001, over / runs
    clear = rng.normal(8, 1, size), rng.normal(0, 1, size)
    shown = epsilon_from_one_run(*clear).value
    assert shown > 1.2 * epsilon_from_one_run(*clear, guesses_per_side=max(3, size // 5)).value


def test_several_thresholds_are_paid_for_and_show_more_than_the_largest_rate():
    rng = np.random.default_rng(6)
    runs, alarms, gains = 300, 0, []
    for _ in range(runs):
        thresholds = np.quantile(rng.normal(0, 1, 1000), 1 - np.array([0.01, 0.05, 0.2, 0.5]))
        null, others, members = rng.normal(0, 1, 500), rng.normal(0, 1, 500), rng.normal(2, 1, 500)
        false, of_null, of_members = ((side[:, None] > thresholds).sum(axis=0) for side in (others, null, members))
        counts = list(zip(of_null.tolist(), false.tolist(), strict=True))
        alarms += epsilon_from_rates(counts, members=500, non_members=500).value > 0
        both = list(zip(of_members.tolist(), false.tolist(), strict=True))
        one = epsilon_from_rates([both[2]], members=500, non_members=500).value
        gains.append(epsilon_from_rates(both, members=500, non_members=500).value / one)
    assert binomial_p(alarms, runs, 0.05) > 0.001, alarms / runs
    assert np.median(gains) > 1.3
    with refused("too_few_thresholds"):
        epsilon_from_rates([], members=5, non_members=5)


def test_taking_the_best_of_many_numbers_of_guesses_would_fire_too_often():
    """The same bound without a number of guesses fixed beforehand: shows that the tests above can fail."""
    rng = np.random.default_rng(4)
    alarms = 0
    for _ in range(60):
        a, b = rng.normal(0, 1, 200), rng.normal(0, 1, 200)
        alarms += any(epsilon_from_one_run(a, b, guesses_per_side=each).value > 0 for each in range(5, 200, 10))
    assert binomial_p(alarms, 60, 0.05) < 0.001, alarms / 60
