"""Summaries of figures are NumPy's own, without what NumPy would load for them."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from recollect.report.figures.summaries import compute_quantile, sort_distinct

NUMBERS = arrays(np.float64, st.integers(1, 40), elements=st.floats(-1e6, 1e6))


@given(NUMBERS, st.floats(0, 1))
def test_quantiles_are_those_of_numpy(values, share):
    assert compute_quantile(values, share) == pytest.approx(np.quantile(values, share), rel=1e-12, abs=1e-9)


@given(NUMBERS)
def test_distinct_numbers_are_those_of_numpy(values):
    assert sort_distinct(values).tolist() == np.unique(values).tolist()


def test_masked_arrays_are_not_loaded():
    script = (
        "import sys, numpy as np\n"
        "from recollect.report.figures.blocks import draw_histograms\n"
        "from recollect.report.figures.exposure import group_by_repetitions\n"
        "draw_histograms([1.0, 2.0], [0.0, 1.0], label='score', threshold=1.5)\n"
        "group_by_repetitions(np.array([0.0, 1.0]))\n"
        "assert 'numpy.ma' not in sys.modules\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)  # noqa: S603
    assert done.returncode == 0, done.stderr
