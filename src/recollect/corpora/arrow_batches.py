"""Records as Arrow batches."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import chain, islice
from typing import TYPE_CHECKING, Any

import numpy as np

from recollect.checks import check_at_least
from recollect.corpora.record import Record
from recollect.errors import CorpusError

if TYPE_CHECKING:
    import pyarrow as pa

STRING_COLUMNS = ("id", "user", "text", "source", "target")


def iter_batches(records: Iterable[Record], rows: int) -> Iterator[pa.RecordBatch]:
    """Batches of so many rows (the last may have fewer), all of one schema.

    The columns are id, user, text, source, target and label (a whole number, if the first label is one, else a
    string), null where a record has no such content; for conversations also `messages`, and for arrays `array`, a
    fixed-shape tensor.

    Args:
        records: The records.
        rows: Rows in a batch.
    """
    check_at_least(1, rows=rows)
    remaining = iter(records)
    first = next(remaining, None)
    if first is None:
        return
    schema = _infer_batch_schema(first)
    remaining = chain([first], remaining)
    while chunk := list(islice(remaining, rows)):
        yield _build_batch(chunk, schema)


def _infer_batch_schema(first: Record) -> pa.Schema:
    """The columns of every Arrow batch, as the first record tells them."""
    import pyarrow as pa

    label = pa.int64() if isinstance(first.label, int) else pa.string()
    fields = [*((name, pa.string()) for name in STRING_COLUMNS), ("label", label)]
    if first.messages is not None:
        turn = pa.struct([("role", pa.string()), ("content", pa.string()), ("scored", pa.bool_())])
        fields.append(("messages", pa.list_(turn)))
    if first.array is not None:
        fields.append(("array", pa.fixed_shape_tensor(pa.from_numpy_dtype(first.array.dtype), first.array.shape)))
    return pa.schema(fields)


def _build_batch(records: list[Record], schema: pa.Schema) -> pa.RecordBatch:
    """One Arrow batch of records."""
    import pyarrow as pa

    try:
        columns = [_build_batch_column(records, field) for field in schema]
    except (pa.ArrowException, ValueError, TypeError) as error:
        raise CorpusError(
            f"The records from {records[0].id!r} to {records[-1].id!r} are not all of one shape and type: {error}.",
            do="Give all records labels of one type and arrays of one shape.",
            code="mixed_records",
        ) from error
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def _build_batch_column(records: list[Record], field: Any) -> Any:
    """One column of an Arrow batch."""
    import pyarrow as pa

    if field.name == "array":
        stacked = np.stack([record.array for record in records])  # type: ignore[misc]
        return pa.FixedShapeTensorArray.from_numpy_ndarray(stacked).cast(field.type)
    if field.name == "messages":
        turns = [None if r.messages is None else [each._asdict() for each in r.messages] for r in records]
        return pa.array(turns, type=field.type)
    return pa.array([getattr(record, field.name) for record in records], type=field.type)
