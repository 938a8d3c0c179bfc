"""Pairs of a run and a user whose data contain it: each once, though there may be more than fit into memory."""

from __future__ import annotations

from collections.abc import Iterator
from typing import IO

import numpy as np
from numpy.typing import NDArray

from recollect.corpora.spill import append_values

Keys = NDArray[np.uint64]
HELD = 1 << 22
"""How many pairs are kept in memory before they are sorted and written: 32 MB, and as much again while sorting."""


class Pairs:
    """Pairs of a run and a user as one number each; sorted chunks of them are in an unnamed temporary file."""

    def __init__(self, held: int = HELD) -> None:
        """Begin with none.

        Args:
            held: How many are kept in memory.
        """
        self._held, self._pending, self._count = held, list[Keys](), 0
        self._file: IO[bytes] | None = None
        self._sizes: list[int] = []

    def add(self, runs: NDArray[np.int64], users: NDArray[np.int64]) -> None:
        """Add some pairs; each may be added repeatedly."""
        keys = np.unique((runs.astype(np.uint64) << np.uint64(32)) | users.astype(np.uint64))
        self._pending.append(keys)
        self._count += len(keys)
        if self._count > self._held:
            merged = np.unique(np.concatenate(self._pending))
            self._pending, self._count = [merged], len(merged)
            if self._count > self._held // 2:
                self._write()

    def iter_distinct(self) -> Iterator[tuple[NDArray[np.int64], NDArray[np.int64]]]:
        """Runs and users of all pairs, each once, by run, in slices that no run crosses."""
        if self._file is None:
            yield _split(np.unique(np.concatenate([_NONE, *self._pending])))
            return
        self._write()
        self._file.flush()
        stored = np.asarray(np.memmap(self._file, dtype=np.uint64, mode="r"))
        chunks = np.split(stored, np.cumsum(self._sizes)[:-1])
        borders = self._find_borders(chunks)
        starts = [0] * len(chunks)
        for border in [*borders, None]:
            ends = [len(chunk) if border is None else int(np.searchsorted(chunk, border)) for chunk in chunks]
            yield _split(np.unique(np.concatenate([c[a:b] for c, a, b in zip(chunks, starts, ends, strict=True)])))
            starts = ends

    def _find_borders(self, chunks: list[Keys]) -> Keys:
        """First keys of runs, between which there are about as many pairs as fit into memory."""
        sample = np.sort(np.concatenate([chunk[:: max(1, self._held // 256)] for chunk in chunks]))
        step = max(1, 256 // max(1, len(chunks)))
        return np.unique(sample[step::step] >> np.uint64(32)) << np.uint64(32)

    def _write(self) -> None:
        """Move the pairs in memory to the file."""
        keys = np.unique(np.concatenate([_NONE, *self._pending]))
        self._file = append_values(self._file, keys)
        self._sizes.append(len(keys))
        self._pending, self._count = [], 0


_NONE: Keys = np.empty(0, dtype=np.uint64)


def _split(keys: Keys) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Runs and users of some pairs."""
    return (keys >> np.uint64(32)).astype(np.int64), (keys & np.uint64(0xFFFFFFFF)).astype(np.int64)
