"""A journal: what one writer appends, entry by entry, and finds again after a kill.

Each entry is its length, a checksum of that, a checksum of the payload, and the payload. A kill can cut off the last
entry only: it is dropped. Anything else that does not fit its checksum is damage, and refused.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import stat
import struct
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final, Self

from recollect.errors import StoreError
from recollect.files.atomic_writes import is_disk_full, make_private_folder
from recollect.files.locks import are_locks_left_to_driver

_MAGIC: Final = b"recollect journal 1\n"
_LENGTH: Final = struct.Struct("<Q")
_CHECKSUM_BYTES: Final = 16
_HEAD_BYTES: Final = _LENGTH.size + 2 * _CHECKSUM_BYTES


class Journal:
    """Entries on disk, of one writer. Open it with `Journal.open`."""

    def __init__(self, path: Path, handle: int, *, flush_seconds: float) -> None:
        """Take an open file that is locked."""
        self._path, self._handle, self._flush_seconds = path, handle, flush_seconds
        self._flushed = time.monotonic()
        self._end = 0

    @classmethod
    @contextmanager
    def open(cls, path: Path, *, owner: str, flush_seconds: float = 0.0) -> Iterator[Self]:
        """The journal in a file, made if it is missing; nobody else writes it while this lasts.

        Args:
            path: The file; readable by its owner only.
            owner: The address of what the entries belong to, such as that of a search. A journal of another owner is
                of no use, and begun anew.
            flush_seconds: How long entries may stay in memory of the system, which a loss of power forgets; a kill of
                the process loses no entry.

        Raises:
            StoreError: The journal is damaged, in use by another run, a link, or a file of another kind.
        """
        make_private_folder(path.parent)
        handle = _open_no_link(path, os.O_RDWR | os.O_CREAT)
        try:
            _refuse_foreign_journal(path, os.fstat(handle))
            journal = cls(path, handle, flush_seconds=flush_seconds)
            journal._lock()
            journal._begin(owner)
            yield journal
            os.fsync(handle)
        finally:
            os.close(handle)

    @staticmethod
    def read(path: Path) -> Iterator[bytes]:
        """All entries of a journal, without a lock and without dropping what a kill cut off.

        Raises:
            StoreError: It is damaged, a link, or a file of another kind.
        """
        handle = _open_no_link(path, os.O_RDONLY | os.O_NONBLOCK)
        try:
            _refuse_foreign_journal(path, os.fstat(handle))
            journal, size = Journal(path, handle, flush_seconds=0.0), os.fstat(handle).st_size
            if os.pread(handle, len(_MAGIC), 0) != _MAGIC[:size]:
                raise journal._build_refusal()
            position = journal._start
            while position < size:
                payload, position = journal._read(position, size)
                if payload is None:
                    break
                yield payload
        finally:
            os.close(handle)

    @staticmethod
    def verify(path: Path) -> None:
        """Read a journal from end to end.

        Raises:
            StoreError: It is damaged.
        """
        for _ in Journal.read(path):
            pass

    def __iter__(self) -> Iterator[bytes]:
        """All entries from the first; what a kill cut off at the end is dropped."""
        position, size = self._start, os.fstat(self._handle).st_size
        while position < size:
            payload, after = self._read(position, size)
            if payload is None:
                os.ftruncate(self._handle, position)
                break
            position = self._end = after
            yield payload
        self._end = position

    def append(self, payload: bytes) -> None:
        """Add an entry after all that were read or added; it survives a kill from here on.

        Raises:
            StoreError: The disk is full; the entries before are whole.
        """
        length = _LENGTH.pack(len(payload))
        frame = length + _compute_entry_checksum(length) + _compute_entry_checksum(payload) + payload
        try:
            written = 0
            while written < len(frame):
                written += os.pwrite(self._handle, memoryview(frame)[written:], self._end + written)
        except OSError as error:
            os.ftruncate(self._handle, self._end)
            if not is_disk_full(error):
                raise
            raise StoreError(
                f"There is no room on the disk to write '{self._path}'.",
                do="Make room, and run the same command again: what was written before is kept.",
                code="disk_full",
            ) from error
        self._end += len(frame)
        if time.monotonic() - self._flushed >= self._flush_seconds > 0:
            os.fsync(self._handle)
            self._flushed = time.monotonic()

    def keep_first(self, count: int) -> None:
        """Drop all entries but the first so many: none, for instance, once what they held is written elsewhere."""
        entries = iter(self)
        self._end = self._start
        for _ in range(count):
            next(entries)
        os.ftruncate(self._handle, self._end)

    @property
    def is_empty(self) -> bool:
        """Whether it holds no entry."""
        return os.fstat(self._handle).st_size <= self._start

    @property
    def _start(self) -> int:
        """Where the first entry begins."""
        return len(_MAGIC) + _CHECKSUM_BYTES

    def _lock(self) -> None:
        """Refuse to write beside another writer."""
        if are_locks_left_to_driver():
            return
        try:
            fcntl.flock(self._handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise StoreError(
                f"Another run writes the journal '{self._path}'.",
                do="Wait for it to end, or give this run a work folder of its own.",
                code="journal_in_use",
            ) from None

    def _begin(self, owner: str) -> None:
        """Write the header of a new journal; start anew if it belongs to something else. No other file is emptied."""
        header = _MAGIC + _compute_entry_checksum(owner.encode())
        found = os.pread(self._handle, len(header), 0)
        if not found.startswith(_MAGIC) and not _MAGIC.startswith(found):
            raise self._build_refusal()
        if found != header:
            os.ftruncate(self._handle, 0)
            os.pwrite(self._handle, header, 0)
        self._end = len(header)

    def _read(self, position: int, size: int) -> tuple[bytes | None, int]:
        """The entry at a position and where the next begins; None if a kill cut it off."""
        head, begin = os.pread(self._handle, _HEAD_BYTES, position), position + _HEAD_BYTES
        if len(head) < _HEAD_BYTES:
            return None, position
        if _compute_entry_checksum(head[: _LENGTH.size]) != head[_LENGTH.size : -_CHECKSUM_BYTES]:
            raise self._build_refusal()
        (length,) = _LENGTH.unpack_from(head)
        if begin + length > size:
            return None, position
        payload = os.pread(self._handle, length, begin)
        if _compute_entry_checksum(payload) == head[-_CHECKSUM_BYTES:]:
            return payload, begin + length
        if begin + length < size:
            raise self._build_refusal()
        return None, position  # blocks of the last entry may reach the disk in any order

    def _build_refusal(self) -> StoreError:
        """Why the journal is not read."""
        return StoreError(
            f"The journal '{self._path}' is damaged: an entry does not fit its checksum.",
            do="Delete it; what it held is computed again.",
            code="journal_damaged",
        )


def _open_no_link(path: Path, flags: int) -> int:
    """Open the file of a journal, unless it is a link."""
    try:
        return os.open(path, flags | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    except OSError as error:
        if not path.is_symlink():
            raise
        raise _build_foreign_refusal(path) from error


def _refuse_foreign_journal(path: Path, status: os.stat_result) -> None:
    """Refuse what has another name elsewhere, or is no file: it would be emptied or written under that name, too."""
    if not stat.S_ISREG(status.st_mode) or status.st_nlink > 1:
        raise _build_foreign_refusal(path)


def _build_foreign_refusal(path: Path) -> StoreError:
    """Why a file is not used as a journal."""
    return StoreError(
        f"The journal '{path}' is a link or no regular file: somebody else put it there.",
        do="Look at where it leads, remove it, and run again.",
        code="journal_not_a_file",
    )


def _compute_entry_checksum(data: bytes) -> bytes:
    """The checksum of an entry of a journal."""
    return hashlib.blake2b(data, digest_size=_CHECKSUM_BYTES).digest()
