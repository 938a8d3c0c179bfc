"""Refusals: what the counts cannot support is not answered, and the count that would be needed is named."""

from __future__ import annotations

import pytest

from recollect.errors import NotEnoughData
from recollect.stats import auc, conformal_p, controls_for_p, others_for_fpr, precision, tpr_at_fpr
from recollect.stats.support import counted


@pytest.mark.parametrize(("alpha", "tests", "needed"), [(0.05, 1, 19), (0.001, 1, 999), (0.1, 3, 29), (0.3, 1, 3)])
def test_controls_needed_for_a_p_value(alpha, tests, needed):
    assert controls_for_p(alpha, tests=tests) == needed
    assert 1 / (needed + 1) <= alpha / tests < 1 / needed


def test_others_needed_for_a_false_positive_rate():
    assert [others_for_fpr(fpr) for fpr in (0.1, 0.01, 0.001, 0.003)] == [10, 100, 1000, 334]


@pytest.mark.parametrize(("share", "total", "whole"), [(0.29, 100, 29), (0.1, 30, 3), (0.01, 199, 1), (0.07, 100, 7)])
def test_shares_are_counted_without_rounding_faults(share, total, whole):
    assert counted(share, total) == whole


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        (lambda: tpr_at_fpr([1.0] * 50, [0.0] * 999, fpr=0.001), "at least 1,000 non-members; there are 999"),
        (lambda: conformal_p([1.0], [0.0] * 18, alpha=0.05), "at least 19 controls; there are 18"),
        (lambda: auc([1.0], [0.0, 1.0]), "at least 2 users who are members; there is 1"),
        (lambda: precision([False], [False]), "at least 1 flagged records; there are 0"),
    ],
)
def test_too_little_data_is_refused_with_the_count_needed(asked, message):
    with pytest.raises(NotEnoughData, match=message):
        asked()


def test_just_enough_data_is_not_refused():
    assert tpr_at_fpr([1.0] * 50, [0.0] * 1000, fpr=0.001).value == 1
    assert conformal_p([1.0], [0.0] * 19, alpha=0.05).tolist() == [0.05]
