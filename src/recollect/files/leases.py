"""Leases: one driver in a work folder at a time, where nodes share it over a network and locks are not to be trusted.

The holder counts up in the lease file. Whoever waits watches that number by its own clock: a lease whose number stands
still for long enough, or whose holder is a dead process of this machine, is taken over.
"""

from __future__ import annotations

import json
import os
import platform
import secrets
import threading
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from recollect.errors import RecollectWarning, StoreError
from recollect.files.atomic_writes import is_process_alive, make_private_folder

LEASE: Final = ".lease"
BEAT_SECONDS: Final = 3.0
"""How often the holder counts up."""
PATIENCE_SECONDS: Final = 30.0
"""How long the number may stand still before the holder is taken for dead."""
_HELD: dict[Path, _Lease] = {}
"""The leases of this process, which may be held again within."""


@dataclass
class _Lease:
    """A lease of this process."""

    path: Path
    token: str = field(default_factory=lambda: secrets.token_hex(8))
    beats: int = 0
    depth: int = 0
    lost: bool = False
    ended: threading.Event = field(default_factory=threading.Event)

    def write(self, path: Path) -> None:
        """Say who holds it and how far the count is."""
        holder = {"token": self.token, "host": platform.node(), "process": os.getpid(), "beats": self.beats}
        handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        try:
            os.pwrite(handle, json.dumps(holder).ljust(256).encode(), 0)
            os.fsync(handle)
        finally:
            os.close(handle)

    def try_to_take(self) -> bool:
        """Take the lease if nobody has it: a link is made by one alone, over a network, too."""
        draft = self.path.with_name(f"{LEASE}.{self.token}")
        self.write(draft)
        try:
            os.link(draft, self.path)
        except FileExistsError:
            return False
        finally:
            draft.unlink(missing_ok=True)
        return True

    def beat(self) -> None:
        """Count up until the end; stop if somebody else has taken the lease."""
        while not self.ended.wait(BEAT_SECONDS):
            if _read_lease(self.path).get("token") != self.token:
                self.lost = True
                return
            self.beats += 1
            with suppress(OSError):
                self.write(self.path)

    def release(self) -> None:
        """Give it back."""
        self.ended.set()
        if _read_lease(self.path).get("token") == self.token:
            self.path.unlink(missing_ok=True)


@contextmanager
def hold_lease(folder: Path, *, purpose: str = "working in") -> Iterator[None]:
    """While this lasts, no other driver holds the lease of this folder; the next waits, and says so.

    Args:
        folder: The folder, which is made if it is missing.
        purpose: What the other run is doing to it, for the message while waiting.

    Raises:
        StoreError: The lease was taken over meanwhile, because this process had not counted up for too long.
    """
    path = make_private_folder(folder.absolute()) / LEASE
    lease = _HELD.get(path)
    if lease is None:
        lease = _HELD[path] = _Lease(path)
        try:
            _take_lease(lease, purpose)
        except BaseException:
            del _HELD[path]
            raise
        threading.Thread(target=lease.beat, daemon=True).start()
    lease.depth += 1
    try:
        yield
    finally:
        lease.depth -= 1
        if not lease.depth:
            del _HELD[path]
            lease.release()
    if lease.lost:
        raise StoreError(
            f"Another run has taken over '{folder}': this one had shown no sign of life for {PATIENCE_SECONDS:.0f} s.",
            do="Run the same again once the other has ended; what was finished is kept.",
            code="lease_lost",
        )


def _take_lease(lease: _Lease, purpose: str) -> None:
    """Wait until the lease can be had."""
    seen, since, announced = _read_lease(lease.path), time.monotonic(), False
    while not lease.try_to_take():
        found = _read_lease(lease.path)
        if found != seen:
            seen, since = found, time.monotonic()
        if _is_lease_holder_dead(found) or time.monotonic() - since > PATIENCE_SECONDS:
            _remove_stale_lease(lease, found)
            continue
        if not announced:
            message = f"Another run is {purpose} '{lease.path.parent}': waiting for it to end."
            warnings.warn(message, RecollectWarning, stacklevel=5)
            announced = True
        time.sleep(0.5)


def _remove_stale_lease(lease: _Lease, stale: dict[str, Any]) -> None:
    """Take a dead holder's lease out of the way: one waiting run alone succeeds in renaming it."""
    aside = lease.path.with_name(f"{LEASE}.{lease.token}.stale")
    with suppress(FileNotFoundError):
        lease.path.rename(aside)
        if _read_lease(aside).get("token") != stale.get("token"):
            with suppress(FileExistsError):
                os.link(aside, lease.path)  # another run was quicker, and this is its lease
        aside.unlink(missing_ok=True)


def _is_lease_holder_dead(found: dict[str, Any]) -> bool:
    """Whether the holder of a lease is a process of this machine that has ended."""
    process = found.get("process")
    return isinstance(process, int) and found.get("host") == platform.node() and not is_process_alive(process)


def _read_lease(path: Path) -> dict[str, Any]:
    """Who holds a lease; empty if nobody does, or while it is being written."""
    with suppress(OSError, ValueError):
        found = json.loads(path.read_text(encoding="utf-8"))
        return found if isinstance(found, dict) else {}
    return {}
