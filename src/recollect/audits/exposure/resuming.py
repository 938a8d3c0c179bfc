"""A search that was killed goes on: what the model said is written down as it is said, and read back in order.

A search is deterministic, so after a kill it asks the same again, until it comes to what was not yet answered. What the
model remembers of those nodes is not kept; it is computed again, from their paths, when the search goes on from them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from recollect.models.model import Frontier, Stepper
from recollect.models.spelling import Spelling

_FILE = "said.f64"
_NUMBER = np.dtype("<f8")


@contextmanager
def going_on(stepper: Stepper, folder: Path | None) -> Iterator[Stepper]:
    """The stepper, which reads back what it said before a kill; itself, if nothing is to be kept."""
    if folder is None:
        yield stepper
        return
    path = folder / _FILE
    path.touch(mode=0o600)
    with path.open("r+b") as file:
        yield Remembering(stepper, file)


class Remembering:
    """A stepper whose answers are read from a file as far as it goes, and then appended to it."""

    def __init__(self, stepper: Stepper, file: BinaryIO) -> None:
        """Read from the beginning of the file."""
        self._stepper, self._file = stepper, file

    @property
    def spelling(self) -> Spelling:
        """How its symbols are spelled."""
        return self._stepper.spelling

    def symbols(self, text: str) -> list[int]:
        """The symbols of a prefix as `start` reads it."""
        return self._stepper.symbols(text)

    def start(self, prefix: str | Sequence[int], *, source: str | Sequence[int] | None = None) -> Frontier:
        """The one node that stands after `prefix`."""
        return self._stepper.start(prefix, source=source)

    def below(self, state: Frontier, parents: Sequence[int], symbols: Sequence[int]) -> Frontier:
        """The new nodes that `step` would give, unread."""
        return self._stepper.below(state, parents, symbols)

    def step(
        self,
        state: Frontier,
        parents: Sequence[int],
        symbols: Sequence[int],
        *,
        among: Sequence[int] | None = None,
        last: NDArray[np.bool_] | None = None,
    ) -> tuple[Frontier, NDArray[Any]]:
        """Append one symbol to each parent: the new nodes, and what may follow them."""
        said = self._said(len(parents), among)
        if said is not None:
            return self._stepper.below(state, parents, symbols), said
        children, found = self._stepper.step(state, parents, symbols, among=among, last=last)
        return children, self._written(found)

    def following(self, state: Frontier, *, among: Sequence[int] | None = None) -> NDArray[Any]:
        """Log-probabilities of what may follow these nodes."""
        said = self._said(len(state), among)
        return self._written(self._stepper.following(state, among=among)) if said is None else said

    def _said(self, rows: int, among: Sequence[int] | None) -> NDArray[Any] | None:
        """What was said about so many nodes; None at the end of the file, which may have been cut off anywhere."""
        if among is None:
            return None
        begin, size = self._file.tell(), rows * len(among) * _NUMBER.itemsize
        found = self._file.read(size)
        if len(found) == size:
            return np.frombuffer(found, _NUMBER).reshape(rows, len(among))
        self._file.seek(begin)
        self._file.truncate()
        return None

    def _written(self, found: NDArray[Any]) -> NDArray[Any]:
        """The same, once it is written down."""
        self._file.write(found.astype(_NUMBER).tobytes())
        self._file.flush()
        return found
