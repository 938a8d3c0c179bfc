"""The files of a model that was trained here: its card lists their SHA-256, and a file that is another is not read."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from recollect.errors import StoreError
from recollect.files import compute_sha256, read_checked_json, read_json, write_checked_json
from recollect.files.checksums import matches_entry

CARD: Final = "card.json"
"""Written last: whoever finds it finds a finished model."""
TRAINING: Final = "training.json"
"""What a training was begun with."""
README: Final = "README.md"
"""For people, who may change it."""
FILES: Final = "files"
"""The entry of a card that lists the files beside it."""


def write_card(folder: Path, facts: Mapping[str, Any]) -> None:
    """Write the card of a model, `card.json`, with the files beside it; it must be the last that is written there."""
    written = sorted(path for path in folder.iterdir() if path.is_file() and not path.name.startswith("."))
    listed = {
        path.name: {"sha256": compute_sha256(path), "bytes": path.stat().st_size}
        for path in written
        if path.name not in {CARD, README}
    }
    write_checked_json(folder / CARD, {**facts, FILES: listed})


def read_card(folder: Path) -> dict[str, Any]:
    """The card of a model, `card.json`, without the list of files; nothing if there is none.

    Raises:
        StoreError: It is damaged.
    """
    return {name: value for name, value in _read_whole_card(folder).items() if name != FILES}


def refuse_damaged_files(folder: Path) -> None:
    """Refuse a model of which a file is not the one that the training wrote; one that lists no files is believed.

    Raises:
        StoreError: A file is damaged or missing.
    """
    if not (folder / TRAINING).is_file() and not _is_readable_card(folder / CARD):
        return  # a stranger's, of which whoever reads it complains
    for name, entry in read_listed_files(folder).items():
        if not (folder / name).is_file():
            raise _build_damaged_model_error(folder, f"'{folder / name}' is missing, though {CARD} lists it.")
        if not matches_entry(folder / name, entry):
            raise _build_damaged_model_error(folder, f"'{folder / name}' is damaged: {CARD} gives it another SHA-256.")


def read_listed_files(folder: Path) -> dict[str, dict[str, Any]]:
    """The SHA-256 and size of each file that the card of a model lists.

    Raises:
        StoreError: The card is damaged.
    """
    listed = _read_whole_card(folder).get(FILES, {})
    if not isinstance(listed, dict) or not all(
        isinstance(entry, dict) and {"sha256", "bytes"} <= set(entry) for entry in listed.values()
    ):
        raise _build_damaged_model_error(folder, f"'{folder / CARD}' is damaged: it does not list files.")
    return listed


def _read_whole_card(folder: Path) -> dict[str, Any]:
    """The card of a model, `card.json`, with the list of files."""
    if not (folder / CARD).is_file():
        return {}
    return read_checked_json(folder / CARD, do=_advise_on_damage(folder), code="model_damaged")


def _is_readable_card(path: Path) -> bool:
    """Whether the card of a model can be read as JSON."""
    try:
        read_json(path)
    except (OSError, ValueError):
        return False
    return True


def _build_damaged_model_error(folder: Path, found: str) -> StoreError:
    """Why a model of which files are damaged is not read."""
    return StoreError(found, do=_advise_on_damage(folder), code="model_damaged")


def _advise_on_damage(folder: Path) -> str:
    """What to do about a model that is damaged."""
    return (
        f"Delete this folder and train the model again: '{folder}'. If you changed the file yourself, take "
        f"'{FILES}' and 'checksum' out of {CARD}."
    )
