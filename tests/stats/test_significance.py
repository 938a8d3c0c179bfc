"""P-values: right by definition, uniform under the null, small where there is something to find."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from recollect.stats import (
    OwnedValues,
    benjamini_hochberg,
    binomial_p,
    bonferroni,
    conformal_p,
    holm,
    superuniformity_p,
)

values = st.lists(st.integers(-5, 5).map(float), min_size=1, max_size=20)
p_values = st.lists(st.floats(0, 1), min_size=1, max_size=20)


@given(p=p_values)
@settings(deadline=None, max_examples=60)
def test_benjamini_hochberg_is_that_of_scipy(p):
    assert benjamini_hochberg(p).tolist() == stats.false_discovery_control(p).tolist()


@given(tested=values, controls=values)
@settings(deadline=None, max_examples=60)
def test_conformal_p_equals_counting_controls(tested, controls):
    naive = [(1 + sum(c >= t for c in controls)) / (1 + len(controls)) for t in tested]
    assert conformal_p(tested, controls).tolist() == pytest.approx(naive)


@given(tested=values, controls=values, seed=st.integers(0, 99))
@settings(deadline=None, max_examples=60)
def test_each_user_counts_once_spread_over_its_records(tested, controls, seed):
    users = np.random.default_rng(seed).integers(0, 4, len(controls))
    naive = []
    for t in tested:
        shares = [np.mean([c >= t for c, u in zip(controls, users, strict=True) if u == user]) for user in set(users)]
        naive.append((1 + sum(shares)) / (1 + len(shares)))
    assert conformal_p(tested, OwnedValues(np.array(controls), users)).tolist() == pytest.approx(naive)


def test_the_higher_the_score_the_smaller_the_p_value():
    p = conformal_p([-10.0, 0.0, 10.0], np.random.default_rng(0).normal(0, 1, 99))
    assert p[0] == 1
    assert p[2] == 0.01
    assert p[0] > p[1] > p[2]


def test_a_score_above_nineteen_controls_is_significant_at_five_percent_and_a_tie_is_not():
    controls = np.arange(19.0)
    assert conformal_p([18.5, 18.0], controls).tolist() == [0.05, 0.1]


def test_random_ties_lie_between_the_two_ways_of_counting_them():
    controls, tested = np.repeat([0.0, 1.0], 10), np.zeros(200)
    p = conformal_p(tested, controls, rng=np.random.default_rng(0))
    assert p.min() >= 10 / 21
    assert p.max() <= 1
    assert np.ptp(p) > 0.4


def test_adding_up_sevenths_does_not_move_a_p_value():
    """Three users with seven records each, two of them all lower: without rounding p is 0.5000000000000002."""
    controls = OwnedValues(np.repeat([0.0, 1.0, 2.0], 7), np.repeat(np.arange(3), 7))
    assert conformal_p([2.0], controls).tolist() == [0.5]


@given(p=p_values)
@settings(deadline=None, max_examples=60)
def test_benjamini_hochberg_rejects_what_the_step_up_rule_rejects(p):
    adjusted = benjamini_hochberg(p)
    for alpha in (0.05, 0.3):
        if np.isclose(adjusted, alpha, rtol=1e-12).any():  # 0.05 * 3 / 3 is not 0.05
            continue
        ordered = sorted(p)
        passing = [
            i for i, value in enumerate(ordered, start=1) if value * len(p) / i <= alpha + 1e-12
        ]  # 0.05 * 3 / 3 is not 0.05
        limit = ordered[passing[-1] - 1] if passing else -1
        assert (adjusted <= alpha).tolist() == [value <= limit for value in p]


@given(p=p_values)
@settings(deadline=None, max_examples=60)
def test_holm_equals_the_step_down_rule(p):
    adjusted, worst = {}, 0.0
    for step, i in enumerate(sorted(range(len(p)), key=lambda i: (p[i], i))):
        worst = max(worst, min(1.0, p[i] * (len(p) - step)))
        adjusted[i] = worst
    assert holm(p).tolist() == pytest.approx([adjusted[i] for i in range(len(p))])
    assert (holm(p) <= bonferroni(p) + 1e-15).all()
    assert (benjamini_hochberg(p) <= holm(p) + 1e-15).all()


def test_no_tests_need_no_correction():
    assert benjamini_hochberg([]).size == holm([]).size == bonferroni([]).size == 0


def test_what_is_not_a_probability_is_refused():
    with pytest.raises(ValueError, match="between 0 and 1"):
        holm([0.5, 1.2])


def test_binomial_p_equals_adding_up():
    from math import comb

    twin = sum(comb(20, k) * 0.3**k * 0.7 ** (20 - k) for k in range(11, 21))
    assert binomial_p(11, 20, 0.3) == pytest.approx(twin)


def test_conformal_p_values_are_uniform_when_nothing_is_there():
    rng = np.random.default_rng(1)
    # One score per set of controls, so that the p-values are independent; ties are common.
    p = [conformal_p(rng.integers(0, 8, 1), rng.integers(0, 8, 40))[0] for _ in range(1000)]
    broken = [conformal_p(rng.integers(0, 8, 1), rng.integers(0, 8, 40), rng=rng)[0] for _ in range(1000)]
    assert superuniformity_p(p) > 0.001
    assert superuniformity_p(broken) > 0.001
    assert superuniformity_p(1 - np.array(broken)) > 0.001


@pytest.mark.parametrize("alike", [0.0, 0.5, 1.0])
def test_conformal_p_values_hold_when_controls_share_users(alike):
    rng = np.random.default_rng(2)
    p = []
    for _ in range(1500):
        sizes = rng.integers(1, 12, 31)
        users = np.repeat(np.arange(31), sizes)
        scores = np.repeat(rng.normal(0, alike**0.5, 31), sizes) + rng.normal(0, (1 - alike) ** 0.5, sizes.sum())
        first = users == 0
        p.append(conformal_p(scores[first][:1], OwnedValues(scores[~first], users[~first]))[0])
    assert superuniformity_p(p) > 0.001
    for alpha in (0.05, 0.1, 0.3):
        assert binomial_p(int(np.sum(np.array(p) <= alpha)), len(p), alpha) > 0.001


def test_forgetting_that_controls_share_users_would_fire_too_often():
    """A few controls' users with very many records each: shows that the test above can fail."""
    rng = np.random.default_rng(2)
    alarms = 0
    for _ in range(400):
        habits = rng.normal(0, 1, 6)
        alarms += conformal_p(habits[:1], np.repeat(habits[1:], 100))[0] <= 0.05
    assert binomial_p(alarms, 400, 0.05) < 1e-6


def test_benjamini_hochberg_keeps_the_share_of_false_findings_with_shared_controls():
    rng = np.random.default_rng(3)
    shares = []
    for _ in range(600):
        scores = np.concatenate([rng.normal(0, 1, 80), rng.normal(3, 1, 20)])
        found = benjamini_hochberg(conformal_p(scores, rng.normal(0, 1, 400))) <= 0.1
        shares.append(found[:80].sum() / max(1, found.sum()))
    mean, error = np.mean(shares), np.std(shares) / len(shares) ** 0.5
    assert mean - 3.1 * error < 0.1
    assert mean > 0.03  # it does find, and errs as it should


@pytest.mark.parametrize("correct", [benjamini_hochberg, holm, bonferroni])
def test_corrections_keep_the_rate_of_any_alarm_when_nothing_is_there(correct):
    rng = np.random.default_rng(4)
    alarms = sum((correct(conformal_p(rng.normal(0, 1, 50), rng.normal(0, 1, 2000))) <= 0.05).any() for _ in range(600))
    assert binomial_p(int(alarms), 600, 0.05) > 0.001, alarms / 600
