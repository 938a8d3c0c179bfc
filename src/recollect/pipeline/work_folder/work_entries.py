"""The entries of a work folder (stores, models, workspaces) with their sizes, how they go, and a limit on their sum."""

from __future__ import annotations

import os
import re
import secrets
import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from recollect.errors import PlanError, StoreError
from recollect.files import is_locked, refuse_foreign_folder
from recollect.models.loading.known_models import KNOWN_MODELS
from recollect.pipeline.work_folder.run_notes import RUNS

ENTRY_PARTS: Final = ("answers", "models", "audits")
"""The folders of a work folder whose folders are each of one store, model or workspace."""
ENDPOINTS: Final = "endpoints"
"""The folder in which the answers of servers and what was spent on them are kept."""
WORK_PARTS: Final = (*ENTRY_PARTS, "fleets", RUNS, ENDPOINTS, KNOWN_MODELS)
"""All folders of a work folder."""
_ENTRY: Final = re.compile(r"([a-z][a-z0-9_-]*-)?[0-9a-f]{32}$")
"""How folders of stores and models are called, and with the name of an audit before it, of workspaces."""
DELETED: Final = ".deleted-"
"""How the name of a folder begins that is being deleted."""


@dataclass(frozen=True, kw_only=True)
class WorkItem:
    """Something in a work folder that goes, or may go."""

    path: Path
    reason: str
    """Why it goes."""
    size: int
    """In bytes."""
    in_use: bool = False
    """A run works in it at this moment, and it is left alone."""


def refuse_other_folder(work: Path) -> None:
    """Refuse a folder that is no work folder, or of which a part leads elsewhere: nothing of it may be deleted.

    Raises:
        PlanError: It is none.
        StoreError: A part of it is a link, or everybody can write into it.
    """
    if not any((work / part).is_dir() for part in WORK_PARTS):
        raise PlanError(f"'{work}' is no work folder.", do="Give the one that --work named.", code="no_work_folder")
    for part in WORK_PARTS:
        if (work / part).is_symlink():
            raise StoreError(
                f"'{work / part}' is a link: what is deleted there may be something else.",
                do="Give the folder that holds what it leads to, or remove the link.",
                code="work_part_is_a_link",
            )
    refuse_foreign_folder(work, shared=True)


def iter_entries(work: Path, *parts: str) -> Iterator[Path]:
    """All stores, models and workspaces, or those of some parts; what does not have the name of one is not ours.

    A project may well have a folder of models of its own.
    """
    for part in parts or ENTRY_PARTS:
        if (work / part).is_dir():
            yield from sorted(path for path in (work / part).iterdir() if path.is_dir() and _ENTRY.match(path.name))


def build_work_item(path: Path, reason: str) -> WorkItem:
    """A file or folder that goes."""
    locked = path.is_dir() and not path.name.startswith(DELETED) and is_locked(path)
    return WorkItem(path=path, reason=reason, size=compute_entry_size(path), in_use=locked)


def compute_entry_size(path: Path) -> int:
    """How many bytes an entry of a work folder takes; links are not followed, what is gone meanwhile is nothing."""
    with suppress(FileNotFoundError):
        if path.is_symlink() or not path.is_dir():
            return path.lstat().st_size
    size = 0
    for place, folders, names in os.walk(path):
        for name in (*names, *(each for each in folders if (Path(place) / each).is_symlink())):
            with suppress(FileNotFoundError):
                size += (Path(place) / name).lstat().st_size
    return size


def delete_entry(path: Path) -> None:
    """Delete an entry of a work folder, renamed first, so that a kill leaves no half of it behind."""
    if path.is_symlink() or not path.is_dir():
        path.unlink(missing_ok=True)
        return
    renamed = path
    if not path.name.startswith(DELETED):
        renamed = path.rename(path.with_name(f"{DELETED}{secrets.token_hex(4)}"))
    shutil.rmtree(renamed)


def format_size(size: int) -> str:
    """The bytes of an entry of a work folder as people say them.

    >>> format_size(999), format_size(1_500_000)
    ('999 B', '1.5 MB')
    """
    value = float(size)
    for unit in ("B", "kB", "MB", "GB"):
        if value < 1000:
            return f"{value:.0f} {unit}" if unit == "B" else f"{value:.1f} {unit}"
        value /= 1000
    return f"{value:.1f} TB"


GIGABYTE: Final = 1_000_000_000
LOOK_SECONDS: Final = 5.0
"""How often the folder is measured while a model scores."""


@dataclass(kw_only=True)
class WorkLimit:
    """How large a work folder may become; None for as large as the disk."""

    work: Path
    gigabytes: float | None
    measured: float = float("-inf")
    """When the folder was last measured."""

    def refuse_exceeded(self) -> None:
        """Refuse to go on in a work folder that has reached its limit.

        Raises:
            StoreError: It has; what is in it stays.
        """
        if self.gigabytes is None or not self.work.is_dir():
            return
        size = compute_entry_size(self.work)
        if size >= self.gigabytes * GIGABYTE:
            raise StoreError(
                f"The work folder '{self.work}' holds {format_size(size)}, and its limit is "
                f"{format_size(round(self.gigabytes * GIGABYTE))} (work_limit_gb).",
                do="See what no run needs any more (recollect clean), or raise the limit. What is there is kept.",
                code="work_limit_reached",
            )

    def watch(self, progress: Callable[[int, int, str], None]) -> Callable[[int, int, str], None]:
        """The same callback, which also measures the folder now and then, and stops the work at the limit."""

        def watched(done: int, total: int, note: str) -> None:
            progress(done, total, note)
            if done < total and time.monotonic() - self.measured >= LOOK_SECONDS:
                self.refuse_exceeded()
                self.measured = time.monotonic()

        return watched if self.gigabytes is not None else progress
