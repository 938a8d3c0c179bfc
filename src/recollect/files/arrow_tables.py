"""Parquet files, tables and the numbers in them, without pandas: Arrow's own ways would load it, which takes longer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
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


def build_array(values: Sequence[Any] | NDArray[Any], kind: pa.DataType | None = None) -> pa.Array:
    """An array of Arrow with numbers, truth values or strings; None is a missing one.

    >>> build_array(["a", None], pa.string()).to_pylist(), build_array([0.5, 1]).type
    (['a', None], DataType(double))

    Args:
        values: What is in it.
        kind: Its type; by default that which NumPy finds, if no value is missing.
    """
    kind = pa.from_numpy_dtype(np.asarray(values).dtype) if kind is None else kind
    missing = np.array([value is None for value in values], dtype=np.bool_)
    valid = _pack_bits(~missing) if missing.any() else None
    if pa.types.is_string(kind):
        encoded = [b"" if value is None else value.encode() for value in values]
        ends = pa.py_buffer(np.cumsum([0, *map(len, encoded)], dtype=np.int64))
        buffers = [valid, ends, pa.py_buffer(b"".join(encoded))]
        return pa.Array.from_buffers(pa.large_string(), len(values), buffers).cast(kind)
    dtype = np.dtype(kind.to_pandas_dtype())
    filled = [dtype.type() if value is None else value for value in values] if missing.any() else values
    numbers = np.ascontiguousarray(filled, dtype=None if len(filled) else dtype).astype(dtype, casting="same_kind")
    buffer = _pack_bits(numbers) if pa.types.is_boolean(kind) else pa.py_buffer(numbers)
    return pa.Array.from_buffers(kind, len(values), [valid, buffer])


def build_table(columns: Mapping[str, Any]) -> pa.Table:
    """A table of columns, each an array of Arrow or what `build_array` makes one of.

    >>> build_table({"score": np.array([0.5]), "user": ["ann"]}).to_pylist()
    [{'score': 0.5, 'user': 'ann'}]
    """
    return pa.table({name: each if isinstance(each, pa.Array) else build_array(each) for name, each in columns.items()})


def build_table_of_rows(rows: Sequence[Mapping[str, Any]], schema: pa.Schema) -> pa.Table:
    """A table of rows, with the columns of the schema; None is a missing value.

    >>> build_table_of_rows([{"user": "ann"}], pa.schema([("user", pa.string())])).to_pylist()
    [{'user': 'ann'}]
    """
    columns = [build_array([row[field.name] for row in rows], field.type) for field in schema]
    return pa.Table.from_arrays(columns, schema=schema)


def _pack_bits(flags: NDArray[np.bool_]) -> pa.Buffer:
    """Truth values as an array of Arrow stores them."""
    return pa.py_buffer(np.packbits(flags, bitorder="little"))
