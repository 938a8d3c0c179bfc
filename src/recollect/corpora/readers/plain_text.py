"""`.txt`: a record per line, or the whole file as one running text."""

from __future__ import annotations

from collections.abc import Iterator

from recollect.corpora.faults import Fault
from recollect.corpora.readers.opening import lines, not_utf8, opened
from recollect.corpora.shards import Shard


def names(shard: Shard) -> list[str]:
    """The one column of a text file."""
    return ["text"]


def rows(shard: Shard) -> Iterator[tuple[int, dict[str, str] | Fault]]:
    """One row per line without its line end, or one for the whole file."""
    with opened(shard) as stream:
        if shard.running:
            yield 1, _row(stream.read().removeprefix(b"\xef\xbb\xbf"))
        else:
            for number, raw in lines(stream):
                yield number, _row(raw.rstrip(b"\r\n"))


def _row(raw: bytes) -> dict[str, str] | Fault:
    """The text of some bytes."""
    try:
        return {"text": raw.decode()}
    except UnicodeDecodeError as error:
        return not_utf8(error)
