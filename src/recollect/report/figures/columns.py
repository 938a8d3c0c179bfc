"""Columns of tables as figures need them: as numbers."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from recollect.files.arrow_tables import read_values
from recollect.report.figures.scale import Floats


def read_column(table: pa.Table, name: str) -> Floats:
    """A column of a table as numbers for a figure, NaN where there is none; words become NaN, for figures show none."""
    found = table.column(name)
    if not (pa.types.is_integer(found.type) or pa.types.is_floating(found.type)):
        return np.full(len(found), np.nan)
    return np.concatenate([np.zeros(0), *(_read_chunk(chunk) for chunk in found.chunks)])


def _read_chunk(chunk: pa.Array) -> Floats:
    """The numbers of a piece of a column."""
    if chunk.null_count:
        return np.array([np.nan if value is None else value for value in chunk.to_pylist()], dtype=np.float64)
    return read_values(chunk).astype(np.float64)
