"""Parquet files and the numbers in them, without pandas: Arrow's own ways would load it, which takes longer."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray


def read_parquet(path: Path, columns: Sequence[str] | None = None) -> pa.Table:
    """The table in a Parquet file, or some of its columns.

    Raises:
        OSError, pa.ArrowException: It is absent, damaged or no Parquet.
    """
    with pq.ParquetFile(path) as file:
        return file.read(columns=None if columns is None else list(columns), use_threads=False)


def read_values(array: pa.Array) -> NDArray[Any]:
    """The numbers or truth values of an array of Arrow in which none is missing.

    >>> read_values(pa.array([True, False, True])[1:]), read_values(pa.array([1, 2, 3], pa.int16())[1:])
    (array([False,  True]), array([2, 3], dtype=int16))
    """
    first, end = array.offset, array.offset + len(array)
    buffer, kind = array.buffers()[1] or b"", array.type.to_pandas_dtype()
    if pa.types.is_boolean(array.type):
        bits = np.frombuffer(buffer, dtype=np.uint8)
        return np.unpackbits(bits, count=end, bitorder="little")[first:].astype(np.bool_)
    values: NDArray[Any] = np.frombuffer(buffer, dtype=kind)[first:end]
    return values
