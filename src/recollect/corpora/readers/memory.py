"""Corpora in memory: lists of texts or of rows, pandas DataFrames, and whatever offers an Arrow stream."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from recollect.corpora.readers import arrow_rows, hub
from recollect.corpora.readers.arrow_rows import iter_batch_rows
from recollect.corpora.readers.columns import refuse_duplicate_columns
from recollect.corpora.readers.corpus_shards import Shard
from recollect.corpora.readers.faults import SKIP_ADVICE, Fault, describe_type
from recollect.corpora.readers.json_lines import PEEK_ROWS
from recollect.errors import CorpusError

NumberedRow = tuple[int, dict[str, Any] | Fault]


class ArrowStream(Protocol):
    """A table that others can read through Arrow's PyCapsule interface, such as a polars DataFrame."""

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """A capsule that holds a C stream of record batches."""


class DataSet(Protocol):
    """A `datasets.Dataset`."""

    @property
    def column_names(self) -> list[str]:
        """The columns of a data set in memory."""

    def select_columns(self, column_names: list[str]) -> Any:
        """The data set in memory with these columns only."""


Source = str | Path | Sequence[str] | Sequence[Mapping[str, Any]] | ArrowStream | DataSet
"""What a corpus can be read from."""
ACCEPTED = (
    "the name of a file, folder or data set, list[str], list[dict], a pandas or polars DataFrame, a datasets.Dataset, "
    "or a pyarrow Table"
)


def build_shard(source: object) -> Shard:
    """An object in memory as the one shard of its corpus; nothing of its content is copied.

    Raises:
        CorpusError: It is not something that a corpus can be read from.
    """
    if isinstance(source, list | tuple):
        return _build_memory_shard(
            source, "list", tuple(source)
        )  # rows that are appended later do not change the corpus
    if _is_instance_unimported(source, "pandas", "DataFrame"):
        return _build_memory_shard(source, "pandas", source.copy(deep=False))  # type: ignore[attr-defined]
    if _is_instance_unimported(source, "datasets", "Dataset"):
        return _build_memory_shard(source, "hf", source)
    if hasattr(source, "__arrow_c_stream__"):
        return _build_memory_shard(source, "arrow", _to_arrow_table(source))
    raise _build_unreadable_object_error(source)


def narrow_in_memory(shard: Shard, wanted: frozenset[str]) -> Shard:
    """A shard in memory with the wanted columns only, as a worker process is sent it; a file stays as it is."""
    content = shard.content
    if content is None:
        return shard
    if shard.format == "list":
        columns = [
            {name: row[name] for name in wanted & row.keys()} if isinstance(row, Mapping) else row for row in content
        ]
        return replace(shard, content=tuple(columns))
    if shard.format == "pandas":
        return replace(shard, content=content.iloc[:, list(_find_frame_positions(content, wanted).values())])
    if shard.format == "arrow":
        return replace(shard, content=content.select([name for name in content.schema.names if name in wanted]))
    return replace(shard, content=hub.select_columns(content, wanted))


def read_list_columns(shard: Shard) -> list[str]:
    """The columns of a list in memory: the keys of its first rows, in order of appearance; texts have one column."""
    rows = (row for _, row in islice(read_list_rows(shard), PEEK_ROWS))
    return list(dict.fromkeys(name for row in rows if isinstance(row, dict) for name in row))


def read_list_rows(shard: Shard) -> Iterator[NumberedRow]:
    """The rows of a list in memory, numbered from 1: mappings if the first that is not None is one, else texts."""
    texts = not isinstance(next((row for row in shard.content if row is not None), None), Mapping)
    for number, row in enumerate(shard.content, 1):
        if texts:
            yield number, _to_plain_row({"text": row})
        elif isinstance(row, Mapping):
            yield number, _to_plain_row(row)
        else:
            yield (
                number,
                Fault("not_an_object", f"this is {describe_type(row)} and not a mapping of columns to values."),
            )


def read_frame_columns(shard: Shard) -> list[str]:
    """The columns of a pandas DataFrame in memory; its index is none of them."""
    return refuse_duplicate_columns([str(name) for name in shard.content.columns], shard.path)


def read_frame_rows(shard: Shard, wanted: frozenset[str]) -> Iterator[NumberedRow]:
    """The rows of a pandas DataFrame in memory, numbered from 1; a few rows at a time become Python values."""
    frame = shard.content
    positions = _find_frame_positions(frame, wanted)
    for start in range(0, len(frame), arrow_rows.ROWS_PER_BATCH):
        # a copy: pandas keeps a reference to every view for a while
        some = frame.take(range(start, min(len(frame), start + arrow_rows.ROWS_PER_BATCH)))
        columns = [some.iloc[:, position].tolist() for position in positions.values()]
        for number, cells in enumerate(zip(*columns, strict=True), start + 1):
            yield number, _to_plain_row(dict(zip(positions, cells, strict=True)))


def read_table_columns(shard: Shard) -> list[str]:
    """The columns of an Arrow table in memory."""
    return refuse_duplicate_columns(shard.content.schema.names, shard.path)


def read_table_rows(shard: Shard, wanted: frozenset[str]) -> Iterator[NumberedRow]:
    """The rows of an Arrow table in memory, numbered from 1."""
    chosen = shard.content.select([name for name in shard.content.schema.names if name in wanted])
    return iter_batch_rows(chosen.to_reader(max_chunksize=arrow_rows.ROWS_PER_BATCH))


def _build_memory_shard(source: object, format: str, content: Any) -> Shard:
    """An object in memory as a shard, named after the type of the object and its length."""
    count = len(content)
    return Shard(path=f"{type(source).__name__} ({count:,} row{'s' * (count != 1)})", format=format, content=content)


def _is_instance_unimported(source: object, package: str, name: str) -> bool:
    """Whether an object in memory is of this type, without importing the package."""
    bases = type(source).__mro__
    return any(base.__name__ == name and base.__module__.partition(".")[0] == package for base in bases)


def _to_arrow_table(source: object) -> Any:
    """An Arrow table that shares its memory with the object wherever that keeps its columns as Arrow does."""
    import pyarrow as pa

    try:
        return pa.table(source)
    except (pa.ArrowException, ValueError, TypeError) as error:  # a stream of one column, such as a Series
        raise _build_unreadable_object_error(source) from error


def _build_unreadable_object_error(source: object) -> CorpusError:
    """The error for an object in memory that no corpus can be read from."""
    kind = f"{type(source).__module__}.{type(source).__qualname__}".removeprefix("builtins.")
    hints = {"LazyFrame": "collect() it", "DatasetDict": "choose one of its splits", "Series": "make a list of it"}
    hint = hints.get(type(source).__name__, "make a list of it" if isinstance(source, Iterator) else "")
    return CorpusError(
        f"A corpus cannot be read from {kind}.",
        do=f"Give {ACCEPTED}" + (f": {hint}." if hint else "."),
        code="unsupported_source",
    )


def _find_frame_positions(frame: Any, wanted: frozenset[str]) -> dict[str, int]:
    """The positions of the wanted columns in a pandas DataFrame."""
    return {str(name): position for position, name in enumerate(frame.columns) if str(name) in wanted}


def _to_plain_row(row: Mapping[Any, Any]) -> dict[str, Any] | Fault:
    """A row in memory as plain values; text that no file could hold is a fault."""
    plain = {str(name): to_plain(value) for name, value in row.items()}
    for name, value in plain.items():
        if type(value) is str and not value.isascii():
            try:
                value.encode()
            except UnicodeEncodeError as error:
                found = f"{name!r} holds half of a surrogate pair at position {error.start}, which is not UTF-8."
                return Fault("not_utf8", found, do=SKIP_ADVICE)
    return plain


def to_plain(value: Any) -> Any:
    """A value in memory as a file would give it: no NumPy scalar, no subclass of str, None for pandas' own nulls."""
    if value is None or type(value) in (str, int, float, bool):
        return value
    if isinstance(value, np.datetime64 | np.timedelta64):
        return value.astype("datetime64[us]" if isinstance(value, np.datetime64) else "timedelta64[us]").item()
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, str):
        return str.__str__(value)
    return None if type(value).__name__ in ("NAType", "NaTType") else value
