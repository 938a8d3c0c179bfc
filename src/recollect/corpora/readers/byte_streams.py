"""Files opened for reading, unpacked on the way; damage becomes one clear error."""

from __future__ import annotations

import gzip
import io
import shutil
import tempfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from typing import IO

from recollect.corpora.faults import Fault
from recollect.corpora.shards import Shard, build_unreadable_error
from recollect.errors import CorpusError

BUFFER_BYTES = 1 << 18
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"


@contextmanager
def open_shard(shard: Shard) -> Iterator[IO[bytes]]:
    """The bytes of a file, unpacked. A file that is cut short or damaged is an error, never a shorter corpus."""
    shard.check_unchanged()
    try:
        with _decompress(shard) as stream:
            yield stream
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise build_damaged_error(shard, error) from error
    except OSError as error:
        # Only the system's own errors carry a number; those without come from the unpacking.
        raise (
            build_unreadable_error(shard.path, error) if error.errno else build_damaged_error(shard, error)
        ) from error


def _decompress(shard: Shard) -> IO[bytes]:
    """A buffered stream of the file's content."""
    if shard.compression == "gz":
        return io.BufferedReader(gzip.open(shard.path), BUFFER_BYTES)
    if shard.compression == "zst":
        import pyarrow as pa

        return io.BufferedReader(pa.input_stream(shard.path, compression="zstd"), BUFFER_BYTES)
    return open(shard.path, "rb", buffering=BUFFER_BYTES)  # noqa: PTH123 - the caller closes it


@contextmanager
def open_seekable(shard: Shard) -> Iterator[IO[bytes]]:
    """The bytes of a file in which one can jump about; a packed file is unpacked into an unnamed temporary one."""
    with open_shard(shard) as stream:
        if not shard.compression:
            yield stream
            return
        with tempfile.TemporaryFile(prefix="recollect-") as whole:
            shutil.copyfileobj(stream, whole, BUFFER_BYTES)
            whole.seek(0)
            yield whole


def build_damaged_error(shard: Shard, error: Exception) -> CorpusError:
    """The error for a file whose packing is broken."""
    return CorpusError(
        f"{shard.path} is damaged or cut short: {error}.",
        do="Make or fetch the file again; if it is not compressed, its name should not end as if it were.",
        code="damaged_file",
    )


def iter_lines(stream: IO[bytes]) -> Iterator[tuple[int, bytes]]:
    """Numbered lines from 1, ended by line feeds alone; a byte order mark before the first is taken off."""
    for number, raw in enumerate(stream, 1):
        if number == 1 and raw.startswith(_BYTE_ORDER_MARK):
            raw = raw[3:]  # noqa: PLW2901 - the mark is not part of the line
        yield number, raw


def build_utf8_fault(error: UnicodeDecodeError) -> Fault:
    """The fault of bytes that are no UTF-8 text."""
    return Fault(
        "not_utf8",
        f"byte {error.start + 1} of it (0x{error.object[error.start]:02x}) is not UTF-8.",
        do="Convert the file to UTF-8 (for example with iconv), or skip bad records with --skip-bad (skip_bad=True).",
    )
