"""The table of formats."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from recollect.corpora.readers import arrays, delimited_text, hub, json_lines, memory, parquet, plain_text
from recollect.corpora.readers.corpus_shards import Shard
from recollect.corpora.readers.faults import Fault

NumberedRow = tuple[int, dict[str, Any] | Fault]


class Reader(NamedTuple):
    """What a format can say of a file."""

    read_columns: Callable[[Shard], list[str]]
    """The columns that exist."""
    iter_rows: Callable[[Shard, frozenset[str]], Iterator[NumberedRow]]
    """The rows with their numbers (lines, where there are any); a bad one is a fault. Columns that are not
    wanted may be left out."""
    row_unit: str = "line"
    """What the numbers count."""
    fixed_columns: bool = True
    """Whether every row of a file has the same columns."""


_delimited = Reader(delimited_text.read_columns, lambda shard, wanted: delimited_text.iter_rows(shard))
READERS: dict[str, Reader] = {
    "jsonl": Reader(json_lines.read_columns, lambda shard, wanted: json_lines.iter_rows(shard), fixed_columns=False),
    "csv": _delimited,
    "tsv": _delimited,
    "tsv-plain": _delimited,
    "txt": Reader(plain_text.read_columns, lambda shard, wanted: plain_text.iter_rows(shard)),
    "parquet": Reader(parquet.read_columns, parquet.iter_rows, "row"),
    "npz": Reader(arrays.read_columns, arrays.iter_rows, "row"),
    "hf": Reader(hub.read_columns, hub.iter_rows, "row"),
    "list": Reader(
        memory.read_list_columns, lambda shard, wanted: memory.read_list_rows(shard), "row", fixed_columns=False
    ),
    "pandas": Reader(memory.read_frame_columns, memory.read_frame_rows, "row"),
    "arrow": Reader(memory.read_table_columns, memory.read_table_rows, "row"),
}
