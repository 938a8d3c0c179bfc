"""A store of predicted runs: one small row for each place, in bounded memory until it is known which are unique."""

from __future__ import annotations

from collections.abc import Iterator
from typing import IO

import numpy as np
from numpy.typing import NDArray

from recollect.corpora.spill import append_values

HELD = 1 << 20
"""How many rows are kept in memory before they are written: 40 MB."""
ROW = np.dtype(
    [
        ("k", np.int32),
        ("run", np.int32),
        ("record", np.int64),
        ("start", np.int32),
        ("first", np.int32),
        ("words", np.int32),
        ("nats", np.float64),
        ("reference", np.float64),
    ]
)
"""The value of k, which run, in which record of the corpus by its index, from which character and which of its words
on, how many words, and how surprised the model and the reference are, in nats: NaN where that is not known."""
Rows = NDArray[np.void]


class RunStore:
    """Rows in order of arrival; those that are not in memory are in an unnamed temporary file."""

    def __init__(self, held: int = HELD) -> None:
        """Begin with none.

        Args:
            held: How many rows are kept in memory.
        """
        self._held, self._pending, self._count = held, list[Rows](), 0
        self._file: IO[bytes] | None = None

    def add(self, rows: Rows) -> None:
        """Add some rows."""
        self._pending.append(rows)
        self._count += len(rows)
        if self._count > self._held:
            self._file = append_values(self._file, np.concatenate(self._pending))
            self._pending, self._count = [], 0

    def select(self, chosen: NDArray[np.bool_]) -> Rows:
        """The rows of chosen runs.

        Args:
            chosen: For each run, whether its rows are wanted.
        """
        return np.concatenate([np.empty(0, ROW), *(rows[chosen[rows["run"]]] for rows in self._iterate())])

    def _iterate(self) -> Iterator[Rows]:
        """All rows, some at a time."""
        if self._file is not None:
            self._file.flush()
            stored = np.memmap(self._file, dtype=ROW, mode="r")
            for begin in range(0, len(stored), self._held):
                yield np.array(stored[begin : begin + self._held])
        yield from self._pending


def select_best(rows: Rows) -> tuple[Rows, dict[tuple[int, int], int]]:
    """The rows in which each run leaks most (all of them, where several are tied), and how many rows each run has.

    Args:
        rows: Rows of any runs and k.
    """
    gain = np.nan_to_num(rows["reference"] - rows["nats"], nan=-np.inf)
    order = np.lexsort((gain, rows["run"], rows["k"]))
    rows, gain = rows[order], gain[order]
    last = np.flatnonzero(np.append((np.diff(rows["run"]) != 0) | (np.diff(rows["k"]) != 0), True))[: len(rows)]
    sizes = np.diff(np.concatenate([[-1], last]))
    kept = gain == np.repeat(gain[last], sizes)
    keys = zip(rows["k"][last].tolist(), rows["run"][last].tolist(), strict=True)
    return rows[kept], dict(zip(keys, sizes.tolist(), strict=True))
