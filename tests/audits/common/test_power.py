"""Power: the smallest p-values are those of the tests, and the smallest AUC is found as often as it says."""

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from recollect.audits.common.power import (
    count_needed_controls,
    minimum_detectable_auc,
    smallest_conformal_p,
    smallest_rank_p,
    smallest_tied_rank_p,
)
from recollect.stats import conformal_p, mann_whitney


@pytest.mark.parametrize(("n", "m"), [(2, 5), (4, 4), (3, 12)])
def test_the_smallest_p_value_of_a_rank_test_is_that_of_perfect_separation(n, m):
    assert smallest_rank_p(n, m) == pytest.approx(mann_whitney(np.arange(n) + 100.0, np.arange(m)).p)


def test_the_smallest_conformal_p_value_is_that_of_the_highest_score():
    assert smallest_conformal_p(30) == conformal_p([9.0], np.zeros(30))[0]
    assert smallest_conformal_p(9, tests=100) == 1.0


@pytest.mark.parametrize("users", [1, 2, 3, 8])
def test_one_control_less_than_needed_is_too_few(users):
    needed = count_needed_controls(users, alpha=0.05)
    assert min(smallest_rank_p(users, needed), smallest_conformal_p(needed)) <= 0.05 + 1e-12
    assert min(smallest_rank_p(users, needed - 1), smallest_conformal_p(needed - 1)) > 0.05


@pytest.mark.parametrize(("n", "m"), [(1, 19), (1, 20), (1, 99), (10, 50), (40, 40)])
def test_an_effect_that_counts_as_detectable_is_found_in_four_of_five_runs(n, m):
    from scipy import stats

    auc = minimum_detectable_auc(n, m, alpha=0.05)
    shift, rng = stats.norm.ppf(auc) * 2**0.5, np.random.default_rng(0)
    found = 0
    for _ in range(400):
        above, below = rng.normal(shift, 1, n), rng.normal(0, 1, m)
        found += (conformal_p(above, below)[0] if n == 1 else mann_whitney(above, below).p) <= 0.05
    assert found / 400 == pytest.approx(0.8, abs=0.07)
    assert minimum_detectable_auc(1, 18, alpha=0.05) is None


@given(st.lists(st.integers(0, 3), min_size=2, max_size=8), st.data())
def test_the_smallest_p_of_tied_scores_is_that_of_the_best_division(values, data):
    count = data.draw(st.integers(1, len(values) - 1))
    sums = [sum(values[i] for i in chosen) for chosen in combinations(range(len(values)), count)]
    scores = np.array(values, dtype=float)
    found = smallest_tied_rank_p(scores[:count], scores[count:])
    assert found == pytest.approx(sums.count(max(sums)) / len(sums))
