"""The blind baseline beside the scores."""

import numpy as np
import pytest

from recollect.audits.common.blind_baseline import compare_aucs


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("audited", [0, 1, 9, 10])
def test_with_fewer_than_two_units_on_a_side_scores_are_not_better_than_the_blind_baseline(audited):
    scores = np.arange(10.0)
    assert compare_aucs(scores, -scores, np.arange(10) >= 10 - audited) == 1.0


@pytest.mark.filterwarnings("error")
def test_scores_that_separate_all_units_are_better_than_a_blind_baseline_that_separates_none():
    scores, blind = np.arange(10.0), np.tile([0.0, 1.0], 5)
    assert compare_aucs(scores, blind, np.arange(10) >= 5) < 0.05
    assert compare_aucs(blind, scores, np.arange(10) >= 5) > 0.95
