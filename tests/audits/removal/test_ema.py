"""EMA as published: thresholds by sorting, votes, and the test of the votes."""

from __future__ import annotations

import time
import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as some
from scipy import stats

from recollect.audits.removal.ema import compute_ema_rho, find_thresholds
from recollect.stats.roc import best_threshold
from recollect.testing.refusals import refused

VALUES = some.lists(some.integers(0, 6).map(float), min_size=1, max_size=25)


def all_pairs(members, others):
    """The slow twin: every value as the threshold; TNR counts what is below; of equals the largest."""
    best = None
    for threshold in sorted({*members, *others}):
        found = sum(value >= threshold for value in members) * len(others)
        spared = sum(value < threshold for value in others) * len(members)
        if best is None or found + spared >= best[0]:
            best = found + spared, threshold
    return best[1]


@settings(deadline=None, max_examples=150)
@given(VALUES, VALUES)
def test_the_threshold_is_that_of_all_pairs(members, others):
    found = find_thresholds(
        np.array(members), np.array(others), ([None] * len(members), [None] * len(others)), scope="global"
    )
    assert found.everyone == all_pairs(members, others)


def test_a_hundred_thousand_on_each_side_take_well_under_a_second():
    rng = np.random.default_rng(0)
    members, others = rng.normal(1, 1, 100_000), rng.normal(0, 1, 100_000)
    began = time.process_time()
    found, accuracy = best_threshold(members, others)
    assert time.process_time() - began < 0.5
    # all pairs would take hours: the value must be that of the definition, and no threshold of many may beat it
    assert accuracy == pytest.approx(((members >= found).mean() + (others < found).mean()) / 2)
    for threshold in rng.choice(np.concatenate([members, others]), 300):
        assert ((members >= threshold).mean() + (others < threshold).mean()) / 2 <= accuracy + 1e-12


def test_classes_have_thresholds_of_their_own_and_rare_ones_share_the_global():
    members, others = np.array([5.0, 6.0, 1.0, 2.0, 3.0]), np.array([4.0, 3.0, 0.0, -1.0])
    labels = ["easy", "easy", "hard", "hard", "rare"], ["easy", "easy", "hard", "hard"]
    found = find_thresholds(members, others, labels, scope="per-class")
    assert found.by_class == {"easy": 5.0, "hard": 1.0}
    assert found.vote(np.array([4.5, 1.5, 1.5]), ["easy", "hard", "rare"]).tolist() == [
        False,
        True,
        found.everyone <= 1.5,
    ]


@pytest.mark.parametrize(
    ("ones", "zeros", "printed"), [(50, 0, 1.0), (49, 1, 0.32), (4, 1, 0.35), (3, 2, 0.14), (19, 1, 0.32)]
)
def test_the_printed_scores_come_out(ones, zeros, printed):
    # the values of Tables 5 and 6: one of fifty, one and two of five, one of twenty
    votes = np.array([True] * ones + [False] * zeros)
    assert round(compute_ema_rho(votes), 2) == printed


def test_votes_without_variance_have_a_score():
    assert compute_ema_rho(np.ones(7, dtype=bool)) == compute_ema_rho(np.ones(7, dtype=bool), test="ks") == 1.0
    assert compute_ema_rho(np.zeros(7, dtype=bool)) == 0.0
    with refused("too_few_votes"):
        compute_ema_rho(np.ones(1, dtype=bool))


def test_the_other_test_is_kolmogorov_smirnov():
    votes = np.array([True] * 30 + [False] * 10)
    assert compute_ema_rho(votes, test="ks") == stats.ks_2samp(votes.astype(float), np.ones(40)).pvalue


@pytest.mark.parametrize("test", ["t", "ks"])
def test_no_score_comes_with_a_warning(test):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for zeros in (1, 17, 40, 200, 1999):
            compute_ema_rho(np.arange(2000) >= zeros, test=test)
