"""Refusals: what the counts cannot support is not answered, and the count that would be needed is named."""

from __future__ import annotations

import re

import numpy as np
import pytest

from recollect.errors import NotEnoughData
from recollect.stats import (
    Estimate,
    accuracy,
    auc,
    balanced_accuracy,
    conformal_p,
    epsilon_from_counts,
    epsilon_from_one_run,
    false_positive_rate,
    kolmogorov_smirnov,
    mann_whitney,
    mean,
    permutation,
    precision,
    proportion,
    recall,
    required_controls,
    required_non_members,
    tpr_at_fpr,
)
from recollect.stats.exposure import fit_skew_normal, sampled_exposure
from recollect.stats.requirements import count_share
from recollect.testing.refusals import refused


@pytest.mark.parametrize(("alpha", "tests", "needed"), [(0.05, 1, 19), (0.001, 1, 999), (0.1, 3, 29), (0.3, 1, 3)])
def test_controls_needed_for_a_p_value(alpha, tests, needed):
    assert required_controls(alpha, tests=tests) == needed
    assert 1 / (needed + 1) <= alpha / tests < 1 / needed


def test_others_needed_for_a_false_positive_rate():
    assert [required_non_members(fpr) for fpr in (0.1, 0.01, 0.001, 0.003)] == [10, 100, 1000, 334]


@pytest.mark.parametrize(("share", "total", "whole"), [(0.29, 100, 29), (0.1, 30, 3), (0.01, 199, 1), (0.07, 100, 7)])
def test_shares_are_counted_without_rounding_faults(share, total, whole):
    assert count_share(share, total) == whole


@pytest.mark.parametrize(
    ("asked", "code", "needed"),
    [
        (lambda: tpr_at_fpr([1.0] * 50, [0.0] * 999, fpr=0.001), "too_few_non_members", 1000),
        (lambda: conformal_p([1.0], [0.0] * 18, alpha=0.05), "too_few_controls", 19),
        (lambda: auc([1.0], [0.0, 1.0]), "too_few_members", 2),
        (lambda: auc([0.0, 1.0], [1.0]), "too_few_non_members", 2),
        (lambda: tpr_at_fpr([1.0] * 50, [], fpr=0.01), "too_few_non_members", 100),
        (lambda: precision([False], [False]), "nothing_flagged", 1),
        (lambda: precision([True, False], []), "too_few_non_members", 1),
        (lambda: precision([], [True, False]), "too_few_members", 1),
        (lambda: proportion([]), "too_few_records", 1),
        (lambda: mean([1.0]), "too_few_users", 2),
    ],
)
def test_too_little_data_is_refused_with_the_count_needed(asked, code, needed):
    with refused(code, NotEnoughData) as refusal:
        asked()
    assert refusal.error.needed == needed


HIGH, LOW = np.linspace(1, 3, 40), np.linspace(0, 2, 40)
FLAGS = HIGH > 2, LOW > 2
ESTIMATES = [
    auc(HIGH, LOW),
    tpr_at_fpr(HIGH, LOW, fpr=0.1),
    mean(HIGH),
    proportion(FLAGS[0]),
    recall(FLAGS[0]),
    false_positive_rate(FLAGS[1]),
    precision(*FLAGS),
    accuracy(*FLAGS),
    balanced_accuracy(*FLAGS),
    mann_whitney(HIGH, LOW).effect,
    kolmogorov_smirnov(HIGH, LOW).effect,
    permutation(HIGH, LOW, rng=np.random.default_rng(0), draws=99).effect,
    epsilon_from_counts(true_positives=9, members=10, false_positives=1, non_members=10),
    epsilon_from_one_run(HIGH, LOW),
    sampled_exposure(1.0, LOW, 100),
    fit_skew_normal(np.linspace(0, 1, 100), rng=np.random.default_rng(0), refits=0).exposure(0.5),
]


@pytest.mark.parametrize("estimate", ESTIMATES, ids=lambda estimate: estimate.method)
def test_every_estimate_names_its_counts_in_snake_case(estimate: Estimate):
    assert estimate.n
    assert all(re.fullmatch(r"[a-z]+(_[a-z]+)*", key) for key in estimate.n)


def test_just_enough_data_is_not_refused():
    assert tpr_at_fpr([1.0] * 50, [0.0] * 1000, fpr=0.001).value == 1
    assert conformal_p([1.0], [0.0] * 19, alpha=0.05).tolist() == [0.05]
