"""`.npz` with `x` and `y`: rows streamed out of the archive, never an array loaded whole, never a pickle."""

from __future__ import annotations

import tokenize
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import IO, Any

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray

from recollect.corpora.readers.byte_streams import build_damaged_stream_error, open_seekable
from recollect.corpora.readers.corpus_shards import Shard
from recollect.errors import CorpusError

BLOCK_BYTES = 1 << 20
"""Bytes of `x` that are read at a time (one row, where a row is larger)."""


def read_columns(shard: Shard) -> list[str]:
    """The columns of a `.npz` archive: its arrays."""
    with _open_archive(shard) as archive:
        return [name.removesuffix(".npy") for name in archive.namelist()]


def iter_rows(shard: Shard, wanted: frozenset[str]) -> Iterator[tuple[int, dict[str, Any]]]:
    """The rows of a `.npz` archive, one per entry of the arrays, numbered from 1; only the arrays that are wanted."""
    with _open_archive(shard) as archive, ExitStack() as stack:
        present = [name for name in sorted(wanted) if f"{name}.npy" in archive.namelist()]
        arrays = {name: _ArchivedArray.open(archive, name, shard, stack) for name in present}
        count = _check_array_lengths(arrays, shard)
        step = max(1, BLOCK_BYTES // max(array.width for array in arrays.values()))
        for start in range(0, count, step):
            count_here = min(step, count - start)
            blocks = {name: array.read(count_here) for name, array in arrays.items()}
            for i in range(count_here):
                yield start + i + 1, {name: block[i] for name, block in blocks.items()}
        for array in arrays.values():
            array.finish()


@dataclass(frozen=True)
class _ArchivedArray:
    """One array of the archive, open at its next row."""

    name: str
    stream: IO[bytes]
    dtype: np.dtype[Any]
    shape: tuple[int, ...]
    shard: Shard

    @classmethod
    def open(cls, archive: zipfile.ZipFile, name: str, shard: Shard, stack: ExitStack) -> _ArchivedArray:
        """The array behind its header."""
        entry = archive.getinfo(f"{name}.npy")
        stream = stack.enter_context(archive.open(entry))
        shape, fortran, dtype = _read_array_header(stream)
        array = cls(name, stream, dtype, shape, shard)
        array.check(fortran=fortran, size=entry.file_size - stream.tell())
        return array

    @property
    def width(self) -> int:
        """Bytes in one row."""
        return int(np.prod(self.shape[1:], dtype=object) * self.dtype.itemsize)

    def check(self, *, fortran: bool, size: int) -> None:
        """Refuse an array that cannot be read row by row.

        Args:
            fortran: Whether its columns are one after the other.
            size: How many bytes follow the header.
        """
        if self.dtype.hasobject:
            raise self.build_error("contains Python objects, which need pickle", "Save numbers or fixed-width strings.")
        if self.dtype.kind not in "biufU" or not self.shape:
            raise self.build_error(
                f"has the type {self.dtype} and shape {self.shape}", "Save one row of numbers a record."
            )
        if fortran and len(self.shape) > 1:
            raise self.build_error("is stored column by column", "Save numpy.ascontiguousarray of it.")
        if min(self.shape) < 0 or self.width < 1 or self.width * self.shape[0] != size:
            raise build_damaged_stream_error(
                self.shard, ValueError(f"{self.name} of shape {self.shape} has {size} bytes")
            )

    def build_error(self, found: str, do: str) -> CorpusError:
        """The error for an array that is not what a corpus needs."""
        return CorpusError(f"The array {self.name!r} in {self.shard.path} {found}.", do=do, code="unsuitable_array")

    def read(self, count: int) -> list[Any] | list[NDArray[Any]]:
        """The next rows: plain values of a column, arrays of anything wider."""
        raw = self.stream.read(count * self.width)
        if len(raw) < count * self.width:
            raise EOFError(f"{self.name} ends too early")
        values = np.frombuffer(raw, dtype=self.dtype).reshape(count, *self.shape[1:])
        if self.name == "x":
            return [row.copy() for row in values]  # so that one row that is kept does not keep its whole block
        plain: list[Any] = values.reshape(count).tolist()
        return plain

    def finish(self) -> None:
        """Read past the end, where the archive's checksum is compared."""
        self.stream.read(1)


def _read_array_header(stream: IO[bytes]) -> tuple[tuple[int, ...], bool, np.dtype[Any]]:
    """Shape, order and type of an array; NumPy leaves some damage to its header unexplained."""
    try:
        version = npy.read_magic(stream)
        return npy.read_array_header_1_0(stream) if version == (1, 0) else npy.read_array_header_2_0(stream)
    except (tokenize.TokenError, TypeError, SyntaxError) as error:
        raise ValueError(f"the header of an array cannot be read ({error})") from error


def _check_array_lengths(arrays: dict[str, _ArchivedArray], shard: Shard) -> int:
    """How many records there are, the same in every array."""
    for name, array in arrays.items():
        if name == "x" and len(array.shape) < 2:
            raise array.build_error(f"has the shape {array.shape}", "Save one row of numbers a record.")
        if name != "x" and array.width != array.dtype.itemsize:
            raise array.build_error(f"has the shape {array.shape}", "Save one value a record.")
    lengths = {name: array.shape[0] for name, array in arrays.items()}
    if len(set(lengths.values())) > 1:
        described = ", ".join(f"{name} has {length:,}" for name, length in lengths.items())
        raise CorpusError(
            f"The arrays in {shard.path} differ in length: {described}.",
            do="Save one row a record in each.",
            code="unequal_lengths",
        )
    return next(iter(lengths.values()))


def _refuse_archive_bomb(archive: zipfile.ZipFile, shard: Shard) -> None:
    """Refuse a `.npz` archive that expands without end; an array never reads past the size that it states."""
    size = shard.size * (shard.limits.max_expansion if shard.compression else 1)
    if sum(entry.file_size for entry in archive.infolist()) > shard.limits.get_expanded_bytes(size):
        raise shard.limits.build_expansion_error(shard.path)


@contextmanager
def _open_archive(shard: Shard) -> Iterator[zipfile.ZipFile]:
    """The open `.npz` archive of arrays."""
    with open_seekable(shard) as file:
        try:
            with zipfile.ZipFile(file) as archive:
                _refuse_archive_bomb(archive, shard)
                yield archive
        except (zipfile.BadZipFile, zlib.error, EOFError, ValueError, NotImplementedError, RuntimeError) as error:
            raise build_damaged_stream_error(shard, error) from error
