"""Columns of tables as figures need them: numbers, and who belongs together."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from recollect.report.figures.scale import Floats

MAX_GROUPS = 10
"""Numbers of repetitions that are distinguished; more are drawn as one group."""


def read_column(table: pa.Table, name: str) -> Floats:
    """A column of a table as numbers for a figure, NaN where there is none; words become NaN, for figures show none."""
    found = table.column(name)
    if not (pa.types.is_integer(found.type) or pa.types.is_floating(found.type)):
        return np.full(len(found), np.nan)
    return np.asarray(found.cast(pa.float64()).to_numpy(zero_copy_only=False), dtype=np.float64)


def group_by_repetitions(planted: Floats) -> dict[str, NDArray[np.bool_]]:
    """Which secrets were planted equally often, controls first.

    >>> {name: int(chosen.sum()) for name, chosen in group_by_repetitions(np.array([0, 0, 1, 4, np.nan])).items()}
    {'controls': 2, 'planted 1×': 1, 'planted 4×': 1, 'given': 1}
    """
    times = np.unique(planted[planted > 0])
    found = {"controls": planted == 0}
    if len(times) > MAX_GROUPS:
        found[f"planted {times[0]:.0f}–{times[-1]:.0f}×"] = planted > 0
    else:
        found |= {f"planted {each:.0f}×": planted == each for each in times}
    found["given"] = np.isnan(planted)
    return {name: chosen for name, chosen in found.items() if chosen.any()}
