"""Models whose answers are kept: found again by their files, and loaded only once something is to be computed."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Final
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from recollect.corpora.record import Record
from recollect.digests import Json, digest, new_hasher, update_from_file
from recollect.errors import ModelError, StoreError
from recollect.files import make_private_folder, read_checked_json, write_checked_json
from recollect.models.access import Access
from recollect.models.answer_store.manifest import MANIFEST, Manifest, get_versions
from recollect.models.answers import Answers
from recollect.models.model import Embedder, Kind, Model, Perturber, Question, Steppable, Stepper, compute_address

KNOWN_MODELS: Final = "digests"
"""The folder of a work folder that says which answers are those of which model files."""
CONTENT_BYTES: Final = 1 << 27
"""Files up to this size are compared byte by byte; larger ones by their place on the disk, size and times."""
SETTLED_NANOSECONDS: Final = 2_000_000_000
"""So old must the times of a large file be: two changes within one tick of the clock would leave the same ones."""
_REVISION: Final = 1
"""Increased by hand whenever the same files may give a model another digest."""
_DECIDING_PACKAGES: Final = (
    *("recollect", "torch", "transformers", "tokenizers"),
    *("safetensors", "sentencepiece", "peft", "gguf", "bitsandbytes"),
)
"""Packages that read model files: another version may read the same files as another model."""
_TEMPLATES: Final = "additional_chat_templates"
"""The only folder within a model's folder that its tokenizer reads."""


@dataclass
class _Origin:
    """The files that a model was loaded from."""

    key: str
    """Their key before it was loaded."""
    compute_key: Callable[[], str | None]
    noted: Path | None = None
    """The work folder in which it is noted whose answers it keeps."""


_origins: WeakKeyDictionary[Model, _Origin] = WeakKeyDictionary()
"""Of each model that was loaded from files, which these were."""


def compute_files_key(places: Iterable[Path | None], settings: Json) -> str | None:
    """What a loaded model depends on: the content of its files, how they are read, and what reads them.

    Args:
        places: The model's folder, that of its adapter, or its only file.
        settings: How the model is loaded and scored.

    Returns:
        The key; None where a large file was written just now, or one cannot be read.
    """
    try:
        files = [_describe_file(path) for place in places if place is not None for path in _list_files(place)]
    except OSError:
        return None
    if None in files:
        return None
    return digest(files, settings, get_versions(_DECIDING_PACKAGES), _REVISION)


def find_known_model(
    name: str, work: Path, key: str, *, revision: str | None, load: Callable[[], Model]
) -> Model | None:
    """The model with these files, if its answers are kept: it is loaded only when something is computed.

    Args:
        name: How the user named it.
        work: The work folder.
        key: What `compute_files_key` gives for its files.
        revision: The commit of the hub that its files are of.
        load: Loads it.
    """
    try:
        note = read_checked_json(work / KNOWN_MODELS / f"{key}.json", do="Delete it.", code="note_damaged")
        manifest = Manifest.read(work / "answers" / str(note["address"]))
        kind = _DEFERRED[manifest.kind]
        access = replace(manifest.access, steps=bool(note["steps"]))
    except (OSError, StoreError, KeyError):
        return None  # what is not there or damaged is found out by loading the model
    known = kind(
        name=name,
        kind=manifest.kind,
        digest=manifest.digest,
        question=manifest.question,
        access=access,
        revision=revision,
        load=load,
    )
    return known if compute_address(known) == manifest.address else None


def note_loaded(model: Model, key: str, compute_key: Callable[[], str | None]) -> None:
    """Note which files a model was loaded from, so that it is known again once it has kept answers.

    Args:
        model: The model.
        key: The key of its files before it was loaded.
        compute_key: Computes the key again, to see whether they changed meanwhile.
    """
    _origins[model] = _Origin(key, compute_key)


def prepare_note(model: Model) -> Callable[[Path], None]:
    """A function that notes in a work folder whose answers it keeps; it holds no reference to the model.

    It does nothing for a model that was not loaded from files, or whose files have changed since.
    """
    origin = _origins.get(model) if type(model).__hash__ is object.__hash__ else None
    address, steps = compute_address(model), model.access.steps

    def write(work: Path) -> None:
        if origin is None or origin.noted == work or origin.compute_key() != origin.key:
            return
        with suppress(OSError):  # without the note the model is loaded again, and that is all
            path = make_private_folder(work / KNOWN_MODELS) / f"{origin.key}.json"
            write_checked_json(path, {"address": address, "steps": steps})
            origin.noted = work

    return write


def find_answers(note: Path, work: Path) -> Path | None:
    """The store that a note about known models leads to; None if it is gone, or the note is damaged."""
    try:
        written = read_checked_json(note, do="Delete it.", code="note_damaged")
        store = work / "answers" / str(written["address"])
        return store if (store / MANIFEST).is_file() else None
    except (OSError, StoreError, KeyError):
        return None


@dataclass(eq=False, kw_only=True)
class DeferredModel:
    """A model that is known by its files and not loaded yet."""

    name: str
    kind: Kind
    digest: str
    question: Question
    access: Access
    revision: str | None
    load: Callable[[], Model]

    @cached_property
    def loaded(self) -> Any:
        """The model itself.

        Raises:
            ModelError: Its files have changed since it was found.
        """
        model = self.load()
        if (model.digest, model.kind, model.question) != (self.digest, self.kind, self.question):
            raise ModelError(
                f"The files of the model {self.name!r} have changed since the run began.",
                do="Run the same again.",
                code="model_changed",
            )
        return model

    @property
    def tokenizer(self) -> Any:
        """Its tokenizer."""
        return self.loaded.tokenizer

    @property
    def batches(self) -> Any:
        """How its inputs are batched."""
        return self.loaded.batches

    @property
    def budget(self) -> int:
        """How much it reads at once."""
        budget: int = self.loaded.budget
        return budget

    @budget.setter
    def budget(self, tokens: int) -> None:
        self.loaded.budget = tokens

    def answer(self, records: Sequence[Record]) -> Answers:
        """The scores of these records, in their order."""
        answers: Answers = self.loaded.answer(records)
        return answers


class _DeferredSteppable(DeferredModel):
    """A causal or sequence-to-sequence model that is not loaded yet."""

    def stepper(self, *, memory: int | None = None) -> Stepper:
        """The model queried token by token."""
        model: Steppable = self.loaded
        return model.stepper(memory=memory)


class _DeferredMasked(DeferredModel):
    """A masked language model that is not loaded yet."""

    def embed(self, records: Sequence[Record]) -> NDArray[np.float64]:
        """One row per record."""
        model: Embedder = self.loaded
        return model.embed(records)

    def neighbours(self, texts: Sequence[str], count: int) -> list[list[str]]:
        """For each text up to `count` others that say almost the same."""
        model: Perturber = self.loaded
        return model.neighbours(texts, count)


_DEFERRED: Final[dict[Kind, type[DeferredModel]]] = {
    "causal": _DeferredSteppable,
    "masked": _DeferredMasked,
    "seq2seq": _DeferredSteppable,
    "classifier": DeferredModel,
}


def _list_files(place: Path) -> list[Path]:
    """The files that a model may be read from."""
    if place.is_file():
        return [place]
    inner = place / _TEMPLATES
    folders = [place, inner] if inner.is_dir() else [place]
    return sorted(path for folder in folders for path in folder.iterdir() if path.is_file() and path.name[0] != ".")


def _describe_file(path: Path) -> Json:
    """Name and content of a model's file; of a large one where it is and when it was written, None if just now."""
    with path.open("rb") as file:  # opened first: a network file system then looks whether what it knows still holds
        found = os.fstat(file.fileno())
        if found.st_size <= CONTENT_BYTES:
            state = new_hasher()
            update_from_file(state, path)
            return [path.name, found.st_size, state.hexdigest()]
    newest = max(found.st_mtime_ns, found.st_ctime_ns)
    if newest > time.time_ns() - SETTLED_NANOSECONDS:
        return None
    return [path.name, found.st_size, found.st_dev, found.st_ino, found.st_mtime_ns, found.st_ctime_ns]
