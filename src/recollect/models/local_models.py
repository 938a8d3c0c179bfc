"""Hugging Face models that compute on this machine: from a folder, or from memory."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import torch
from transformers import Pipeline, PreTrainedModel, PreTrainedTokenizerBase

from recollect import labels
from recollect.errors import ModelError
from recollect.models.adapters import open_adapter, open_adapter_in_memory, remove_adapters
from recollect.models.array_inputs import Scaling
from recollect.models.bases import find_base_in_memory
from recollect.models.causal import Causal
from recollect.models.classifier import Classifier
from recollect.models.clones import clone, refuse_absent
from recollect.models.devices import Placement, pick_device
from recollect.models.folders import Files, read_settings
from recollect.models.masked import Masked
from recollect.models.model import Kind, Model, Question
from recollect.models.model_digests import compute_model_digest
from recollect.models.pretrained import (
    LoadedNetwork,
    Pretrained,
    infer_kind,
    infer_kind_of_class,
    open_model,
    read_config,
    read_tokenizer,
    reads_arrays,
    refuse_foreign,
    refuse_not_a_number,
    refuse_quantised,
    refuse_slow,
    settle,
)
from recollect.models.refs import AdapterRef
from recollect.models.seq2seq import Seq2Seq
from recollect.models.user_code import build_not_a_model_error

Notes = Mapping[str, Any]


def load_local(files: Files, question: Question, kind: Kind | None, device: str | None) -> Model:
    """The Hugging Face model that is in these files, with an adapter or without; arguments as for `load_model`."""
    ref, placement = files.ref, Placement(device=pick_device(device), dtype=getattr(torch, question.precision))
    if isinstance(files.name, AdapterRef):
        opened = open_adapter(files.name, files, kind, placement)
    else:
        opened = _open_whole(files.folder, ref, kind, placement)
    folder = opened.folder or files.folder
    tokenizer = None if reads_arrays(opened.network.config, opened.kind) else read_tokenizer(folder, ref)
    attachments = _Attachments(name=ref, tokenizer=tokenizer, revision=files.revision, **_read_notes(folder, ref))
    return _build_model(
        opened, attachments, question, lambda network: settle(network, question.precision, placement.device)
    )


def _open_whole(folder: Path, ref: str, kind: Kind | None, placement: Placement) -> LoadedNetwork:
    """The model in one folder; if it is the base of adapters that are in memory, it shares its weights with them."""
    kind = kind or infer_kind(read_config(folder, ref), ref)
    held = find_base_in_memory(folder, kind=kind, dtype=placement.dtype, device=placement.device)
    if held is None or held.stored != placement.dtype:
        return open_model(folder, ref, kind)
    return LoadedNetwork(network=held.copy(ref), kind=kind, folder=folder)


def load_from_memory(
    source: Any,
    tokenizer: Any = None,
    *,
    card: Notes | None = None,
    question: Question | None = None,
    kind: Kind | None = None,
    device: str | None = None,
) -> Model:
    """A model that is in memory, ready to score as it is now; it is not changed, not even for a moment.

    Its digest and its answers are those of the same weights saved by `save_pretrained` and loaded from the folder.

    Args:
        source: A Hugging Face model, a PEFT model, or a pipeline of `transformers`.
        tokenizer: Its tokenizer; a pipeline brings one, and models of arrays need none.
        card: What its card says of how it is read (`start_symbol`, `input_mean`, `input_std`); None for the card in the
            folder that it was loaded from, if there is one.
        question: The scoring options.
        kind: What it predicts, where its class does not say.
        device: Where it is to compute, on a copy if need be; None for where it is.

    Raises:
        ModelError: It is not a supported model, or its tokenizer is missing or another's.
    """
    question = question or Question()
    network, attachments = _unpack(source, tokenizer)
    if card is not None:
        attachments = replace(attachments, card=card)
    refuse_absent(network, attachments.name)
    opened = _open_network(network, attachments.name, kind)
    refuse_quantised(opened.network, attachments.name)
    if not reads_arrays(opened.network.config, opened.kind):
        _refuse_no_tokenizer(attachments)
    dtype, target_device = getattr(torch, question.precision), None if device is None else pick_device(device)
    return _build_model(
        opened,
        attachments,
        question,
        lambda network: clone(network, name=attachments.name, dtype=dtype, device=target_device),
    )


def load_base_from_memory(source: Any, tokenizer: Any = None, **settings: Any) -> Model | None:
    """The base of a PEFT model, without its adapters, as a model of its own; None for any other model.

    Args:
        source: What `load_from_memory` takes.
        tokenizer: Likewise.
        settings: `question`, `kind` and `device`, likewise.
    """
    network, attachments = _unpack(source, tokenizer)
    if not _is_adapted(network):
        return None
    return load_from_memory(remove_adapters(network, attachments.name), attachments.tokenizer, **settings)


@dataclass(frozen=True, kw_only=True)
class _Attachments:
    """What is around a network."""

    name: str
    tokenizer: Any
    revision: str | None = None
    card: Notes = field(default_factory=dict)
    preprocessing: Notes = field(default_factory=dict)


def _build_model(
    opened: LoadedNetwork, attachments: _Attachments, question: Question, settle: Callable[[Any], Any]
) -> Model:
    """The model that scores records; its digest is of the weights as they are stored, before `settle` converts them."""
    network, notes = opened.network, dict(opened.notes)
    if reads_arrays(network.config, opened.kind):
        notes[labels.MODEL_SCALING] = Scaling.of(
            attachments.card, attachments.preprocessing, attachments.name
        ).describe()
        attachments = replace(attachments, tokenizer=None)
    else:
        refuse_foreign(attachments.tokenizer, network, attachments.name)
        notes[labels.MODEL_START] = attachments.card.get("start_symbol")
    refuse_not_a_number(network, attachments.name)
    address = compute_model_digest(network, attachments.tokenizer, notes=notes, weights=opened.weights)
    return _KINDS[opened.kind](Pretrained(**vars(attachments), network=settle(network), digest=address), question)


def _unpack(source: Any, tokenizer: Any) -> tuple[Any, _Attachments]:
    """The network of a model or pipeline, and what is around it."""
    preprocessing: Notes = {}
    if isinstance(source, Pipeline):
        tokenizer = source.tokenizer if tokenizer is None else tokenizer
        preprocessing = {} if source.image_processor is None else source.image_processor.to_dict()
        source = source.model
    name = type(source).__name__
    if not isinstance(source, PreTrainedModel) and not _is_adapted(source):
        raise _build_no_model_error(source, name)
    config = source.get_base_model().config if _is_adapted(source) else source.config
    notes = _read_notes(Path(config.name_or_path), name) if config.name_or_path else {}
    if preprocessing:
        notes["preprocessing"] = preprocessing
    return source, _Attachments(name=name, tokenizer=tokenizer, revision=getattr(config, "_commit_hash", None), **notes)


def _open_network(network: Any, name: str, kind: Kind | None) -> LoadedNetwork:
    """A network in memory, with an adapter or without."""
    if _is_adapted(network):
        return open_adapter_in_memory(network, name, kind)
    return LoadedNetwork(network=network, kind=kind or infer_kind_of_class(network), folder=None)


def _is_adapted(network: Any) -> bool:
    """Whether this is a model of peft, which is not loaded to find out."""
    peft = sys.modules.get("peft")
    return peft is not None and isinstance(network, peft.PeftModel)


def _read_notes(folder: Path, ref: str) -> dict[str, Notes]:
    """What the card and the image preprocessing beside the weights say; empty where they are absent."""
    files = {"card": "card.json", "preprocessing": "preprocessor_config.json"}
    return {name: read_settings(folder / file, ref) for name, file in files.items()}


def _build_no_model_error(source: Any, name: str) -> ModelError:
    """What to do with something that cannot be used."""
    if not isinstance(source, torch.nn.Module):
        return build_not_a_model_error(source)
    return ModelError(
        f"A {name} is a bare module: what it reads and predicts is not defined.",
        do="Give the Hugging Face model inside it (.module of a parallel one, ._orig_mod of a compiled one), or "
        "something of your own that keeps the protocol recollect.models.Model.",
        code="bare_module",
    )


def _refuse_no_tokenizer(attachments: _Attachments) -> None:
    """Refuse a model of texts without a tokenizer that tells where tokens are."""
    if attachments.tokenizer is None:
        raise ModelError(
            f"The model {attachments.name!r} reads texts, and no tokenizer was given.",
            do="Give it as tokenizer=, or give a pipeline, which has one.",
            code="no_tokenizer",
        )
    if not isinstance(attachments.tokenizer, PreTrainedTokenizerBase):
        raise ModelError(
            f"The tokenizer given for {attachments.name!r} is a {type(attachments.tokenizer).__name__}.",
            do="Give a tokenizer of transformers, such as AutoTokenizer.from_pretrained(...) makes.",
            code="not_a_tokenizer",
        )
    refuse_slow(attachments.tokenizer, attachments.name)


_KINDS: dict[Kind, Callable[[Pretrained, Question], Model]] = {
    "causal": Causal,
    "masked": Masked,
    "seq2seq": Seq2Seq,
    "classifier": Classifier,
}
