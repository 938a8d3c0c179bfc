"""`.jsonl`: one JSON object a line."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import Any

from pydantic_core import from_json

from recollect.corpora.readers.byte_streams import build_utf8_fault, iter_lines, open_shard
from recollect.corpora.readers.corpus_shards import Shard
from recollect.corpora.readers.faults import SKIP_ADVICE, Fault, describe_type

PEEK_ROWS = 1000
"""How many records tell which columns there are."""


def read_columns(shard: Shard) -> list[str]:
    """The columns of the first good records of a JSON lines file, in the order in which they turn up."""
    good = (row for _, row in iter_rows(shard) if type(row) is dict)
    return list(dict.fromkeys(name for row in islice(good, PEEK_ROWS) for name in row))


def iter_rows(shard: Shard) -> Iterator[tuple[int, dict[str, Any] | Fault]]:
    """The rows of a JSON lines file, one per line with its number; blank lines hold no record."""
    with open_shard(shard) as stream:
        for number, raw in iter_lines(stream, shard):
            try:
                row = from_json(raw, cache_strings="keys")
            except ValueError as error:
                if not raw.isspace():
                    yield number, _build_json_fault(raw, error)
                continue
            if type(row) is dict:
                yield number, row
            else:
                yield number, Fault("not_an_object", f"this is JSON, but {describe_type(row)} and not an object.")


def _build_json_fault(raw: bytes, error: ValueError) -> Fault:
    """Why a line of JSON could not be parsed."""
    try:
        raw.decode()
    except UnicodeDecodeError as wrong:
        return build_utf8_fault(wrong)
    if b"\x00" in raw:
        return Fault("nul_character", f"byte {raw.index(0) + 1} of the line is a NUL.")
    return Fault("bad_json_line", f"this is not JSON: {str(error).replace(' at line 1', '')}.", do=SKIP_ADVICE)
