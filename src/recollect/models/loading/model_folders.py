"""From the name of a model to the folder of its files: on this machine, or fetched from the hub."""

from __future__ import annotations

import os
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from recollect.errors import ModelError
from recollect.files import read_json
from recollect.models.loading.adapter_bases import ADAPTER_CONFIG, add_base, is_adapter, read_stated_base
from recollect.models.loading.model_cards import refuse_damaged_files
from recollect.models.model_strings import HUB, AdapterRef, Checkpoint, FolderRef, HubRef, parse_checkpoint

WEIGHTS = ("model.safetensors", "model.safetensors.index.json", "pytorch_model.bin", "pytorch_model.bin.index.json")
"""Files that hold weights, or say which files do; the pickled ones are read as tensors only."""
ADAPTER_WEIGHTS = ("adapter_model.safetensors", "adapter_model.bin")

_DESCRIPTION_FILES = ["*.json", "*.txt", "*.model", "*.jinja"]
_MAX_DESCRIPTION_BYTES = 2**29
"""The largest file that describes a model: the largest vocabularies take a tenth of it; it is read as a whole."""
_PICKLE_FILES = ["pytorch_model*.bin", "adapter_model.bin"]
_IGNORED_FILES = ["*/*", "consolidated*"]
"""Other formats of the same weights, which some repositories hold in subfolders or twice."""


@dataclass(frozen=True, kw_only=True)
class Files:
    """Where the files of a model are."""

    ref: str
    """How the user named it."""
    name: Checkpoint | AdapterRef
    """What was named, an adapter with its base."""
    folder: Path
    """Configuration, weights and, unless the adapter brings its own, tokenizer."""
    adapter: Path | None = None
    """The adapter's folder, if there is one."""
    revision: str | None = None
    """The commits that the hub's files are of; of base and adapter both, with a '+' between them."""


def locate_files(name: Checkpoint | AdapterRef) -> Files:
    """The files of a model, fetched from the hub where that is meant.

    Raises:
        ModelError: They are not there; the message says what is there instead.
    """
    ref = str(name)
    if not isinstance(name, AdapterRef):
        if not is_adapter(folder := _resolve_folder(name)):
            folder = find_model_folder(name)
            return Files(ref=ref, name=name, folder=folder, revision=_get_commit(name, folder))
        name = add_base(name, folder)
    folder, adapter = find_model_folder(name.base), find_adapter_folder(name.adapter)
    commits = [_get_commit(name.base, folder) or "", _get_commit(name.adapter, adapter) or ""]
    return Files(
        ref=ref, name=name, folder=folder, adapter=adapter, revision="+".join(commits) if any(commits) else None
    )


def _get_commit(name: Checkpoint, folder: Path) -> str | None:
    """The commit of a snapshot of the hub; its folder is called so."""
    return folder.name if isinstance(name, HubRef) else None


def find_model_folder(name: Checkpoint) -> Path:
    """The folder of a whole model: configuration and weights.

    Raises:
        ModelError: There is none; the message says what is there instead.
    """
    folder, ref = _resolve_folder(name), str(name)
    _refuse_without_config(folder, "config.json", ref)
    if (folder / ADAPTER_CONFIG).is_file():
        raise ModelError(
            f"The folder {ref!r} holds an adapter, not a whole model.",
            do=_suggest_adapter_name(folder, ref),
            code="adapter_without_base",
        )
    _refuse_without_weights(folder, WEIGHTS, ref)
    _refuse_huge_descriptions(folder, ref)
    refuse_damaged_files(folder)
    return folder


def find_checkpoint_folder(text: str) -> Path:
    """The folder of a whole model that a string names; see `parse_checkpoint` and `find_model_folder`."""
    return find_model_folder(parse_checkpoint(text))


def find_folder(text: str) -> Path:
    """The folder of a checkpoint that a string names, without a look at its files."""
    return _resolve_folder(parse_checkpoint(text))


def find_adapter_folder(name: Checkpoint) -> Path:
    """The folder of a PEFT adapter.

    Raises:
        ModelError: There is none; the message says what is there instead.
    """
    folder, ref = _resolve_folder(name), str(name)
    if not (folder / ADAPTER_CONFIG).is_file():
        raise ModelError(
            f"The folder {ref!r} holds no adapter: it has no adapter_config.json.",
            do="Give a folder that peft's save_pretrained wrote after the '+'.",
            code="no_adapter",
        )
    _refuse_without_weights(folder, ADAPTER_WEIGHTS, ref)
    _refuse_huge_descriptions(folder, ref)
    refuse_damaged_files(folder)
    return folder


def read_settings(path: Path, ref: str) -> dict[str, Any]:
    """The settings in a JSON file beside a model; none if there is no such file.

    Raises:
        ModelError: The file is damaged.
    """
    if not path.is_file():
        return {}
    try:
        return dict(read_json(path))
    except (OSError, ValueError, TypeError) as error:
        raise ModelError(
            f"The {path.name} of model {ref!r} cannot be read: {error}",
            do="Correct it, or take it out of the model's folder.",
            code="settings_unreadable",
        ) from error


def _resolve_folder(name: Checkpoint) -> Path:
    """The folder itself, or the one that the hub's files were put into."""
    return name.path if isinstance(name, FolderRef) else _fetch_from_hub(name)


def find_tokenizer_folder(name: Checkpoint) -> Path:
    """The folder of a tokenizer; of a model of the hub no weights are fetched.

    Raises:
        ModelError: It cannot be had.
    """
    return name.path if isinstance(name, FolderRef) else _fetch_from_hub(name, weights=False)


def _fetch_from_hub(model: HubRef, *, weights: bool = True) -> Path:
    """The folder of a hub repository's files, fetched unless the cache has them."""
    from huggingface_hub import snapshot_download, try_to_load_from_cache
    from huggingface_hub.errors import HfHubHTTPError

    fetch = partial(snapshot_download, model.name, revision=model.revision, ignore_patterns=_IGNORED_FILES)
    try:
        folder = fetch(allow_patterns=[*_DESCRIPTION_FILES, *(["*.safetensors"] if weights else [])])
        if weights and not any(Path(folder).glob("*.safetensors")):
            folder = fetch(allow_patterns=[*_DESCRIPTION_FILES, *_PICKLE_FILES])
    except (OSError, HfHubHTTPError) as error:
        # a cache that another program filled holds what that program needed: it may be enough
        for file in ("config.json", ADAPTER_CONFIG):
            if isinstance(cached := try_to_load_from_cache(model.name, file, revision=model.revision), str):
                return Path(cached).parent
        raise _build_unreachable_error(model, error) from error
    return Path(folder)


def _build_unreachable_error(model: HubRef, error: Exception) -> ModelError:
    """Why a model of the hub cannot be had, and how to get it here."""
    from huggingface_hub import constants

    tried = f"There is no model {str(model)!r} in the hub's cache ({constants.HF_HUB_CACHE})."
    if constants.is_offline_mode():
        why, ask = " The hub was not contacted, because HF_HUB_OFFLINE is set.", "Unset HF_HUB_OFFLINE, or"
    else:
        why, ask = f" The hub answered: {str(error).strip().splitlines()[0]}", "Check the name, or"
    pinned = "" if model.revision is None else f" --revision {model.revision}"
    do = f"{ask} fetch it where there is a network with `hf download {model.name}{pinned}`."
    return ModelError(tried + why, do=do, code="hub_unreachable")


def _refuse_without_config(folder: Path, name: str, ref: str) -> None:
    """Say what a folder holds instead of a model's configuration."""
    if (folder / name).is_file():
        return
    if (folder / ADAPTER_CONFIG).is_file():
        do = _suggest_adapter_name(folder, ref)
    elif inner := sorted((path.parent.name for path in folder.glob(f"*/{name}")), key=_get_checkpoint_number):
        do = f"Did you mean {os.path.join(ref, inner[-1])!r}?"  # noqa: PTH118 - spelled as the user did
    elif (folder / "manifest.json").is_file():
        do = f"If it is an answer store, write 'recorded:{ref}'."
    else:
        do = "A model's folder is what save_pretrained writes."
    raise ModelError(f"The folder {ref!r} holds no model: it has no {name}.", do=do, code="no_model_in_folder")


def _get_checkpoint_number(name: str) -> tuple[int, str]:
    """The number of a checkpoint folder: sorts checkpoint-900 before checkpoint-1000."""
    return int("".join(filter(str.isdecimal, name)) or 0), name


def _refuse_huge_descriptions(folder: Path, ref: str) -> None:
    """Refuse files beside the weights that would fill the memory when they are read."""
    for path in (path for pattern in _DESCRIPTION_FILES for path in sorted(folder.glob(pattern))):
        if path.is_file() and (size := path.stat().st_size) > _MAX_DESCRIPTION_BYTES:
            raise ModelError(
                f"The file {path.name!r} of {ref!r} has {size:,} bytes, which no description of a model has.",
                do="Save the model again, and check where its folder comes from.",
                code="huge_description",
            )


def _refuse_without_weights(folder: Path, names: tuple[str, ...], ref: str) -> None:
    """Say that a folder holds no weights, or only such as cannot be read."""
    if any((folder / name).is_file() for name in names):
        return
    other = sorted(path.name for path in folder.iterdir() if path.suffix in {".h5", ".msgpack", ".gguf", ".pt", ".pth"})
    held = f"it holds {', '.join(other)}, which cannot be read" if other else "it holds none"
    raise ModelError(
        f"The folder {ref!r} has no weights: {held}.",
        do=f"Save the model again as safetensors ({names[0]}).",
        code="no_weights",
    )


def _suggest_adapter_name(folder: Path, ref: str) -> str:
    """For the folder of an adapter: how to name it with its base."""
    base, _ = read_stated_base(folder)
    named = (base if Path(base).is_dir() else f"{HUB}{base}") if base else "BASE"
    return f"Name it with its base: '{named}+{ref}'."
