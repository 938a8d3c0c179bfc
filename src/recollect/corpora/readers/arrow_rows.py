"""Rows out of Arrow batches, with text that is not UTF-8 found and never passed on."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from recollect.corpora.faults import Fault
from recollect.corpora.readers.opening import not_utf8

ROWS = 1024
"""How many rows are taken out of a table at a time."""


def rows_of_batches(batches: Iterable[Any]) -> Iterator[tuple[int, dict[str, Any] | Fault]]:
    """The rows of some batches, numbered from 1 over all of them."""
    number = 0
    for batch in batches:
        columns = {name: _values(batch.column(name)) for name in batch.schema.names}
        for i in range(batch.num_rows):
            number += 1
            row = {name: values[i] for name, values in columns.items()}
            yield number, next((cell for cell in row.values() if isinstance(cell, Fault)), row)


def _values(column: Any) -> list[Any]:
    """The values of a column; one that is not UTF-8 is a fault."""
    try:
        values: list[Any] = column.to_pylist()
    except UnicodeDecodeError:
        return [_value(cell) for cell in column]
    return values


def _value(cell: Any) -> Any:
    """One value, or the fault of bytes that are no text."""
    try:
        return cell.as_py()
    except UnicodeDecodeError as error:
        return not_utf8(error)
