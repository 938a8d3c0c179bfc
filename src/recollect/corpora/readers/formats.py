"""The table of formats."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from recollect.corpora.faults import Fault
from recollect.corpora.readers import json_lines, plain_text
from recollect.corpora.shards import Shard

Numbered = tuple[int, Any | Fault]


class Reader(NamedTuple):
    """What a format can say of a file."""

    names: Callable[[Shard], list[str]]
    rows: Callable[[Shard, frozenset[str]], Iterator[Numbered]]


READERS: dict[str, Reader] = {
    "jsonl": Reader(json_lines.names, lambda shard, _: json_lines.rows(shard)),
    "txt": Reader(plain_text.names, lambda shard, _: plain_text.rows(shard)),
}


def names_of(shard: Shard) -> list[str]:
    """The columns of a file."""
    return READERS[shard.format].names(shard)


def rows_of(shard: Shard, used: frozenset[str]) -> Iterator[Numbered]:
    """The rows of a file with their numbers (lines, where it has any); a bad one is a fault.

    Args:
        shard: The file.
        used: The columns that are needed; others may be left out.
    """
    return READERS[shard.format].rows(shard, used)
