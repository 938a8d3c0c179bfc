"""From the name of a model to a model that may be asked: one string, the same in the CLI, the plan and Python."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from copy import copy
from pathlib import Path
from typing import Any

from recollect import labels
from recollect.errors import ModelError
from recollect.models.adapters import natural_reference, open_adapted, split_adapter
from recollect.models.arrays import Scaling
from recollect.models.causal import Causal
from recollect.models.classifier import Classifier
from recollect.models.devices import pick_device
from recollect.models.digesting import model_digest
from recollect.models.masked import Masked
from recollect.models.model import Kind, Model, Question
from recollect.models.own_code import model_from_code
from recollect.models.pretrained import (
    Pretrained,
    kind_of,
    notes_beside,
    open_model,
    read_tokenizer,
    reads_arrays,
    refuse_foreign,
    settled,
)
from recollect.models.recorded import replay
from recollect.models.seq2seq import Seq2Seq

__all__ = ["load_model", "model_in_memory", "natural_reference"]


def load_model(
    ref: str, *, question: Question | None = None, kind: Kind | None = None, device: str | None = None
) -> Model:
    """The model of that name, ready to be asked.

    Args:
        ref: A folder or hub id; BASE+ADAPTER; `recorded:DIR`; `python:package.module:factory` (runs that code).
            Only a hub id is looked for on the network, and code from a model's folder is never run.
        question: How it is to be asked; a recorded model and one of the user's own have theirs.
        kind: What it predicts, where its architecture does not say or says something else.
        device: Where it computes; None for the best there is.

    Raises:
        ModelError: It cannot be found or loaded; the message says what is there instead.
        MissingDependency: An optional package is needed.
    """
    scheme, _, rest = ref.partition(":")
    if scheme in {"http", "https"}:
        raise ModelError(
            f"The model {ref!r} is an endpoint, and endpoints cannot be asked yet.",
            do="They come with the next release. Until then record its answers elsewhere and give recorded:DIR.",
            code="endpoint_not_supported_yet",
        )
    if scheme in {"recorded", "python"}:
        made: Model = replay(Path(rest).expanduser()) if scheme == "recorded" else model_from_code(rest)
        if kind not in (None, made.kind):
            raise ModelError(
                f"{ref} is a {made.kind} model, not a {kind} one.", do="Leave --as (kind=) out.", code="other_kind"
            )
        return made
    return _local(ref, question or Question(), kind, device)


def _local(ref: str, question: Question, kind: Kind | None, device: str | None) -> Model:
    """A Hugging Face model, with an adapter or without."""
    place, parts = pick_device(device), split_adapter(ref)
    opened = open_model(ref, kind) if parts is None else open_adapted(*parts, kind)
    network, notes, beside = opened.network, dict(opened.notes), notes_beside(opened.folder, ref)
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
    pretrained = Pretrained(name=ref, network=network, tokenizer=tokenizer, digest=address, **beside)
    return _KINDS[opened.kind](pretrained, question)


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
