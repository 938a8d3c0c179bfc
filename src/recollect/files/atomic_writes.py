"""Writes that happen whole or not at all, into owner-only files and folders."""

from __future__ import annotations

import errno
import hashlib
import json
import os
import platform
import re
import secrets
import shutil
import stat
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from recollect.errors import RecollectError, StoreError

_LEFTOVER = re.compile(r"^\..+\.(?:(\d+)-)?([0-9a-f]{4})[0-9a-f]{4}\.part$")
"""What a writer leaves: its process (older versions did not note it), its machine, and a random number."""
_MACHINE = hashlib.blake2b(platform.node().encode(), digest_size=2).hexdigest()
_ABANDONED_SECONDS = 7 * 86400
"""What a writer on another machine left is removed after so long: whether that one lives cannot be seen from here."""
_SWEPT: set[Path] = set()
"""Folders whose leftovers this process has removed: listing a large folder at every write would take long."""
_FULL = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}
_FULL_WORDS = re.compile(r"no space left|disk quota exceeded|file too large|os error (28|122|27)\b", re.IGNORECASE)
"""How libraries that raise errors of their own say that a disk is full."""


def make_private_folder(path: Path) -> Path:
    """The folder to write into, created readable by its owner only (missing parents likewise).

    A folder that was already there keeps its permissions: it is the user's.
    """
    for folder in [*reversed(path.parents), path]:
        if not folder.exists():
            with suppress(FileExistsError, FileNotFoundError):  # another run makes or removes it now
                folder.mkdir(mode=0o700)
                os.chmod(folder, 0o700)  # noqa: PTH101 - the umask may have taken rights of the owner
    return path


@contextmanager
def write_atomically(path: Path) -> Iterator[Path]:
    """A temporary path beside `path` that takes its place only if the block ends well.

    The file is readable by its owner only, and file and folder are flushed to disk around the rename: a run that is
    killed, or a machine that loses power, leaves the old file, the new one, or a `.part` file that nobody reads and
    that the next writer removes.

    Raises:
        StoreError: The disk is full; what was whole is still whole.
    """
    temporary = _name_temporary(path)
    with _recognise_full_disk(path):
        try:
            os.close(os.open(temporary, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_NOFOLLOW, 0o600))
            yield temporary
            _settle_file(temporary)
            temporary.replace(path)
            _flush_folder(path.parent)
        finally:
            temporary.unlink(missing_ok=True)


@contextmanager
def fill_folder(folder: Path) -> Iterator[Path]:
    """Write a folder atomically: a temporary folder whose files take their places only if the block ends well.

    For libraries that write several files under names of their own. Files that `folder` holds under other names stay.

    Raises:
        StoreError: The disk is full; what was whole is still whole.
    """
    make_private_folder(folder)
    with make_scratch_folder(folder) as temporary, _recognise_full_disk(folder):
        yield temporary
        written = sorted(temporary.iterdir())
        for path in written:
            _settle_file(path)
        for path in written:
            path.replace(folder / path.name)
        _flush_folder(folder)


@contextmanager
def make_scratch_folder(parent: Path) -> Iterator[Path]:
    """A folder for what nobody needs after the block; one that a kill left is removed by the next writer beside it."""
    scratch = _name_temporary(parent / "scratch")
    try:
        scratch.mkdir(mode=0o700)
        yield scratch
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


def _name_temporary(path: Path) -> Path:
    """A name beside a path that nobody else takes; what dead writers left there is removed before."""
    make_private_folder(path.parent)
    if path.parent not in _SWEPT:
        remove_leftovers(path.parent)
        _SWEPT.add(path.parent)
    return path.with_name(f".{path.name}.{os.getpid()}-{_MACHINE}{secrets.token_hex(2)}.part")


def _settle_file(path: Path) -> None:
    """Let a file that is written atomically reach the disk, readable by its owner only."""
    with path.open("rb") as handle:
        os.fchmod(handle.fileno(), stat.S_IRUSR | stat.S_IWUSR)  # a library may have made the file anew
        os.fsync(handle.fileno())


@contextmanager
def _recognise_full_disk(path: Path) -> Iterator[None]:
    """Name the cause where a write fails for want of room, whichever library says so."""
    try:
        yield
    except RecollectError:
        raise
    except Exception as error:
        if is_disk_full(error):
            raise StoreError(
                f"There is no room on the disk to write '{path}'.",
                do="Make room, and run the same command again: what was written before is kept.",
                code="disk_full",
            ) from error
        raise


def is_disk_full(error: BaseException) -> bool:
    """Whether an error of a write says that the disk is full: of the system, or in the words of a library.

    >>> is_disk_full(OSError(28, "No space left on device")), is_disk_full(ValueError("too small"))
    (True, False)
    """
    return (isinstance(error, OSError) and error.errno in _FULL) or bool(_FULL_WORDS.search(str(error)))


def remove_leftovers(folder: Path) -> None:
    """Remove what writers that are no longer alive left half-written in this folder."""
    for path in folder.glob(".*.part"):
        if is_leftover(path):
            if path.is_dir() and not path.is_symlink():
                shutil.rmtree(path, ignore_errors=True)
            else:
                path.unlink(missing_ok=True)


def is_leftover(path: Path) -> bool:
    """Whether a path is what a writer that is no longer alive left half-written."""
    found = _LEFTOVER.match(path.name)
    if found is None:
        return False
    process, machine = found.groups()
    if process is None or machine == _MACHINE:
        return process is None or not is_process_alive(int(process))  # versions before 0.2.0 noted no process
    with suppress(FileNotFoundError):
        return time.time() - path.lstat().st_mtime > _ABANDONED_SECONDS
    return False


def write_text(path: Path, text: str) -> None:
    """Write a text file, whole or not at all, readable by its owner only."""
    with write_atomically(path) as temporary:
        temporary.write_text(text, encoding="utf-8")


def write_json(path: Path, value: Any) -> None:
    """Write a value as JSON that people can read and `diff` can compare."""
    write_text(path, json.dumps(value, indent=2, ensure_ascii=False, allow_nan=False) + "\n")


def read_json(path: Path) -> Any:
    """The value that `write_json` wrote.

    Raises:
        OSError: The file cannot be read.
        ValueError: It is no JSON, or nested deeper than anything that was written here.
    """
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except RecursionError as error:
        raise ValueError(f"{path} is nested too deeply.") from error


def is_process_alive(process: int) -> bool:
    """Whether a process that may still be writing runs; another user's counts, too."""
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except (PermissionError, OverflowError):
        return True
    return True


def _flush_folder(folder: Path) -> None:
    """Let the names in a folder that was written reach the disk, where the file system can do that."""
    with suppress(OSError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
