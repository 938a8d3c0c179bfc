"""Recall, precision and accuracy of decisions, against counting by hand."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from recollect.stats import (
    OwnedValues,
    accuracy,
    balanced_accuracy,
    binomial_p,
    clopper_pearson,
    false_positive_rate,
    precision,
    recall,
)

flags = st.lists(st.booleans(), min_size=1, max_size=20)


@given(members=flags, others=flags)
@settings(deadline=None, max_examples=60)
def test_rates_equal_counting_by_hand(members, others):
    hits, alarms = sum(members), sum(others)
    right = hits + len(others) - alarms
    assert recall(members).value == pytest.approx(hits / len(members))
    assert false_positive_rate(others).value == pytest.approx(alarms / len(others))
    assert accuracy(members, others).value == pytest.approx(right / (len(members) + len(others)))
    assert balanced_accuracy(members, others).value == pytest.approx(
        (hits / len(members) + 1 - alarms / len(others)) / 2
    )
    if hits + alarms:
        assert precision(members, others).value == pytest.approx(hits / (hits + alarms))


def test_intervals_are_exact_for_independent_records():
    members, others = [True] * 7 + [False] * 3, [True] * 2 + [False] * 18
    assert recall(members).interval == clopper_pearson(0.7 * 10, 10)
    assert precision(members, others).interval.low == pytest.approx(clopper_pearson(7, 9).low)


def test_precision_keeps_flags_with_their_users():
    """Ann's ten flagged records are one voice, whichever side they are on."""
    members = OwnedValues(np.array([1] * 10 + [0, 0]), ["ann"] * 10 + ["bob", "cy"])
    others = OwnedValues(np.array([1, 0]), ["dan", "bob"])
    estimate = precision(members, others)
    assert estimate.value == pytest.approx(10 / 11)
    assert estimate.n == {"flagged": 11, "users": 2}
    assert estimate.interval.low < 0.3


def test_perfect_decisions_still_leave_doubt():
    estimate = balanced_accuracy([True] * 10, [False] * 10)
    assert estimate.value == 1
    assert 0.6 < estimate.interval.low < 0.9
    assert estimate.interval.high == 1


@pytest.mark.parametrize(("found", "alarmed"), [(0.5, 0.5), (0.9, 0.05)])
def test_balanced_accuracy_covers_as_often_as_it_claims(found, alarmed):
    rng = np.random.default_rng(0)
    runs, true = 1000, (found + 1 - alarmed) / 2
    misses = sum(
        true not in balanced_accuracy(rng.random(25) < found, rng.random(40) < alarmed).interval for _ in range(runs)
    )
    assert binomial_p(misses, runs, 0.05) > 0.001, misses / runs
