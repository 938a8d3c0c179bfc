"""Many labellings at once against one at a time."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from recollect.stats.labellings import min_benjamini_hochberg, rank_conformally, sum_ranks
from recollect.stats.significance import benjamini_hochberg, conformal_p


@pytest.fixture(params=[0, 1, 2], ids=["distinct", "ties", "unknown"])
def drawn(request):
    """Values, and for forty rows who is on the one side, on the other, or on none."""
    rng = np.random.default_rng(request.param)
    values = rng.normal(size=30)
    if request.param:
        values = np.round(values)
    sides = rng.choice(3, size=(40, 30), p=[0.2, 0.5, 0.3])
    if request.param == 2:
        values[:4], sides[:, :4] = np.nan, 2
        values[5] = -np.inf
    known = ~np.isnan(values)
    sides[0, known], sides[1, known] = 1, 0  # nobody on the one side, nobody on the other
    return values, sides == 0, sides == 1


def test_conformal_p_values_are_those_of_one_row_at_a_time(drawn):
    values, tested, against = drawn
    for row, mine, others in zip(rank_conformally(values, tested, against), tested, against, strict=True):
        assert row[mine] == pytest.approx(conformal_p(values[mine], values[others]))
        assert np.isinf(row[~mine]).all()


def test_rank_sums_are_those_of_one_row_at_a_time(drawn):
    values, above, below = drawn
    for (statistic, variance), mine, others in zip(sum_ranks(values, above, below).T, above, below, strict=True):
        n, m = mine.sum(), others.sum()
        if not n or not m:
            assert (statistic, variance) == (0, 0)
            continue
        ranks = stats.rankdata(np.concatenate([values[mine], values[others]])) / (n + m + 1)
        assert statistic == pytest.approx(ranks[:n].sum() - n * ranks.mean())
        assert variance == pytest.approx(n * m * ranks.var(ddof=1) / (n + m))


def test_the_smallest_corrected_p_value_is_that_of_one_row_at_a_time(drawn):
    values, tested, against = drawn
    p = rank_conformally(values, tested, against)
    for found, row, mine in zip(min_benjamini_hochberg(p, tested.sum(axis=1)), p, tested, strict=True):
        assert found == pytest.approx(benjamini_hochberg(row[mine]).min() if mine.any() else np.inf)
