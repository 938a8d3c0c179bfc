"""Numbers that figures summarise, without NumPy's masked arrays, which `np.median` and the like would load."""

from __future__ import annotations

import numpy as np

from recollect.report.figures.scale import Floats


def compute_quantile(values: Floats, share: float) -> float:
    """The quantile of the finite numbers that a figure draws, of which there is at least one: 0.5 is the median.

    >>> compute_quantile(np.array([4.0, 1.0, 2.0]), 0.5), compute_quantile(np.array([4.0, 1.0]), 0.25)
    (2.0, 1.75)
    """
    return float(np.interp(share * (len(values) - 1), np.arange(len(values)), np.sort(values)))


def sort_distinct(values: Floats) -> Floats:
    """The numbers of a figure in ascending order, each once.

    >>> sort_distinct(np.array([4.0, 1.0, 4.0])).tolist()
    [1.0, 4.0]
    """
    return np.unique(values, return_index=True)[0]  # with the indices, it does not ask whether values are masked
