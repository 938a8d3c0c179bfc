"""`manifest.json` of a run folder: the SHA-256 of every file, to show that a report is the one that was made.

It is removed before a run writes anything into the folder, and written last: a folder without it is not finished.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from fnmatch import fnmatch
from pathlib import Path
from typing import Any, Final

from recollect.errors import StoreError
from recollect.files import read_folder_manifest, write_folder_manifest
from recollect.files.checksums import iter_files, matches_entry
from recollect.version import __version__

RUN_MANIFEST: Final = "manifest.json"
FORMAT: Final = 1
"""Raised when the layout of the manifest changes."""
_WRITTEN: Final = (
    *("results/*", "tables/*", "plan.yaml", "cohorts.json", "cohorts-*.json", "report.html", "report.md"),
    "*-by-epoch.json",
)
"""The files of a run folder; a star stands for folders, too."""
_REPORTS: Final = frozenset({"report.html", "report.md"})
"""What may be built anew from the rest."""


def remove_run_manifest(folder: Path) -> None:
    """Say that a run folder is being written."""
    (folder / RUN_MANIFEST).unlink(missing_ok=True)


def write_run_manifest(folder: Path, view: str | None = None) -> Path:
    """List every file that a run wrote into a finished run folder, with its SHA-256.

    What else is in the folder is not listed: `--out .` does not vouch for a project.

    Args:
        folder: The run folder.
        view: The digest of all that its reports depend on besides its files.
    """
    facts = {"format": FORMAT, "recollect": __version__, **({} if view is None else {"view": view})}
    return write_folder_manifest(folder, RUN_MANIFEST, facts, is_listed=is_written_by_runs)


def is_written_by_runs(relative: str) -> bool:
    """Whether the manifest of a run lists files of this name: runs write them.

    >>> is_written_by_runs("tables/leakage/users.parquet"), is_written_by_runs("notes.txt")
    (True, False)
    """
    return any(fnmatch(relative, pattern) for pattern in _WRITTEN)


def is_run_file_unlisted(folder: Path, files: Collection[str]) -> bool:
    """Whether a run folder has a file under a name that runs use which its manifest does not list."""
    return any(is_written_by_runs(relative) and relative not in files for relative, _ in iter_files(folder))


def read_run_manifest(folder: Path) -> Mapping[str, Mapping[str, Any]] | None:
    """What the manifest says of each file; None if there is none: the run is not finished, or older than 0.2.0.

    Raises:
        StoreError: It is damaged.
    """
    if not (folder / RUN_MANIFEST).is_file():
        return None
    files: Mapping[str, Mapping[str, Any]] = read_folder_manifest(folder, RUN_MANIFEST)["files"]
    return files


def refuse_changed_file(folder: Path, path: Path) -> None:
    """Refuse a file of a run folder that is not the one that the run wrote; without a manifest there is no telling.

    Raises:
        StoreError: The file was changed, is missing, or was put there by somebody else.
    """
    files = read_run_manifest(folder)
    if files is not None:
        _refuse_unlike_manifest(folder, path.relative_to(folder).as_posix(), files)


def refuse_changed_run(folder: Path) -> None:
    """Refuse a run folder of which any file but the reports was changed: a new manifest would vouch for the change.

    Raises:
        StoreError: A file was changed, or is missing.
    """
    files = read_run_manifest(folder) or {}
    for relative in files.keys() - _REPORTS:
        _refuse_unlike_manifest(folder, relative, files)


def _refuse_unlike_manifest(folder: Path, relative: str, files: Mapping[str, Mapping[str, Any]]) -> None:
    """Refuse a file of a run folder that is there, or listed in its manifest, and not both alike."""
    path = folder / relative
    if relative not in files and not path.exists():
        return
    if relative not in files:
        found = f"'{path}' was put into the run folder after the run: {RUN_MANIFEST} does not list it."
    elif not path.is_file():
        found = f"'{path}' is missing: {RUN_MANIFEST} lists it."
    elif not matches_entry(path, files[relative]):
        found = f"'{path}' is not what the run wrote: its SHA-256 does not fit {RUN_MANIFEST}."
    else:
        return
    raise StoreError(
        found, do="Run the audit again, or take the file from a copy of the run folder.", code="run_folder_changed"
    )
