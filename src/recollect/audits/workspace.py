"""The workspace of an audit: a folder for unfinished work, and a callback that reports progress."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final, Protocol

if TYPE_CHECKING:
    from recollect.models.model import Steppable, Stepper


class Progress(Protocol):
    """A callback that reports the progress of a long computation."""

    def __call__(self, what: str, done: int, total: int | None, /) -> None:
        """Report that `done` of `total` steps are finished (None: the total is not known yet)."""


NOTE_MARK: Final = " · "
"""Divides what is being done from how fast it goes."""


def add_notes(progress: Progress, what: str) -> Callable[[int, int, str], None]:
    """The progress callback of a workspace, which also says how fast it goes."""
    return lambda done, total, note: progress(f"{what}{NOTE_MARK}{note}" if note else what, done, total)


def ignore_progress(what: str, done: int, total: int | None, /) -> None:
    """The progress callback of a workspace that nobody watches."""


def _open_here(model: Steppable) -> Stepper:
    """The stepper that a workspace opens by default: in this process."""
    return model.stepper()


@dataclass(frozen=True, kw_only=True)
class Workspace:
    """Where an audit does its own work, such as a search that queries the model step by step.

    It may change no number: without a folder and a callback an audit finds the same, but starts again after a kill.
    """

    folder: Path | None = None
    """An existing folder for this audit alone, readable only by its owner; None if nothing is to be kept.
    Equal settings, models, corpora and seed, and only those, give the same folder again, so that an audit can resume
    from what it contains. Files in it are written atomically (`files.write_atomically`)."""
    progress: Progress = ignore_progress
    """Called regularly with the progress of the work: `workspace.progress("searching", steps, limit)`. Cheap to
    call."""
    open_stepper: Callable[[Steppable], Stepper] = _open_here
    """The model step by step: in this process, or on the workers of a cluster."""


NO_WORKSPACE: Final = Workspace()
"""Without a folder and without progress reports."""
