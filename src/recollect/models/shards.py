"""One shard of an answer store: a Parquet file with a row per record, so that one without symbols is kept too."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from recollect import labels
from recollect.digests import digest_bytes
from recollect.errors import StoreError
from recollect.files import written_whole
from recollect.models.answers import Answers

SUFFIX = ".parquet"
Digests = NDArray[np.bytes_]
"""Record digests as 16 bytes each, which sort and compare without becoming Python objects."""

_INTEGERS = ("pattern", "position", "start", "end")
_NUMBERS = {"logprob": "logprob", "entropy": "entropy", "spread": labels.COLUMN_LOGPROB_STD}
"""The columns of floating-point numbers, by their names in `Answers`."""
_COLUMNS = (*_INTEGERS, "known", "rank", *_NUMBERS.values())
_CHECK = b"digest"
_UNREADABLE = (pa.ArrowException, OSError, ValueError, KeyError, TypeError, AttributeError)
"""What Arrow raises, or what turns up later, when a file is not what it was."""


def packed(digests: Sequence[str]) -> Digests:
    """Digests as an array of 16 bytes each.

    >>> packed(["00" * 15 + "ff"]).itemsize
    16
    """
    return np.frombuffer(bytes.fromhex("".join(digests)), dtype="S16")


def shard_name(address: str, records: Sequence[str]) -> str:
    """The name of the shard that holds these records: the same whoever writes it and whenever."""
    return digest_bytes(address.encode(), "".join(records).encode()) + SUFFIX


def write_shard(folder: Path, address: str, answers: Answers, *, double: bool = False) -> Path:
    """Write the answers to one block of records, whole or not at all; the same answers make the same bytes.

    Args:
        folder: The store's folder.
        address: The store's address, which is part of the shard's name.
        answers: The answers to all records of the block.
        double: Keep numbers in double precision.
    """
    path = folder / shard_name(address, answers.records)
    with written_whole(path) as part:
        pq.write_table(
            _table(answers, double), part, compression="zstd", use_dictionary=False, write_page_checksum=True
        )
    return path


def read_shard(path: Path, address: str) -> Answers:
    """The answers in a shard.

    Raises:
        StoreError: It is damaged, or is not of this store.
    """
    try:
        answers = _answers(_read(path))
    except _UNREADABLE as error:
        raise _damaged(path, str(error)) from error
    _refuse_foreign(path, address, answers.records)
    return answers


def records_in(path: Path, address: str) -> Digests:
    """The digests of a shard's records, without its answers.

    Raises:
        StoreError: It is damaged, or is not of this store.
    """
    try:
        records = _read(path, columns=["record"]).column("record").to_pylist()
        _refuse_foreign(path, address, records)
        return packed(records)
    except _UNREADABLE as error:
        raise _damaged(path, str(error)) from error


def no_answers(*, double: bool = False) -> Answers:
    """The answers to no records at all."""
    columns: dict[str, Any] = dict.fromkeys((*_INTEGERS, "rank"), np.zeros(0, np.int32))
    columns |= dict.fromkeys(_NUMBERS, np.zeros(0, np.float64 if double else np.float32))
    return Answers(records=(), offsets=np.zeros(1, np.int64), known=np.zeros(0, np.bool_), **columns)


def _read(path: Path, columns: list[str] | None = None) -> pa.Table:
    """The columns of a Parquet file."""
    with pq.ParquetFile(path) as file:
        return file.read(columns=columns, use_threads=False)


def _table(answers: Answers, double: bool) -> pa.Table:
    """The answers as a table with list columns; columns that the model does not show are left out."""
    offsets = pa.array(answers.offsets, pa.int32())
    real = np.float64 if double else np.float32
    columns: dict[str, Any] = {name: getattr(answers, name).astype(np.int32, copy=False) for name in _INTEGERS}
    columns |= {"known": answers.known, "rank": answers.rank.astype(np.int32, copy=False)}
    shown = {column: getattr(answers, name) for name, column in _NUMBERS.items()}
    columns |= {name: values.astype(real, copy=False) for name, values in shown.items() if values is not None}
    lists = {name: pa.ListArray.from_arrays(offsets, pa.array(values)) for name, values in columns.items()}
    if answers.logits is not None:
        columns["logits"] = answers.logits.astype(real, copy=False)
        rows = pa.FixedSizeListArray.from_arrays(pa.array(columns["logits"].reshape(-1)), answers.logits.shape[1])
        lists["logits"] = pa.ListArray.from_arrays(offsets, rows)
    records = pa.array(answers.records, pa.string())
    return pa.table({"record": records, **lists}, metadata={_CHECK: _check(answers.records, answers.offsets, columns)})


def _answers(table: pa.Table) -> Answers:
    """The answers that `_table` wrote."""
    lists = {name: table.column(name).combine_chunks() for name in table.column_names if name != "record"}
    offsets = lists["rank"].offsets.to_numpy().astype(np.int64)
    columns: dict[str, Any] = {name: _flat(lists[name]) for name in _COLUMNS if name in lists}
    if "logits" in lists:
        rows = lists["logits"].flatten()
        columns["logits"] = _flat(rows).reshape(-1, rows.type.list_size)
    records = tuple(table.column("record").to_pylist())
    if (table.schema.metadata or {}).get(_CHECK) != _check(records, offsets, columns):
        raise ValueError("its content is not what was written")
    numbers = {name: columns.pop(column, None) for name, column in _NUMBERS.items()}
    return Answers(records=records, offsets=offsets, **columns, **numbers)


def _check(records: Sequence[str], offsets: NDArray[np.int64], columns: Mapping[str, NDArray[Any]]) -> bytes:
    """The digest of all that a shard holds: a wrong number must not pass for a right one."""
    named = [part for name, values in columns.items() for part in (name.encode(), np.ascontiguousarray(values).data)]
    return digest_bytes("".join(records).encode(), np.ascontiguousarray(offsets, np.int64).data, *named).encode()


def _flat(column: Any) -> NDArray[Any]:
    """The values of a list column under each other."""
    values: NDArray[Any] = column.flatten().to_numpy(zero_copy_only=False)
    return values


def _refuse_foreign(path: Path, address: str, records: Sequence[str]) -> None:
    """A shard is named after its store and its records: any other name means that it is not what it was."""
    if path.name != shard_name(address, records):
        raise _damaged(path, "its name does not fit its content")


def _damaged(path: Path, why: str) -> StoreError:
    """What to say, and what to delete."""
    return StoreError(
        f"The shard '{path}' is damaged or belongs to another store: {why}",
        do="Delete this file and run again: only its records will be asked anew.",
        code="shard_damaged",
    )
