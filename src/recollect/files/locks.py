"""Locks: one writer of a folder at a time; the next waits, says so, and uses what the first one made."""

from __future__ import annotations

import fcntl
import os
import stat
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from recollect.errors import RecollectWarning, StoreError
from recollect.files.atomic_writes import make_private_folder, remove_leftovers

LOCK: Final = ".lock"


@contextmanager
def hold_lock(folder: Path, *, purpose: str = "writing into") -> Iterator[bool]:
    """While this lasts, nobody else holds the lock of this folder; what killed writers left there is removed.

    Gives whether somebody else held it before: then look again at what is there, before doing the work anew. The lock
    ends with the process, however that ends.

    Args:
        folder: What is locked; it is made if it is missing.
        purpose: What the other run is doing to it, for the message while waiting.

    Raises:
        StoreError: The lock file is a link, or no file at all.
    """
    make_private_folder(folder)
    with _open_lock(folder / LOCK) as handle:
        waited = False
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            waited = True
            message = f"Another run is {purpose} '{folder}': waiting for it to end."
            warnings.warn(message, RecollectWarning, stacklevel=3)
            fcntl.flock(handle, fcntl.LOCK_EX)
        remove_leftovers(folder)
        yield waited


@contextmanager
def _open_lock(path: Path) -> Iterator[int]:
    """The lock file, which is made if it is missing, never followed if it is a link, and never emptied."""
    try:
        handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    except OSError as error:
        if not path.is_symlink():
            raise
        raise _build_refusal(path) from error
    try:
        if not stat.S_ISREG(os.fstat(handle).st_mode):
            raise _build_refusal(path)
        yield handle
    finally:
        os.close(handle)


def _build_refusal(path: Path) -> StoreError:
    """Why a lock file is not used."""
    return StoreError(
        f"The lock file '{path}' is no regular file: somebody else put it there.",
        do="Look at where it leads, remove it, and run again.",
        code="lock_not_a_file",
    )


def is_locked(folder: Path) -> bool:
    """Whether a run works in a folder at this moment; nothing is made or changed."""
    try:
        handle = os.open(folder / LOCK, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(handle)
    return False
