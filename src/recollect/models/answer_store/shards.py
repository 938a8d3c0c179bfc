"""One shard of an answer store: a Parquet file with a row per record, so that one without tokens is kept too."""

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
from recollect.files import write_atomically
from recollect.files.arrow_tables import read_parquet, read_values
from recollect.models.answers import Answers

SUFFIX = ".parquet"
Digests = NDArray[np.bytes_]
"""Record digests as 16 bytes each, which sort and compare without becoming Python objects."""

_INTEGER_COLUMNS = ("pattern", "position", "start", "end")
_FLOAT_COLUMNS = {
    "logprob": "logprob",
    "entropy": "entropy",
    "logprob_std": labels.COLUMN_LOGPROB_STD,
    "kept_mass": "kept_mass",
}
"""The columns of floating-point numbers, by their names in `Answers`."""
_COLUMNS = (*_INTEGER_COLUMNS, "known", "rank", *_FLOAT_COLUMNS.values())
_CHECKSUM_KEY = b"digest"
_THREADS_KEY = b"threads"
_READ_ERRORS = (pa.ArrowException, OSError, ValueError, KeyError, TypeError, AttributeError)
"""What Arrow raises, or what turns up later, when a file is not what it was."""


def pack_shard_digests(digests: Sequence[str]) -> Digests:
    """Record digests as a shard keeps them: an array of 16 bytes each.

    >>> pack_shard_digests(["00" * 15 + "ff"]).itemsize
    16
    """
    return np.frombuffer(bytes.fromhex("".join(digests)), dtype="S16")


def build_shard_name(address: str, records: Sequence[str]) -> str:
    """The name of the shard that holds these records: the same whoever writes it and whenever."""
    return digest_bytes(address.encode(), "".join(records).encode()) + SUFFIX


def write_shard(
    folder: Path, address: str, answers: Answers, *, double: bool = False, threads: Sequence[int] = ()
) -> Path:
    """Write the answers to one block of records, whole or not at all; the same answers make the same bytes.

    Args:
        folder: The store's folder.
        address: The store's address, which is part of the shard's name.
        answers: The answers to all records of the block.
        double: Keep numbers in double precision.
        threads: With how many threads they were computed; several numbers if a run was resumed with another.
    """
    path = folder / build_shard_name(address, answers.records)
    with write_atomically(path) as part:
        pq.write_table(
            _build_shard_table(answers, double, threads),
            part,
            compression="zstd",
            use_dictionary=False,
            write_page_checksum=True,
        )
    return path


def read_shard(path: Path, address: str) -> Answers:
    """The answers in a shard.

    Raises:
        StoreError: It is damaged, or is not of this store.
    """
    try:
        answers = _parse_shard(read_parquet(path))
    except _READ_ERRORS as error:
        raise _build_damaged_shard_error(path, str(error)) from error
    _refuse_foreign_shard(path, address, answers.records)
    return answers


def read_record_digests(path: Path, address: str) -> Digests:
    """The digests of a shard's records, without its answers.

    Raises:
        StoreError: It is damaged, or is not of this store.
    """
    try:
        records = read_parquet(path, ["record"]).column("record").to_pylist()
        _refuse_foreign_shard(path, address, records)
        return pack_shard_digests(records)
    except _READ_ERRORS as error:
        raise _build_damaged_shard_error(path, str(error)) from error


def read_threads(path: Path) -> tuple[int, ...]:
    """With how many threads a shard was computed; several numbers if a run was resumed with another, none if unknown.

    Raises:
        StoreError: It is damaged.
    """
    try:
        noted = (pq.read_schema(path).metadata or {}).get(_THREADS_KEY, b"").decode()
        return tuple(int(each) for each in noted.split(",") if each)
    except _READ_ERRORS as error:
        raise _build_damaged_shard_error(path, str(error)) from error


def build_empty_shard(*, double: bool = False) -> Answers:
    """The answers of a shard without records."""
    columns: dict[str, Any] = dict.fromkeys((*_INTEGER_COLUMNS, "rank"), np.zeros(0, np.int32))
    shown = [name for name in _FLOAT_COLUMNS if name != "kept_mass"]
    columns |= dict.fromkeys(shown, np.zeros(0, np.float64 if double else np.float32))
    return Answers(records=(), offsets=np.zeros(1, np.int64), known=np.zeros(0, np.bool_), **columns)


def _build_shard_table(answers: Answers, double: bool, threads: Sequence[int]) -> pa.Table:
    """The answers as a table with list columns; columns that the model does not show are left out."""
    offsets = pa.array(answers.offsets, pa.int32())
    real = np.float64 if double else np.float32
    columns: dict[str, Any] = {name: getattr(answers, name).astype(np.int32, copy=False) for name in _INTEGER_COLUMNS}
    columns |= {"known": answers.known, "rank": answers.rank.astype(np.int32, copy=False)}
    shown = {column: getattr(answers, name) for name, column in _FLOAT_COLUMNS.items()}
    columns |= {name: values.astype(real, copy=False) for name, values in shown.items() if values is not None}
    lists = {name: pa.ListArray.from_arrays(offsets, pa.array(values)) for name, values in columns.items()}
    if answers.logits is not None:
        columns["logits"] = answers.logits.astype(real, copy=False)
        rows = pa.FixedSizeListArray.from_arrays(pa.array(columns["logits"].reshape(-1)), answers.logits.shape[1])
        lists["logits"] = pa.ListArray.from_arrays(offsets, rows)
    records = pa.array(answers.records, pa.string())
    noted = {_THREADS_KEY: ",".join(map(str, threads)).encode()} if threads else {}
    return pa.table(
        {"record": records, **lists},
        metadata={_CHECKSUM_KEY: _compute_shard_checksum(answers.records, answers.offsets, columns), **noted},
    )


def _parse_shard(table: pa.Table) -> Answers:
    """The answers that `_build_shard_table` wrote."""
    lists = {name: table.column(name).combine_chunks() for name in table.column_names if name != "record"}
    offsets = read_values(lists["rank"].offsets).astype(np.int64)
    columns: dict[str, Any] = {name: read_values(lists[name].flatten()) for name in _COLUMNS if name in lists}
    if "logits" in lists:
        rows = lists["logits"].flatten()
        columns["logits"] = read_values(rows.flatten()).reshape(-1, rows.type.list_size)
    records = tuple(table.column("record").to_pylist())
    if (table.schema.metadata or {}).get(_CHECKSUM_KEY) != _compute_shard_checksum(records, offsets, columns):
        raise ValueError("its content is not what was written")
    numbers = {name: columns.pop(column, None) for name, column in _FLOAT_COLUMNS.items()}
    return Answers(records=records, offsets=offsets, **columns, **numbers)


def _compute_shard_checksum(
    records: Sequence[str], offsets: NDArray[np.int64], columns: Mapping[str, NDArray[Any]]
) -> bytes:
    """The digest of all that a shard holds: a wrong number must not pass for a right one."""
    named = [part for name, values in columns.items() for part in (name.encode(), np.ascontiguousarray(values).data)]
    return digest_bytes("".join(records).encode(), np.ascontiguousarray(offsets, np.int64).data, *named).encode()


def _refuse_foreign_shard(path: Path, address: str, records: Sequence[str]) -> None:
    """A shard is named after its store and its records: any other name means that it is not what it was."""
    if path.name != build_shard_name(address, records):
        raise _build_damaged_shard_error(path, "its name does not fit its content")


def _build_damaged_shard_error(path: Path, why: str) -> StoreError:
    """What to say, and what to delete."""
    return StoreError(
        f"The shard '{path}' is damaged or belongs to another store: {why}",
        do="Delete this file and run again: only its records will be scored anew.",
        code="shard_damaged",
    )
