"""Checksums: JSON files that know when they are damaged, and lists of the SHA-256 of every file of a folder."""

from __future__ import annotations

import hashlib
import json
import os
import stat
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal

from recollect.errors import StoreError
from recollect.files.atomic_writes import read_json, write_json

CHECKSUM: Final = "checksum"
"""The key of a JSON file that holds the SHA-256 of all others."""
Problem = Literal["damaged", "missing", "extra", "unfinished"]


@dataclass(frozen=True, kw_only=True)
class FileFault:
    """What is wrong with one file, or with a folder as a whole."""

    path: Path
    problem: Problem
    detail: str
    """What was found, in one sentence without the path."""


def compute_sha256(path: Path) -> str:
    """The SHA-256 checksum of a file, as `sha256sum` prints it; read piece by piece."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def write_checked_json(path: Path, value: Mapping[str, Any]) -> None:
    """Write a JSON object with a checksum of its content, which `read_checked_json` looks at."""
    write_json(path, add_checksum(value))


def read_checked_json(path: Path, *, do: str, code: str) -> dict[str, Any]:
    """The object that `write_checked_json` wrote, without its checksum.

    A file of an older version, which has no checksum, is read as it is.

    Args:
        path: The file.
        do: What to do if it is damaged.
        code: The code of the error in that case.

    Raises:
        StoreError: It is damaged.
    """
    try:
        found = remove_checksum(read_json(path))
    except (ValueError, RecursionError) as error:  # also what is not JSON, bytes that are not UTF-8, and endless lists
        raise StoreError(f"'{path}' is damaged: {error}.", do=do, code=code) from error
    return found


def add_checksum(value: Mapping[str, Any]) -> dict[str, Any]:
    """A JSON object with a checksum of its content."""
    return {**value, CHECKSUM: _compute_content_checksum(value)}


def remove_checksum(found: Any) -> dict[str, Any]:
    """The object that `add_checksum` was given; one without a checksum as it is.

    Raises:
        ValueError: The content does not fit the checksum.
    """
    if not isinstance(found, dict):
        raise ValueError("it holds no JSON object")
    written = found.pop(CHECKSUM, None)
    if written is not None and written != _compute_content_checksum(found):
        raise ValueError("its content does not fit its checksum")
    return found


def write_folder_manifest(
    folder: Path, name: str, facts: Mapping[str, Any], *, is_listed: Callable[[str], bool] = lambda relative: True
) -> Path:
    """Write the checksums (SHA-256) of all files of a folder; it must be the last that is written there.

    Args:
        folder: The folder; files in folders within it are listed, too. Links, pipes and devices are not.
        name: The name of the list.
        facts: What else it says.
        is_listed: Whether a file is listed, by its name relative to the folder.
    """
    files = {
        relative: {"sha256": compute_sha256(path), "bytes": path.stat().st_size}
        for relative, path in iter_files(folder)
        if relative != name and is_listed(relative) and is_regular(path)
    }
    write_checked_json(folder / name, {**facts, "files": files})
    return folder / name


def read_folder_manifest(folder: Path, name: str) -> dict[str, Any]:
    """The checksums of a folder's files that `write_folder_manifest` wrote.

    Raises:
        StoreError: It is missing or damaged.
    """
    path = folder / name
    if not path.is_file():
        raise StoreError(f"There is no '{path}'.", do="Check the path.", code="no_manifest")
    do = "Whether the files beside it are whole can no longer be shown. Run the same command again."
    found = read_checked_json(path, do=do, code="manifest_damaged")
    if not isinstance(found.get("files"), dict) or not all(
        _is_manifest_entry(each) for each in found["files"].values()
    ):
        raise StoreError(f"'{path}' is damaged: it lists no files.", do=do, code="manifest_damaged")
    return found


def find_faults(folder: Path, files: Mapping[str, Mapping[str, Any]], *, ignore: Iterable[str] = ()) -> list[FileFault]:
    """What differs between a folder and the checksums of its files.

    Args:
        folder: The folder.
        files: What its manifest lists.
        ignore: Names of files that may be there without being listed.
    """
    faults, present = list[FileFault](), dict(iter_files(folder))
    for relative, entry in files.items():
        if relative not in present:
            faults.append(FileFault(path=folder / relative, problem="missing", detail="It is listed, and not there."))
        elif not matches_entry(folder / relative, entry):
            faults.append(FileFault(path=folder / relative, problem="damaged", detail="Its SHA-256 is another."))
    known = {*files, *ignore}
    faults += [
        FileFault(path=path, problem="extra", detail="It is not listed.")
        for relative, path in present.items()
        if relative not in known
    ]
    return faults


def matches_entry(path: Path, entry: Mapping[str, Any]) -> bool:
    """Whether a file has the checksum of its manifest entry; a link, a pipe or a device has not, and is never read."""
    if not is_regular(path) or path.stat().st_size != entry["bytes"]:
        return False
    return bool(compute_sha256(path) == entry["sha256"])


def is_regular(path: Path) -> bool:
    """Whether a path can have a checksum: a file, and neither a link nor a pipe or device."""
    return stat.S_ISREG(path.lstat().st_mode)


def iter_files(folder: Path) -> Iterator[tuple[str, Path]]:
    """All files of a folder to be checksummed, by their name relative to it, in alphabetical order.

    Hidden ones are not among them: locks, and what is being written. Links are not followed.
    """
    for place, folders, names in os.walk(folder):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        for name in sorted(name for name in names if not name.startswith(".")):
            path = Path(place) / name
            yield path.relative_to(folder).as_posix(), path


def _compute_content_checksum(value: Mapping[str, Any]) -> str:
    """The SHA-256 of what a JSON object holds, however it is laid out."""
    text = json.dumps(value, sort_keys=True, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def _is_manifest_entry(entry: Any) -> bool:
    """Whether this describes a file with its checksum."""
    return isinstance(entry, dict) and isinstance(entry.get("sha256"), str) and isinstance(entry.get("bytes"), int)
