"""From the name of a model to a folder that holds it: on this machine, or fetched from the hub."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

from recollect.errors import ModelError
from recollect.files import read_json
from recollect.settings import did_you_mean

WEIGHTS = ("model.safetensors", "model.safetensors.index.json", "pytorch_model.bin", "pytorch_model.bin.index.json")
"""Files that hold weights, or say which files do; the pickled ones are read as tensors only."""
ADAPTER_WEIGHTS = ("adapter_model.safetensors", "adapter_model.bin")

_HUB_ID = re.compile(r"[A-Za-z0-9][\w.-]*(/[A-Za-z0-9][\w.-]*)?")
_DESCRIBING = ["*.json", "*.txt", "*.model", "*.jinja"]
_PICKLED = ["pytorch_model*.bin", "adapter_model.bin"]
_ELSEWHERE = ["*/*", "consolidated*"]
"""Other formats of the same weights, which some repositories hold in subfolders or twice."""


def model_folder(ref: str) -> Path:
    """The folder of a whole model: configuration and weights.

    Raises:
        ModelError: There is none; the message says what is there instead.
    """
    folder = _folder(ref)
    _refuse_without(folder, "config.json", ref)
    if (folder / "adapter_config.json").is_file():
        raise ModelError(
            f"The folder {ref!r} holds an adapter, not a whole model.",
            do=_as_adapter(folder, ref),
            code="adapter_without_base",
        )
    _refuse_without_weights(folder, WEIGHTS, ref)
    return folder


def adapter_folder(ref: str) -> Path:
    """The folder of a PEFT adapter.

    Raises:
        ModelError: There is none; the message says what is there instead.
    """
    folder = _folder(ref)
    if not (folder / "adapter_config.json").is_file():
        raise ModelError(
            f"The folder {ref!r} holds no adapter: it has no adapter_config.json.",
            do="After the '+' stands a folder that peft's save_pretrained wrote.",
            code="no_adapter",
        )
    _refuse_without_weights(folder, ADAPTER_WEIGHTS, ref)
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


def _folder(ref: str) -> Path:
    """The folder of that name, or the one that the hub's files were put into."""
    path = Path(ref).expanduser()
    if path.is_dir():
        return path
    if path.is_file():
        raise ModelError(
            f"The model {ref!r} is a file.", do=f"Give its folder: {str(path.parent)!r}.", code="model_is_a_file"
        )
    if _is_path(ref):
        raise ModelError(f"There is no folder {ref!r}.", do=_near(path) or "Check the path.", code="no_such_model")
    return _fetched(ref)


def _is_path(ref: str) -> bool:
    """Whether a name that is not there can only be meant as a path: then nothing is asked of the network."""
    parent = Path(ref).expanduser().parent
    return not _HUB_ID.fullmatch(ref) or (parent != Path() and parent.is_dir())


def _near(path: Path) -> str:
    """A question that names the folder beside `path` whose name is nearest."""
    parent = path.parent
    beside = [str(parent / child.name) for child in parent.iterdir() if child.is_dir()] if parent.is_dir() else []
    return did_you_mean(str(path), beside).strip()


def _fetched(ref: str) -> Path:
    """The files of a hub repository, fetched unless the cache has them."""
    from huggingface_hub import snapshot_download, try_to_load_from_cache
    from huggingface_hub.errors import HfHubHTTPError

    try:
        folder = snapshot_download(ref, allow_patterns=[*_DESCRIBING, "*.safetensors"], ignore_patterns=_ELSEWHERE)
        if not any(Path(folder).glob("*.safetensors")):
            folder = snapshot_download(ref, allow_patterns=[*_DESCRIBING, *_PICKLED], ignore_patterns=_ELSEWHERE)
    except (OSError, HfHubHTTPError) as error:
        # a cache that another program filled holds what that program needed: it may be enough
        for name in ("config.json", "adapter_config.json"):
            if isinstance(cached := try_to_load_from_cache(ref, name), str):
                return Path(cached).parent
        raise _unreachable(ref, error) from error
    return Path(folder)


def _unreachable(ref: str, error: Exception) -> ModelError:
    """Why a model of the hub cannot be had, and how to get it here."""
    from huggingface_hub import constants

    tried = f"There is no folder {ref!r} here, and no model of that name in the hub's cache ({constants.HF_HUB_CACHE})."
    if constants.is_offline_mode():
        why, ask = " The hub was not asked, because HF_HUB_OFFLINE is set.", "Unset HF_HUB_OFFLINE, or"
    else:
        why, ask = f" The hub said: {str(error).strip().splitlines()[0]}", "Check the name, or"
    fetch = f"fetch it where there is a network with `hf download {ref}`."
    return ModelError(tried + why, do=f"{_near(Path(ref))} {ask} {fetch}".strip(), code="hub_unreachable")


def _refuse_without(folder: Path, name: str, ref: str) -> None:
    """Say what a folder holds instead of a model's configuration."""
    if (folder / name).is_file():
        return
    if (folder / "adapter_config.json").is_file():
        do = _as_adapter(folder, ref)
    elif inner := sorted((path.parent.name for path in folder.glob(f"*/{name}")), key=_number):
        do = f"Did you mean {os.path.join(ref, inner[-1])!r}?"  # noqa: PTH118 - spelled as the user did
    elif (folder / "manifest.json").is_file():
        do = f"If it is an answer store, write 'recorded:{ref}'."
    else:
        do = "A model's folder is what save_pretrained writes."
    raise ModelError(f"The folder {ref!r} holds no model: it has no {name}.", do=do, code="no_model_in_folder")


def _number(name: str) -> tuple[int, str]:
    """Sorts checkpoint-900 before checkpoint-1000."""
    return int("".join(filter(str.isdecimal, name)) or 0), name


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


def _as_adapter(folder: Path, ref: str) -> str:
    """How to name an adapter with its base."""
    written = (folder / "adapter_config.json").read_text(encoding="utf-8", errors="replace")
    base = re.search(r'"base_model_name_or_path":\s*"([^"]+)"', written)
    return f"Name it with its base: '{base[1] if base else 'BASE'}+{ref}'."
