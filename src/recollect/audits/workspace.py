"""The desk of an audit: a place of its own to keep what is half done, and somebody to tell how far it is."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Final, Protocol


class Progress(Protocol):
    """Somebody who wants to know how far a long piece of work is."""

    def __call__(self, what: str, done: int, total: int | None, /) -> None:
        """So much of this is done, of so much in all (None: nobody knows yet)."""


def ignore_progress(what: str, done: int, total: int | None, /) -> None:
    """The progress of work that nobody watches."""


@dataclass(frozen=True, kw_only=True)
class Workspace:
    """Where an audit does its own work, such as a search that asks the model step by step.

    Nothing of it may move a number: whoever works at a bare desk finds the same, only not as patiently watched, and
    from the start again after it was killed.
    """

    folder: Path | None = None
    """A folder that is this audit's alone, there and readable by its owner only; None if nothing is to be kept.
    It is the same again for the same settings, models, corpora and seed, and only then, so what lies there may be
    gone on with. Whatever is put there is written whole (`files.write_atomically`)."""
    progress: Progress = ignore_progress
    """Told now and then how far the work is: `desk.progress("walking", steps, most)`. It is cheap to call."""


NO_WORKSPACE: Final = Workspace()
"""Nobody watches, and nothing is kept."""
