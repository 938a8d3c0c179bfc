"""Distinct and repeated strings among any number of them, in bounded memory."""

from __future__ import annotations

import hashlib
import sys
import tempfile
from collections.abc import Iterator
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from recollect.errors import CorpusError

Hashes = NDArray[np.uint64]
RUN_LENGTH = 1 << 16
"""How many hashes are held in memory before they are sorted and written down."""
SLICE_LENGTH = 1 << 19
"""About how many are held while they are counted."""


def hash64(text: str) -> bytes:
    """Eight bytes that are the same for the same string in every process, as `Spill` keeps them."""
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest()


def hash_number(text: str) -> int:
    """The hash of a string as a number, as `Spill` counts it."""
    return int.from_bytes(hash64(text), sys.byteorder)


def append_values(file: IO[bytes] | None, values: NDArray[Any]) -> IO[bytes]:
    """The unnamed temporary file that values are spilt to, made if there is none, with these values at its end.

    Raises:
        CorpusError: There is no room for them.
    """
    try:
        if file is None:
            file = tempfile.TemporaryFile(prefix="recollect-")  # noqa: SIM115 - lives as long as whoever spills
        file.write(values.tobytes())
    except OSError as error:
        raise CorpusError(
            f"Cannot write to the temporary folder {tempfile.gettempdir()}: {error.strerror}.",
            do="Free some space there, or name another folder in the environment variable TMPDIR.",
            code="no_temporary_space",
        ) from error
    return file


class Spill:
    """64-bit hashes of strings; sorted runs of them are in an unnamed temporary file.

    What is held in memory: one run and, while counting, one slice that goes through all runs.
    """

    def __init__(self) -> None:
        self._pending = bytearray()
        self._file: IO[bytes] | None = None
        self._lengths: list[int] = []

    def add(self, text: str) -> None:
        """Take one string into account."""
        self._pending += hash64(text)
        if len(self._pending) >= 8 * RUN_LENGTH:
            self._write(self._take_run())

    def _take_run(self) -> Hashes:
        """The pending hashes in order, each at most twice: that is enough to know that one came again."""
        run = np.sort(np.frombuffer(bytes(self._pending), dtype=np.uint64))
        self._pending.clear()
        third = np.zeros(len(run), dtype=bool)
        third[2:] = run[2:] == run[:-2]
        return run[~third]

    def _write(self, run: Hashes) -> None:
        self._file = append_values(self._file, run)
        self._lengths.append(len(run))

    def _iter_slices(self) -> Iterator[Hashes]:
        """All hashes in ascending order, in slices that no hash crosses."""
        if self._pending or self._file is None:
            last = self._take_run()
            if self._file is None:
                yield last
                self._pending += last.tobytes()
                return
            self._write(last)
        self._file.flush()
        stored = np.asarray(np.memmap(self._file, dtype=np.uint64, mode="r"))
        runs = np.split(stored, np.cumsum(self._lengths)[:-1])
        count = -(-len(stored) // SLICE_LENGTH)
        starts = [0] * len(runs)
        for index in range(1, count + 1):
            # the last border is no number of 64 bits, so the rest of each run is taken without a search
            border = np.uint64(index * 2**64 // count) if index < count else None
            ends = [len(run) if border is None else int(np.searchsorted(run, border)) for run in runs]
            yield np.sort(np.concatenate([run[a:b] for run, a, b in zip(runs, starts, ends, strict=True)]))
            starts = ends

    def count_distinct(self) -> int:
        """How many different strings there were."""
        return sum(
            len(hashes) and 1 + int(np.count_nonzero(hashes[1:] != hashes[:-1])) for hashes in self._iter_slices()
        )

    def iter_repeated(self) -> Iterator[Hashes]:
        """The hashes that came more than once, each once, slice by slice; slices without any are left out.

        Two strings may share a hash: whoever needs certainty compares the strings.
        """
        for hashes in self._iter_slices():
            again = np.unique(hashes[1:][hashes[1:] == hashes[:-1]])
            if len(again):
                yield again
