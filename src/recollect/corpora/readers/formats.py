"""The table of formats."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from recollect.corpora.faults import Fault
from recollect.corpora.readers import arrays, delimited, hub, json_lines, memory, parquet, plain_text
from recollect.corpora.shards import Shard

Numbered = tuple[int, dict[str, Any] | Fault]


class Reader(NamedTuple):
    """What a format can say of a file."""

    names: Callable[[Shard], list[str]]
    """The columns that exist."""
    rows: Callable[[Shard, frozenset[str]], Iterator[Numbered]]
    """The rows with their numbers (lines, where there are any); a bad one is a fault. Columns that are not
    wanted may be left out."""
    counts: str = "line"
    """What the numbers count."""
    fixed: bool = True
    """Whether every row of a file has the same columns."""


_delimited = Reader(delimited.names, lambda shard, wanted: delimited.rows(shard))
READERS: dict[str, Reader] = {
    "jsonl": Reader(json_lines.names, lambda shard, wanted: json_lines.rows(shard), fixed=False),
    "csv": _delimited,
    "tsv": _delimited,
    "tsv-plain": _delimited,
    "txt": Reader(plain_text.names, lambda shard, wanted: plain_text.rows(shard)),
    "parquet": Reader(parquet.names, parquet.rows, "row"),
    "npz": Reader(arrays.names, arrays.rows, "row"),
    "hf": Reader(hub.names, hub.rows, "row"),
    "list": Reader(memory.read_list_columns, lambda shard, wanted: memory.read_list_rows(shard), "row", fixed=False),
    "pandas": Reader(memory.read_frame_columns, memory.read_frame_rows, "row"),
    "arrow": Reader(memory.read_table_columns, memory.read_table_rows, "row"),
}
