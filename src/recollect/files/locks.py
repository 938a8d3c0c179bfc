"""Locks: one writer of a folder at a time; the next waits, says so, and uses what the first one made."""

from __future__ import annotations

import fcntl
import os
import stat
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from pathlib import Path
from typing import Final

from recollect.errors import RecollectWarning, StoreError
from recollect.files.atomic_writes import make_private_folder, remove_leftovers

LOCK: Final = ".lock"
_DRIVER_HOLDS_LOCKS = ContextVar("driver_holds_locks", default=False)
"""Whether this is a worker of a cluster, whose driver has locked what it works on."""


@contextmanager
def leave_locks_to_driver() -> Iterator[None]:
    """While this lasts, locks are not taken: this is a worker of a cluster, and its driver holds a lease of the folder.

    What machines share over a network need not know locks, and those of a machine that was lost may stay for long.
    """
    before = _DRIVER_HOLDS_LOCKS.set(True)
    try:
        yield
    finally:
        _DRIVER_HOLDS_LOCKS.reset(before)


def are_locks_left_to_driver() -> bool:
    """Whether locks are not taken here, because the driver of a cluster has done so."""
    return _DRIVER_HOLDS_LOCKS.get()


@contextmanager
def hold_lock(folder: Path, *, purpose: str = "writing into", temporary: bool = False) -> Iterator[bool]:
    """Hold the lock of a folder while this lasts; what killed writers left there is removed.

    Gives whether somebody else held it before: then look again at what is there, before doing the work anew. The lock
    ends with the process, however that ends.

    Args:
        folder: What is locked; it is made if it is missing.
        purpose: What the other run is doing to it, for the message while waiting.
        temporary: Whether the lock file is removed at the end, and the folder with it if nothing else is in it.

    Raises:
        StoreError: The lock file is a link, or no file at all.
    """
    if are_locks_left_to_driver():
        make_private_folder(folder)
        yield False
        return
    handle, waited = _lock_folder(folder, purpose)
    try:
        remove_leftovers(folder)
        yield waited
    finally:
        if temporary:
            _remove_lock(folder)
        os.close(handle)


@contextmanager
def use_folder(folder: Path) -> Iterator[None]:
    """Hold a shared lock: nobody deletes what others made in this folder; any number of runs use it at once.

    The last of them removes the lock file, and the folder if nothing was made in it.

    Args:
        folder: The work folder; it is made if it is missing.

    Raises:
        StoreError: The lock file is a link, or no file at all.
    """
    handle, _ = _lock_folder(folder, "deleting from", fcntl.LOCK_SH)
    try:
        yield
    finally:
        _release_shared_lock(handle, folder)


@contextmanager
def refuse_use(folder: Path) -> Iterator[None]:
    """Hold an exclusive lock: while this lasts, no run begins to use this folder.

    Args:
        folder: The work folder.

    Raises:
        StoreError: A run uses it at this moment, or its lock file is a link.
    """
    try:
        handle, _ = _lock_folder(folder, "deleting from", fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise StoreError(
            f"A run uses the work folder '{folder}' at this moment.",
            do="Wait for it to end, and run this again: nothing was deleted.",
            code="work_in_use",
        ) from None
    try:
        yield
    finally:
        _release_shared_lock(handle, folder)


def _release_shared_lock(handle: int, folder: Path) -> None:
    """Let go of a lock that others may share; the last removes the file."""
    with suppress(BlockingIOError):
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if _is_in_place(handle, folder / LOCK):
            _remove_lock(folder)
    os.close(handle)


def _lock_folder(folder: Path, purpose: str, kind: int = fcntl.LOCK_EX) -> tuple[int, bool]:
    """The lock file of a folder, open and locked, and whether anybody held it before."""
    waited = False
    while True:
        make_private_folder(folder)
        handle = _open_lock(folder / LOCK)
        if handle is None:
            continue  # who held the lock has removed the folder
        try:
            waited = _acquire_lock(handle, kind, f"{purpose} '{folder}'", quietly=waited) or waited
            if _is_in_place(handle, folder / LOCK):
                return handle, waited
        except BaseException:
            os.close(handle)
            raise
        os.close(handle)  # who held it has removed it, and somebody else may hold the next


def _acquire_lock(handle: int, kind: int, purpose: str, *, quietly: bool) -> bool:
    """Wait until nobody else holds the lock, unless it is not to be waited for; whether anybody did."""
    try:
        fcntl.flock(handle, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        if kind & fcntl.LOCK_NB:
            raise
        if not quietly:
            message = f"Another run is {purpose}: waiting for it to end."
            warnings.warn(message, RecollectWarning, stacklevel=5)
        fcntl.flock(handle, kind)
        return True
    return False


def _is_in_place(handle: int, path: Path) -> bool:
    """Whether the locked file is still the one that others find."""
    try:
        return os.path.samestat(os.fstat(handle), path.lstat())
    except FileNotFoundError:
        return False


def _remove_lock(folder: Path) -> None:
    """Remove the lock file, and the folder if nothing else is in it; who waits sees that, and looks again."""
    (folder / LOCK).unlink(missing_ok=True)
    with suppress(OSError):
        folder.rmdir()


def _open_lock(path: Path) -> int | None:
    """The lock file, which is made if it is missing, never followed if it is a link, and never emptied."""
    try:
        handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    except FileNotFoundError:
        if path.parent.is_symlink():
            raise  # a link that leads nowhere
        return None
    except OSError as error:
        if not path.is_symlink():
            raise
        raise _build_lock_refusal(path) from error
    if not stat.S_ISREG(os.fstat(handle).st_mode):
        os.close(handle)
        raise _build_lock_refusal(path)
    return handle


def _build_lock_refusal(path: Path) -> StoreError:
    """Why a lock file is not used."""
    return StoreError(
        f"The lock file '{path}' is no regular file: somebody else put it there.",
        do="Look at where it leads, remove it, and run again.",
        code="lock_not_a_file",
    )


def is_locked(folder: Path) -> bool:
    """Whether a run holds the lock of a folder at this moment; nothing is made or changed."""
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
