"""Whose a folder is: private data is written only where nobody else can put files in its way."""

from __future__ import annotations

import os
import stat
from pathlib import Path

from recollect.errors import StoreError

_INNER = ("models", "answers", "audits", "fleets", "runs", "results", "tables")
"""Folders in a work or run folder in which others could put files, too."""
_SHARED = " If you trust whoever shares this work folder, give --shared-work (shared_work=True)."


def refuse_foreign_folder(folder: Path, *, shared: bool | None = None) -> None:
    """Refuse a folder whose owner is somebody else, or that everybody can write; one that is missing is fine.

    Whoever can write into a work folder decides which scores and models a run finds there; whoever owns a run folder
    can change what was found.

    Args:
        folder: The work or run folder.
        shared: Whether others may own it, such as a work folder of a team; None where no option allows that. What
            everybody can write is refused all the same.

    Raises:
        StoreError: It is not ours, or anybody can write it.
    """
    for each in (folder, *(folder / name for name in _INNER)):
        for status in _read_owners(each):
            if status.st_mode & stat.S_IWOTH and not stat.S_ISLNK(status.st_mode):
                raise StoreError(
                    f"Everybody on this machine can write into '{each}'.",
                    do=f"Take that right away (chmod o-w '{each}'), or choose another folder.",
                    code="folder_open_to_all",
                )
            if status.st_uid != os.geteuid() and not shared:
                raise StoreError(
                    f"'{each}' belongs to another user of this machine (number {status.st_uid}).",
                    do="Choose a folder of your own." + (_SHARED if shared is not None else ""),
                    code="foreign_folder",
                )


def _read_owners(path: Path) -> list[os.stat_result]:
    """Who owns a folder and, where the path is a link, the link itself; nothing if there is none."""
    try:
        link = path.lstat()
        return [link, path.stat()] if stat.S_ISLNK(link.st_mode) else [link]
    except (FileNotFoundError, NotADirectoryError):
        return []
