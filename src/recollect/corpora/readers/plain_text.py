"""`.txt`: a record per line, or the whole file as one running text."""

from __future__ import annotations

from collections.abc import Iterator

from recollect.corpora.readers.byte_streams import build_utf8_fault, iter_lines, open_shard
from recollect.corpora.readers.corpus_shards import Shard
from recollect.corpora.readers.faults import Fault
from recollect.corpora.readers.read_limits import RUNNING_TEXT_BYTES


def read_columns(shard: Shard) -> list[str]:
    """The one column of a plain text file."""
    return ["text"]


def iter_rows(shard: Shard) -> Iterator[tuple[int, dict[str, str] | Fault]]:
    """The rows of a plain text file: one per line without its line end, or one for the whole file."""
    with open_shard(shard) as stream:
        if shard.running_text:
            longest = max(RUNNING_TEXT_BYTES, shard.limits.record_bytes)
            whole = stream.read(longest + 1)
            if len(whole) > longest:
                raise shard.limits.build_long_record_error(shard.path)
            yield 1, _decode_plain_text(whole.removeprefix(b"\xef\xbb\xbf"))
        else:
            for number, raw in iter_lines(stream, shard):
                yield number, _decode_plain_text(raw.rstrip(b"\r\n"))


def _decode_plain_text(raw: bytes) -> dict[str, str] | Fault:
    """The plain text of some bytes."""
    try:
        return {"text": raw.decode()}
    except UnicodeDecodeError as error:
        return build_utf8_fault(error)
