"""Hugging Face models that compute on this machine: from a folder, or from memory."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from copy import copy
from pathlib import Path
from typing import Any

from recollect import labels
from recollect.models.adapters import open_adapted
from recollect.models.arrays import Scaling
from recollect.models.causal import Causal
from recollect.models.classifier import Classifier
from recollect.models.devices import pick_device
from recollect.models.digesting import model_digest
from recollect.models.folders import Files, read_settings
from recollect.models.masked import Masked
from recollect.models.model import Kind, Model, Question
from recollect.models.pretrained import (
    Pretrained,
    kind_of,
    open_model,
    read_tokenizer,
    reads_arrays,
    refuse_foreign,
    settled,
)
from recollect.models.refs import Adapted
from recollect.models.seq2seq import Seq2Seq


def load_local(files: Files, question: Question, kind: Kind | None, device: str | None) -> Model:
    """The Hugging Face model that lies in these files, with an adapter or without; arguments as for `load_model`."""
    ref, place = files.ref, pick_device(device)
    if isinstance(files.name, Adapted) and files.adapter is not None:
        opened = open_adapted(files.name, files.folder, files.adapter, kind)
    else:
        opened = open_model(files.folder, ref, kind)
    network, notes, beside = opened.network, dict(opened.notes), _notes_beside(opened.folder, ref)
    tokenizer = None
    if reads_arrays(network.config, opened.kind):
        notes[labels.MODEL_SCALING] = Scaling.of(beside["card"], beside["preprocessing"], ref).noted()
    else:
        tokenizer = read_tokenizer(opened.folder, ref)
        refuse_foreign(tokenizer, network, ref)
        notes[labels.MODEL_START] = beside["card"].get("start_symbol")
    # before the precision is changed: the digest is of the weights as they are stored
    address = model_digest(network, tokenizer, notes=notes)
    network = settled(network, question.precision, place)
    pretrained = Pretrained(
        name=ref, network=network, tokenizer=tokenizer, digest=address, revision=files.revision, **beside
    )
    return _KINDS[opened.kind](pretrained, question)


def _notes_beside(folder: Path, ref: str) -> dict[str, Mapping[str, Any]]:
    """What the card and the image preprocessing beside the weights say; empty where they are absent."""
    files = {"card": "card.json", "preprocessing": "preprocessor_config.json"}
    return {name: read_settings(folder / file, ref) for name, file in files.items()}


def model_in_memory(
    network: Any, tokenizer: Any, *, card: Mapping[str, Any] | None = None, question: Question | None = None
) -> Model:
    """A model that is being trained, ready to be asked as it is now; neither its weights nor its mode are changed.

    Args:
        network: A Hugging Face model, in evaluation mode.
        tokenizer: Its tokenizer.
        card: What its card will say of how it is read: `start_symbol`.
        question: How it is to be asked.

    Raises:
        ModelError: Its class does not say what it predicts.
    """
    beside = dict(card or {})
    address = model_digest(network, tokenizer, notes={labels.MODEL_START: beside.get("start_symbol")})
    name = type(network).__name__
    config = copy(network.config)
    config.architectures = [name]
    pretrained = Pretrained(name=name, network=network, tokenizer=tokenizer, digest=address, card=beside)
    return _KINDS[kind_of(config, name)](pretrained, question or Question())


_KINDS: dict[Kind, Callable[[Pretrained, Question], Model]] = {
    "causal": Causal,
    "masked": Masked,
    "seq2seq": Seq2Seq,
    "classifier": Classifier,
}
