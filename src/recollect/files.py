"""Files that hold private data: owner-only folders, and writes that happen whole or not at all."""

from __future__ import annotations

import json
import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any


def make_private_folder(path: Path) -> Path:
    """The folder, created readable by its owner only (parents that are missing likewise).

    A folder that was already there keeps its permissions: it is the user's.
    """
    for folder in [*reversed(path.parents), path]:
        if not folder.exists():
            folder.mkdir(mode=0o700, exist_ok=True)
    return path


@contextmanager
def write_atomically(path: Path) -> Iterator[Path]:
    """A temporary path beside `path` that takes its place only if the block ends well.

    The file is readable by its owner only and is flushed to disk before the rename, so that a run killed
    at any moment leaves either the old file, the new one, or a `.part` file that nobody reads.
    """
    make_private_folder(path.parent)
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(4)}.part")
    try:
        os.close(os.open(temporary, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
        yield temporary
        with temporary.open("rb") as handle:
            os.fsync(handle.fileno())
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


def write_text(path: Path, text: str) -> None:
    """Write a text file, whole or not at all, readable by its owner only."""
    with write_atomically(path) as temporary:
        temporary.write_text(text, encoding="utf-8")


def write_json(path: Path, value: Any) -> None:
    """Write a value as JSON that people can read and `diff` can compare."""
    write_text(path, json.dumps(value, indent=2, ensure_ascii=False, allow_nan=False) + "\n")


def read_json(path: Path) -> Any:
    """The value that `write_json` wrote."""
    return json.loads(path.read_text(encoding="utf-8"))
