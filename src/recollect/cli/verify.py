"""`recollect verify`: whether a run folder or a work folder is what was written."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from recollect.cli import console
from recollect.cli.console import print_error
from recollect.cli.exit_status import COULD_NOT
from recollect.cli.shared_options import AsJson


def verify(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="A run folder (--out) or a work folder (--work).")],
    json: AsJson = False,
) -> None:
    """Check every file of a run folder or a work folder against its checksum; nothing is changed.

    Lists what is damaged, missing or extra. For a run folder it also prints the SHA-256 of its manifest.json: if you
    note it when the run is made, you can show later that nothing was changed since.

    Ends with status 0 if everything is as it was written, and with 2 if not.

    `recollect verify run`
    """
    from recollect.api import verify as verify_folder

    found = verify_folder(folder)
    if json:
        console.print_json(
            {
                "folder": str(found.folder),
                "kind": found.kind,
                "checked": found.checked,
                "unchecked": [str(path) for path in found.unchecked],
                "faults": [{"path": str(x.path), "problem": x.problem, "detail": x.detail} for x in found.faults],
                "manifest_sha256": found.manifest_sha256,
            }
        )
    elif found.faults:
        rows = [[each.problem, str(each.path), each.detail] for each in found.faults]
        console.print_table(f"The {found.kind} '{folder}' is not as it was written", ["", "file", "found"], rows)
    console.say(f"{found.checked:,} files of the {found.kind} fit their checksums.")
    if found.unchecked:
        console.say(f"{len(found.unchecked):,} files carry no checksum.")
    if found.manifest_sha256 is not None:
        console.say(f"SHA-256 of manifest.json: {found.manifest_sha256}")
    if found.faults:
        print_error(f"{len(found.faults):,} files of '{folder}' are not as they were written.")
        raise typer.Exit(COULD_NOT)
