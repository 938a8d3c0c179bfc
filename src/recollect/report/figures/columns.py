"""Columns of tables as figures need them: as numbers."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from recollect.report.figures.scale import Floats


def read_column(table: pa.Table, name: str) -> Floats:
    """A column of a table as numbers for a figure, NaN where there is none; words become NaN, for figures show none."""
    found = table.column(name)
    if not (pa.types.is_integer(found.type) or pa.types.is_floating(found.type)):
        return np.full(len(found), np.nan)
    return np.asarray(found.cast(pa.float64()).to_numpy(zero_copy_only=False), dtype=np.float64)
