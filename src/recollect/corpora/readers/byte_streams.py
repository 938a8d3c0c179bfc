"""Files opened for reading, unpacked on the way; damage becomes one clear error."""

from __future__ import annotations

import gzip
import hashlib
import io
import shutil
import tempfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import IO, Any

from recollect.corpora.readers.corpus_shards import Shard, build_unreadable_error
from recollect.corpora.readers.faults import Fault
from recollect.corpora.readers.object_storage import is_in_object_storage, open_object
from recollect.errors import CorpusError

BUFFER_BYTES = 1 << 18
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"


@contextmanager
def open_shard(shard: Shard) -> Iterator[IO[bytes]]:
    """The stream of a file's bytes, unpacked. One that is cut short or damaged is an error, never a shorter corpus."""
    shard.check_unchanged()
    try:
        with io.BufferedReader(_CheckedStream(shard), BUFFER_BYTES) as stream:
            yield stream
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise build_damaged_stream_error(shard, error) from error
    except OSError as error:
        # Only the system's own errors carry a number; those without come from the unpacking.
        raise (
            build_unreadable_error(shard.path, error) if error.errno else build_damaged_stream_error(shard, error)
        ) from error


class _CheckedStream(io.RawIOBase):
    """The content of a file, unpacked: it must not expand without end, nor differ from what an earlier pass read."""

    def __init__(self, shard: Shard) -> None:
        super().__init__()
        self._shard, self._source, self._whole = shard, _open_decompressed(shard), True
        self._hasher, self._read = hashlib.blake2b(digest_size=16), 0
        size = shard.size
        self._allowed = shard.limits.get_expanded_bytes(size) if shard.compression else None

    def readinto(self, buffer: Any) -> int:
        """The next bytes; at the end of a pass over the whole file, its digest is compared."""
        count: int = self._source.readinto(buffer) or 0  # type: ignore[attr-defined]
        self._read += count
        if self._allowed is not None and self._read > self._allowed:
            raise self._shard.limits.build_expansion_error(self._shard.path)
        if self._whole:
            self._hasher.update(memoryview(buffer)[:count])
            if not count:
                self._shard.check_digest(self._hasher.hexdigest())
        return count

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        """Jump about in a file that is not compressed; there is no pass over all of it then."""
        self._whole = False
        return self._source.seek(offset, whence)

    def tell(self) -> int:
        """Where in the file the next byte is."""
        return self._source.tell()

    def readable(self) -> bool:
        """It can be read."""
        return True

    def seekable(self) -> bool:
        """Whether one can jump about."""
        return not self._shard.compression

    def close(self) -> None:
        """Close the file."""
        self._source.close()
        super().close()


def _open_decompressed(shard: Shard) -> IO[bytes]:
    """A stream of the bytes of a file, unpacked on the way."""
    source = open_object(shard.path) if is_in_object_storage(shard.path) else shard.path
    if shard.compression == "gz":
        return gzip.open(source)  # type: ignore[return-value]
    if shard.compression == "zst":
        import pyarrow as pa

        return pa.input_stream(source, compression="zstd")  # type: ignore[no-any-return]
    return open(source, "rb", buffering=0) if isinstance(source, str) else source  # noqa: PTH123 - the caller closes it


@contextmanager
def open_seekable(shard: Shard) -> Iterator[IO[bytes]]:
    """A seekable stream of a file's bytes; a packed file is unpacked into an unnamed temporary one."""
    with open_shard(shard) as stream:
        if not shard.compression:
            while stream.read(BUFFER_BYTES):
                pass  # one pass over the whole file, which compares its digest; then jump about
            stream.seek(0)
            yield stream
            return
        with tempfile.TemporaryFile(prefix="recollect-") as whole:
            shutil.copyfileobj(stream, whole, BUFFER_BYTES)
            whole.seek(0)
            yield whole


def build_damaged_stream_error(shard: Shard, error: Exception) -> CorpusError:
    """The error for a byte stream whose packing is broken."""
    return CorpusError(
        f"{shard.path} is damaged or cut short: {error}.",
        do="Make or fetch the file again; if it is not compressed, its name should not end as if it were.",
        code="damaged_file",
    )


def iter_lines(stream: IO[bytes], shard: Shard) -> Iterator[tuple[int, bytes]]:
    """Numbered lines from 1, ended by line feeds alone; a byte order mark before the first is taken off."""
    longest = shard.limits.record_bytes
    for number, raw in enumerate(iter(partial(stream.readline, longest + 1), b""), 1):
        if len(raw) > longest:
            raise shard.limits.build_long_record_error(f"{shard.path}, line {number}")
        if number == 1 and raw.startswith(_BYTE_ORDER_MARK):
            raw = raw[3:]  # noqa: PLW2901 - the mark is not part of the line
        yield number, raw


def build_utf8_fault(error: UnicodeDecodeError) -> Fault:
    """The fault of bytes of a stream that are no UTF-8 text."""
    return Fault(
        "not_utf8",
        f"byte {error.start + 1} of it (0x{error.object[error.start]:02x}) is not UTF-8.",
        do="Convert the file to UTF-8 (for example with iconv), or skip bad records with --skip-bad (skip_bad=True).",
    )
