"""The one grammar of model strings, the same in the CLI, the plan and Python.

    PATH | hf:NAME[@REV] | BASE+ADAPTER | FILE.gguf | recorded:DIR | python:module:factory | http(s)://host/v1#NAME
    openai:NAME | vllm:NAME | llamacpp:NAME, which stand for such an address

BASE and ADAPTER are each a path or `hf:`. Parsing looks at the disk, never at the network, and loads no torch: a name
that is neither a folder nor marked as the hub's is refused here, so that a typing error is never sent anywhere.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from recollect.checks import suggest_name
from recollect.errors import ModelError

HUB = "hf:"
_HUB_NAME = re.compile(r"[A-Za-z0-9][\w.-]*(/[A-Za-z0-9][\w.-]*)?")
_REVISION = re.compile(r"[\w./-]+")
_ENDPOINT = re.compile(r"(https?://[^#\s]+)#(\S+)")
SHORTHANDS = {
    "openai": "https://api.openai.com/v1",
    "vllm": "http://localhost:8000/v1",
    "llamacpp": "http://localhost:8080/v1",
}
"""Servers that have a name: their usual addresses. What they can do is probed all the same."""
OTHER_SCHEMES = {"recorded", "python", "http", "https", *SHORTHANDS}
"""What begins so is no folder and no model of the hub."""
_USER = re.compile(r"//[^/@]*@")
_SHOWN = 5
"""How many folders are listed where the one requested is not there."""


@dataclass(frozen=True)
class FolderRef:
    """A folder on this machine that `save_pretrained` wrote."""

    text: str

    @property
    def path(self) -> Path:
        """Where it is."""
        return Path(self.text).expanduser()

    def __str__(self) -> str:
        return self.text


@dataclass(frozen=True)
class HubRef:
    """A model of the Hugging Face hub."""

    name: str
    revision: str | None = None
    """A branch, tag or commit; None for the main branch."""

    def __str__(self) -> str:
        return f"{HUB}{self.name}" + ("" if self.revision is None else f"@{self.revision}")


@dataclass(frozen=True)
class AdapterRef:
    """A PEFT adapter on its base."""

    base: FolderRef | HubRef
    adapter: FolderRef | HubRef

    def __str__(self) -> str:
        return f"{self.base}+{self.adapter}"


@dataclass(frozen=True)
class GgufRef:
    """A quantised model in one file."""

    text: str

    @property
    def path(self) -> Path:
        """Where it is."""
        return Path(self.text).expanduser()

    def __str__(self) -> str:
        return self.text


@dataclass(frozen=True)
class RecordingRef:
    """An answer store that is replayed."""

    text: str
    """Its folder."""

    @property
    def path(self) -> Path:
        """Where it is."""
        return Path(self.text).expanduser()

    def __str__(self) -> str:
        return f"recorded:{self.text}"


@dataclass(frozen=True)
class CodeRef:
    """A model that the user's own code makes."""

    module: str
    factory: str

    def __str__(self) -> str:
        return f"python:{self.module}:{self.factory}"


@dataclass(frozen=True)
class EndpointRef:
    """A model that an inference server shows."""

    url: str
    name: str
    """How the server calls the model."""

    def __str__(self) -> str:
        return f"{self.url}#{self.name}"


Checkpoint = FolderRef | HubRef
"""A whole model: configuration, weights and tokenizer."""
ModelName = Checkpoint | AdapterRef | GgufRef | RecordingRef | CodeRef | EndpointRef


def parse_model(text: str) -> ModelName:
    """What a model string names.

    >>> parse_model("hf:EleutherAI/pythia-70m@step3000")
    HubRef(name='EleutherAI/pythia-70m', revision='step3000')
    >>> parse_model("python:my_models:shop_bot")
    CodeRef(module='my_models', factory='shop_bot')
    >>> parse_model("vllm:shop-bot")
    EndpointRef(url='http://localhost:8000/v1', name='shop-bot')

    Raises:
        ModelError: It names nothing that is there, or breaks the grammar.
    """
    scheme, _, rest = text.partition(":")
    if scheme == "recorded":
        return RecordingRef(rest)
    if scheme == "python":
        return _parse_code(text, rest)
    if scheme in {"http", "https"} or (scheme in SHORTHANDS and rest):
        return _parse_endpoint(f"{SHORTHANDS[scheme]}#{rest}" if scheme in SHORTHANDS else text)
    if (pieces := split_adapter(text)) is not None:
        return AdapterRef(_parse_folder_or_hub(pieces[0]), _parse_folder_or_hub(pieces[1]))
    if text.lower().endswith(".gguf") and _probe_path(text) == "file":
        return GgufRef(text)
    return _parse_folder_or_hub(text)


def parse_checkpoint(text: str) -> Checkpoint:
    """What a string names that must be a whole model, such as the one a training starts from.

    Raises:
        ModelError: It names nothing that is there, or something else than a folder or a model of the hub.
    """
    found = parse_model(text)
    if not isinstance(found, FolderRef | HubRef):
        raise ModelError(
            f"The model {text!r} is not a checkpoint whose weights can be read as they are.",
            do=f"Give its folder, or {HUB}NAME.",
            code="not_a_checkpoint",
        )
    return found


def split_adapter(text: str) -> tuple[str, str] | None:
    """Base and adapter, where the string has both: a folder's own name may hold a '+', too."""
    if "+" not in text or _probe_path(text) is not None:
        return None
    pairs = [(text[:index], text[index + 1 :]) for index, letter in enumerate(text) if letter == "+"]
    found = [pair for pair in pairs if _names_folder_or_hub(pair[1])] or [
        pair for pair in pairs if _names_folder_or_hub(pair[0])
    ][-1:]
    return found[0] if found else None


def _names_folder_or_hub(text: str) -> bool:
    """Whether a model string names a folder that is there, or a model of the hub."""
    return text.startswith(HUB) or _probe_path(text) == "folder"


def _probe_path(text: str) -> Literal["folder", "file"] | None:
    """What is at the path of a model string; None also for what can be no path at all."""
    try:
        path = Path(text).expanduser()
        return None if not text else "folder" if path.is_dir() else "file" if path.is_file() else None
    except (OSError, ValueError, RuntimeError):  # too long, a zero byte, ~ of an unknown person
        return None


def _parse_folder_or_hub(text: str) -> Checkpoint:
    """Parse a model string that is a folder, or says that it is the hub's."""
    if text.startswith(HUB):
        return _parse_hub(text)
    found = _probe_path(text)
    if found == "folder":
        return FolderRef(text)
    if found == "file":
        do = f"Give its folder: {str(Path(text).parent)!r}."
        raise ModelError(f"The model {text!r} is a file.", do=do, code="model_is_a_file")
    raise _build_absent_error(text)


def _parse_hub(text: str) -> HubRef:
    """The name and revision of a model of the hub."""
    name, mark, revision = text.removeprefix(HUB).partition("@")
    if not _HUB_NAME.fullmatch(name) or (mark and not _REVISION.fullmatch(revision)):
        raise ModelError(
            f"{text!r} is no name of a model of the hub.",
            do=f"Write {HUB}NAME or {HUB}OWNER/NAME, with @REVISION behind it to pin a branch, tag or commit.",
            code="invalid_hub_name",
        )
    return HubRef(name, revision or None)


def _parse_code(text: str, target: str) -> CodeRef:
    """The module and the function that makes the model."""
    module, _, factory = target.partition(":")
    if not module or not factory:
        raise ModelError(
            f"The model {text!r} names no factory.", do="Write python:package.module:factory.", code="no_factory_named"
        )
    return CodeRef(module, factory)


def _parse_endpoint(text: str) -> EndpointRef:
    """The address of a server and the name of its model."""
    found = _ENDPOINT.fullmatch(text)
    if found is None:
        raise ModelError(
            f"The endpoint {_USER.sub('//', text)!r} does not name the model that it serves.",
            do="Write its address and the name of the model: http://host:port/v1#NAME.",
            code="invalid_endpoint",
        )
    return EndpointRef(found[1], found[2])


def _build_absent_error(text: str) -> ModelError:
    """Why a name that is neither a folder nor the hub's is no model, what is there, and what may have been meant."""
    if "://" in text:
        return ModelError(
            f"The model {text!r} is at an address that is neither http nor https.",
            do="Write the address of a server and the name of the model: https://host/v1#NAME.",
            code="no_such_model",
        )
    parent = str(Path(text).parent)
    siblings = _list_nearby_folders(parent)
    if siblings is None:
        listing = f"There is no folder {parent!r} either."
    else:
        more = f" and {len(siblings) - _SHOWN} more" if len(siblings) > _SHOWN else ""
        listing = (
            f"The folders in {parent!r}: {', '.join(siblings[:_SHOWN])}{more}." if siblings else f"{parent!r} has none."
        )
    near = suggest_name(text, [str(Path(parent) / name) for name in siblings or ()])
    hub = f"A model of the Hugging Face hub is named {HUB}{text}." if _HUB_NAME.fullmatch(text) else ""
    do = f"{near}{hub}".strip() or "Check the path."
    return ModelError(f"There is no model folder {text!r}. {listing}", do=do, code="no_such_model")


def _list_nearby_folders(text: str) -> list[str] | None:
    """The folders near the path of a model string, for the message; None if there are none."""
    if _probe_path(text) != "folder":
        return None
    try:
        inside = list(Path(text).expanduser().iterdir())
    except OSError:  # it may not be looked into
        return []
    return sorted(path.name for path in inside if path.is_dir() and not path.name.startswith("."))
