"""Whether a report is up to date: then it need not be built again, nor what builds it be loaded."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection
from functools import cache
from pathlib import Path
from typing import Final

from recollect.audits.registry import AUDITS
from recollect.errors import StoreError
from recollect.files.checksums import matches_entry, read_folder_manifest
from recollect.results.pseudonyms import KEY_FILE
from recollect.results.run_manifest import RUN_MANIFEST, is_run_file_unlisted
from recollect.version import __version__

_SOURCES: Final = ("report", "results", "audits", "stats")
"""The packages that decide how a result is shown."""


def is_report_current(folder: Path) -> bool:
    """Whether building the report of a run folder again, masked and with pseudonyms, would give the same files.

    Every file that the manifest lists is compared with its SHA-256. A folder that is damaged or not finished, or has
    results of plug-ins, whose code may have changed, is never up to date.
    """
    try:
        manifest = read_folder_manifest(folder, RUN_MANIFEST)
    except (StoreError, OSError):
        return False
    files = manifest["files"]
    audits = {Path(name).stem for name in files if name.startswith("results/")}
    return (
        manifest.get("view") == compute_view_digest(folder)
        and {"report.html", "report.md"} <= files.keys()
        and audits <= AUDITS.table.keys()
        and all((folder / name).is_file() and matches_entry(folder / name, entry) for name, entry in files.items())
        and not is_run_file_unlisted(folder, files)
    )


def compute_view_digest(
    folder: Path, *, shown: Collection[str] = (), real_names: bool = False, named: Collection[str] = ()
) -> str:
    """A digest of all that a report depends on besides the files of its run folder.

    Args:
        folder: The run folder, whose key decides the pseudonyms.
        shown: The audits of which text is shown.
        real_names: Whether people and records are shown by their own ids.
        named: Who is shown by their own ids in any case.
    """
    key = folder / KEY_FILE
    facts = [__version__, sorted(shown), real_names, sorted(named), key.read_text("ascii") if key.is_file() else ""]
    return hashlib.sha256(json.dumps([facts, _compute_source_digest()]).encode()).hexdigest()


@cache
def _compute_source_digest() -> str:
    """A digest of the code that decides how a report shows a result; what a process has loaded does not change."""
    digest, home = hashlib.sha256(), Path(__file__).parents[1]
    for package in _SOURCES:
        for path in sorted((home / package).rglob("*.*")):
            if path.suffix != ".pyc":
                digest.update(path.read_bytes())
    return digest.hexdigest()
