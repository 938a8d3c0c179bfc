"""The journal of a search: a search that was killed resumes by replaying the log-probabilities that it keeps.

A search is deterministic, so after a kill it makes the same steps again, until it comes to one that is not in the
journal. To end with the same numbers to the last bit, it works in segments: after each segment the model forgets all
nodes, killed or not, so that what follows depends on the paths alone. A segment that a kill cut off is computed again.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from recollect.files import Journal
from recollect.models.model import Frontier, Stepper
from recollect.models.tokens.token_spelling import Spelling

FILE = "search.journal"
"""In the audit's folder: the log-probabilities of every step."""
REVISION: Final = 2
"""Raised when a search asks for other tokens or in another order than before: its journal then begins anew."""
SEGMENT = 4096
"""Nodes after which a segment ends; no more are computed again after a kill."""
_SEGMENT_END: Final = b""
_NUMBER = np.dtype("<f8")


@contextmanager
def resume_stepper(stepper: Stepper, folder: Path | None, *, owner: str = "") -> Iterator[Stepper]:
    """The stepper of a search, which replays from its journal what it computed before a kill.

    Args:
        stepper: The model step by step.
        folder: Where the journal is; None to keep nothing.
        owner: The address of the search: a journal of another one is begun anew.
    """
    if folder is None:
        yield JournalStepper(stepper, None)
        return
    with Journal.open(folder / FILE, owner=f"{owner} {REVISION}", flush_seconds=10.0) as journal:
        yield JournalStepper(stepper, journal)


class JournalStepper:
    """A stepper whose log-probabilities come from a journal as far as it goes, and are then appended to it."""

    def __init__(self, stepper: Stepper, journal: Journal | None) -> None:
        """Read all whole segments of the journal; the rest of it is dropped.

        Args:
            stepper: The model step by step.
            journal: What was computed before; None to keep nothing.
        """
        self._stepper, self._journal, self._computed = stepper, journal, 0
        self._pending = iter(() if journal is None else _iter_whole_segments(journal))

    @property
    def spelling(self) -> Spelling:
        """How its tokens are spelled."""
        return self._stepper.spelling

    def encode(self, text: str) -> list[int]:
        """The tokens of a prefix as `start` reads it."""
        return self._stepper.encode(text)

    def start(self, prefix: str | Sequence[int], *, source: str | Sequence[int] | None = None) -> Frontier:
        """The one node that is after `prefix`."""
        return self._stepper.start(prefix, source=source)

    def add_children(self, state: Frontier, parents: Sequence[int], token_ids: Sequence[int]) -> Frontier:
        """The new nodes that `step` would give, unread."""
        return self._stepper.add_children(state, parents, token_ids)

    def forget(self) -> None:
        """Drop what the model remembers of all nodes."""
        self._stepper.forget()

    def step(
        self,
        state: Frontier,
        parents: Sequence[int],
        token_ids: Sequence[int],
        *,
        among: Sequence[int] | None = None,
        least: NDArray[np.float64] | None = None,
        last: NDArray[np.bool_] | None = None,
    ) -> tuple[Frontier, NDArray[Any]]:
        """`Stepper.step`, replayed from the journal or appended to it."""
        kept = next(self._pending, None)
        if kept is not None:
            return self._stepper.add_children(state, parents, token_ids), self._count(kept, replayed=True)
        children, found = self._stepper.step(state, parents, token_ids, among=among, least=least, last=last)
        return children, self._count(self._append(found), replayed=False)

    def score_next(
        self, state: Frontier, *, among: Sequence[int] | None = None, least: NDArray[np.float64] | None = None
    ) -> NDArray[Any]:
        """Log-probabilities of what may follow these nodes."""
        kept = next(self._pending, None)
        if kept is not None:
            return self._count(kept, replayed=True)
        return self._count(self._append(self._stepper.score_next(state, among=among, least=least)), replayed=False)

    def _append(self, found: NDArray[Any]) -> NDArray[Any]:
        """The same in the precision in which it is kept, once it is written."""
        values = found.astype(_NUMBER)
        if self._journal is not None:
            self._journal.append(json.dumps(values.shape).encode() + b"\n" + values.tobytes())
        return values

    def _count(self, found: NDArray[Any], *, replayed: bool) -> NDArray[Any]:
        """The same; after the last nodes of a segment the model forgets everything."""
        self._computed += len(found)
        if self._computed >= SEGMENT:
            self._computed = 0
            self._stepper.forget()
            if self._journal is not None and not replayed:
                self._journal.append(_SEGMENT_END)
        return found


def _iter_whole_segments(journal: Journal) -> Iterator[NDArray[Any]]:
    """The log-probabilities in all whole segments of a search's journal; what comes after them leaves the journal."""
    whole = max((number for number, entry in enumerate(journal, start=1) if entry == _SEGMENT_END), default=0)
    journal.keep_first(whole)
    for entry in journal:
        if entry != _SEGMENT_END:
            shape, _, values = entry.partition(b"\n")
            yield np.frombuffer(values, _NUMBER).reshape(json.loads(shape))
