"""Resuming a search that was killed: the model's answers are logged as they are computed, and replayed in order.

A search is deterministic, so after a kill it makes the same steps again, until it comes to one without an answer. What
the model remembers of those nodes is not kept; it is computed again, from their paths, when the search goes on from
them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from recollect.models.model import Frontier, Stepper
from recollect.models.token_spelling import Spelling

FILE = "logprobs.f64"
"""In the audit's folder: the log-probabilities of every step, one after the other."""
_NUMBER = np.dtype("<f8")


@contextmanager
def resume_stepper(stepper: Stepper, folder: Path | None) -> Iterator[Stepper]:
    """The stepper, which replays its answers from before a kill; itself, if nothing is to be kept."""
    if folder is None:
        yield stepper
        return
    path = folder / FILE
    path.touch(mode=0o600)
    with path.open("r+b") as file:
        yield ReplayingStepper(stepper, file)


class ReplayingStepper:
    """A stepper whose answers are read from a file as far as it goes, and then appended to it."""

    def __init__(self, stepper: Stepper, file: BinaryIO) -> None:
        """Read from the start of the file."""
        self._stepper, self._file = stepper, file

    @property
    def spelling(self) -> Spelling:
        """How its tokens are spelled."""
        return self._stepper.spelling

    def encode(self, text: str) -> list[int]:
        """The tokens of a prefix as `start` reads it."""
        return self._stepper.encode(text)

    def start(self, prefix: str | Sequence[int], *, source: str | Sequence[int] | None = None) -> Frontier:
        """The one node that stands after `prefix`."""
        return self._stepper.start(prefix, source=source)

    def add_children(self, state: Frontier, parents: Sequence[int], token_ids: Sequence[int]) -> Frontier:
        """The new nodes that `step` would give, unread."""
        return self._stepper.add_children(state, parents, token_ids)

    def step(
        self,
        state: Frontier,
        parents: Sequence[int],
        token_ids: Sequence[int],
        *,
        among: Sequence[int] | None = None,
        last: NDArray[np.bool_] | None = None,
    ) -> tuple[Frontier, NDArray[Any]]:
        """Append one token to each parent: the new nodes, and what may follow them."""
        kept = self._read(len(parents), among)
        if kept is not None:
            return self._stepper.add_children(state, parents, token_ids), kept
        children, found = self._stepper.step(state, parents, token_ids, among=among, last=last)
        return children, self._append(found)

    def score_next(self, state: Frontier, *, among: Sequence[int] | None = None) -> NDArray[Any]:
        """Log-probabilities of what may follow these nodes."""
        kept = self._read(len(state), among)
        return self._append(self._stepper.score_next(state, among=among)) if kept is None else kept

    def _read(self, rows: int, among: Sequence[int] | None) -> NDArray[Any] | None:
        """The answers for so many nodes; None at the end of the file, which may have been truncated anywhere."""
        if among is None:
            return None
        begin, size = self._file.tell(), rows * len(among) * _NUMBER.itemsize
        found = self._file.read(size)
        if len(found) == size:
            return np.frombuffer(found, _NUMBER).reshape(rows, len(among))
        self._file.seek(begin)
        self._file.truncate()
        return None

    def _append(self, found: NDArray[Any]) -> NDArray[Any]:
        """The same, once it is written."""
        self._file.write(found.astype(_NUMBER).tobytes())
        self._file.flush()
        return found
