"""Rows out of Arrow batches, with text that is not UTF-8 found and never passed on."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from recollect.corpora.readers.byte_streams import build_utf8_fault
from recollect.corpora.readers.faults import Fault

ROWS_PER_BATCH = 1024
"""How many rows are taken out of a table at a time."""


def iter_batch_rows(batches: Iterable[Any]) -> Iterator[tuple[int, dict[str, Any] | Fault]]:
    """The rows of some Arrow batches, numbered from 1 over all of them."""
    number = 0
    for batch in batches:
        for row in _iter_rows_of_batch(batch):
            number += 1
            yield number, row


def _iter_rows_of_batch(batch: Any) -> Iterator[dict[str, Any] | Fault]:
    """The rows of one Arrow batch; one with bytes that are no text is a fault."""
    names = batch.schema.names
    try:
        columns = [batch.column(name).to_pylist() for name in names]
    except UnicodeDecodeError:
        columns = [[_to_row_value(cell) for cell in batch.column(name)] for name in names]
        for cells in zip(*columns, strict=True):
            fault = next((cell for cell in cells if isinstance(cell, Fault)), None)
            yield fault or dict(zip(names, cells, strict=True))
        return
    for cells in zip(*columns, strict=True):
        yield dict(zip(names, cells, strict=True))


def _to_row_value(cell: Any) -> Any:
    """The value of an Arrow cell, or the fault of bytes that are no text."""
    try:
        return cell.as_py()
    except UnicodeDecodeError as error:
        return build_utf8_fault(error)
