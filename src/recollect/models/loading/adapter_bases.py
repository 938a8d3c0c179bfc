"""An adapter's folder names the base that it was trained on; the base is also what it is naturally compared with."""

from __future__ import annotations

import re
from pathlib import Path

from recollect.errors import ModelError
from recollect.files import read_json
from recollect.models.model_strings import (
    HUB,
    OTHER_SCHEMES,
    AdapterRef,
    Checkpoint,
    FolderRef,
    HubRef,
    parse_checkpoint,
    split_adapter,
)

ADAPTER_CONFIG = "adapter_config.json"
_HUB_NAME = re.compile(r"[A-Za-z0-9][\w.-]*(/[A-Za-z0-9][\w.-]*)?")


def get_natural_reference(text: str) -> str | None:
    """The model that an adapted model is naturally compared with: its base; None for any other model.

    >>> get_natural_reference("hf:gpt2+runs/lora")
    'hf:gpt2'
    """
    if text.partition(":")[0] in OTHER_SCHEMES:
        return None
    pieces = split_adapter(text)
    if pieces is not None:
        return pieces[0]
    folder = Path(text).expanduser()
    return find_base(folder) if not text.startswith(HUB) and is_adapter(folder) else None


def is_adapter(folder: Path) -> bool:
    """Whether a folder holds an adapter."""
    try:
        return (folder / ADAPTER_CONFIG).is_file()
    except (OSError, ValueError):
        return False


def find_base(folder: Path) -> str | None:
    """The base that an adapter's settings name, as a model string, if it is on this machine; else None."""
    return locate_base(*read_stated_base(folder), beside=folder)


def locate_base(base: str, revision: str | None = None, *, beside: Path | None = None) -> str | None:
    """The base of an adapter as a model string, if it is on this machine; else None.

    One that is in the cache of the hub is found there. The hub is not contacted: what is stated may be a folder of
    another machine, whose name is nobody's business.

    Args:
        base: What the settings of an adapter state: a folder, or a name of the hub.
        revision: Of the hub.
        beside: The folder of the adapter, to which the path may be relative.
    """
    if not base:
        return None
    for place in (Path(base).expanduser(), *(() if beside is None else (beside / base,))):
        if place.is_dir():
            return str(place)
    if not _HUB_NAME.fullmatch(base) or not _is_base_cached(base, revision):
        return None
    return str(HubRef(base, revision))


def read_stated_base(folder: Path) -> tuple[str, str | None]:
    """The name and the revision of the base as an adapter's settings state them; an empty name if they do not."""
    try:
        settings = dict(read_json(folder / ADAPTER_CONFIG))
    except (OSError, ValueError, TypeError):
        return "", None  # whoever loads it complains
    base, revision = settings.get("base_model_name_or_path"), settings.get("revision")
    return base if isinstance(base, str) else "", revision if isinstance(revision, str) else None


def add_base(name: Checkpoint, folder: Path) -> AdapterRef:
    """An adapter that was named alone, with its base.

    Raises:
        ModelError: Its settings name none, or one that is not on this machine.
    """
    base, ref = find_base(folder), str(name)
    if base is not None:
        return AdapterRef(parse_checkpoint(base), name)
    stated, revision = read_stated_base(folder)
    if _HUB_NAME.fullmatch(stated):
        do = f"Name it with its base: '{HubRef(stated, revision)}+{ref}', or with the folder of the base."
    else:
        do = f"Name it with its base: 'BASE+{ref}'."
    found = f"was trained on {stated!r}, which is not on this machine" if stated else "does not name its base"
    raise ModelError(f"The folder {ref!r} holds an adapter that {found}.", do=do, code="adapter_without_base")


def get_base_statement(start: str) -> tuple[str, str | None]:
    """How the settings of an adapter name the model that it was trained on, and its revision."""
    name = parse_checkpoint(start)
    if isinstance(name, FolderRef):
        return str(name.path.absolute()), None
    return name.name, name.revision


def _is_base_cached(name: str, revision: str | None) -> bool:
    """Whether the hub's cache holds the base of an adapter."""
    from huggingface_hub import try_to_load_from_cache

    return isinstance(try_to_load_from_cache(name, "config.json", revision=revision), str)
