"""Hugging Face models that compute on this machine: from a folder, or from memory."""

from __future__ import annotations

import io
import sys
from collections.abc import Callable, Mapping
from contextlib import redirect_stderr
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import torch
from transformers import AutoModelForCausalLM, AutoTokenizer, Pipeline, PreTrainedModel, PreTrainedTokenizerBase

from recollect import labels
from recollect.errors import MissingDependency, ModelError
from recollect.models.hugging_face.array_inputs import ArrayScaling
from recollect.models.hugging_face.causal import Causal
from recollect.models.hugging_face.classifier import Classifier
from recollect.models.hugging_face.masked import Masked
from recollect.models.hugging_face.seq2seq import Seq2Seq
from recollect.models.loading.adapters import open_adapter, open_adapter_in_memory, remove_adapters
from recollect.models.loading.devices import DevicePlacement, computes_in, pick_device
from recollect.models.loading.loader import build_not_a_model_error
from recollect.models.loading.model_digests import compute_model_digest
from recollect.models.loading.model_folders import Files, read_settings
from recollect.models.loading.pretrained import (
    LoadedNetwork,
    Pretrained,
    infer_kind,
    infer_kind_of_class,
    open_pretrained,
    read_pretrained_config,
    read_tokenizer,
    reads_arrays,
    settle_network,
    silence_libraries,
)
from recollect.models.loading.pretrained_checks import (
    refuse_foreign,
    refuse_not_a_number,
    refuse_quantised,
    refuse_slow,
)
from recollect.models.loading.shared_bases import (
    clone_network,
    find_base_in_memory,
    read_shared_tokenizer,
    refuse_absent_weights,
)
from recollect.models.loading.stored_weights import (
    StoredWeights,
    announce_upcast,
    read_stored_precision,
    read_stored_weights,
)
from recollect.models.model import Kind, Model, Precision, Question
from recollect.models.model_options import ALL_DEVICES, Loading
from recollect.models.model_strings import AdapterRef, GgufRef

Notes = Mapping[str, Any]


def load_local(files: Files, question: Question, kind: Kind | None, loading: Loading) -> Model:
    """The Hugging Face model that is in these files, with an adapter or without; arguments as for `load_model`."""
    ref = files.ref
    device = pick_device(None if loading.device == ALL_DEVICES else loading.device)
    question = _choose_precision(files, question, loading, device)
    placement = DevicePlacement(device=device, dtype=getattr(torch, question.precision))
    if isinstance(files.name, AdapterRef):
        opened = open_adapter(files.name, files, kind, placement, loading)
    else:
        kind = kind or infer_kind(read_pretrained_config(files.folder, ref), ref)
        opened = _open_whole(files.folder, ref, kind, placement, loading)
    folder = opened.folder or files.folder
    tokenizer = None
    if not reads_arrays(opened.network.config, opened.kind):
        tokenizer = read_shared_tokenizer(folder, ref) if files.adapter is not None else read_tokenizer(folder, ref)
    attachments = _NetworkAttachments(
        name=ref, tokenizer=tokenizer, revision=files.revision, **_read_local_notes(folder, ref)
    )
    return _build_model(
        opened, attachments, question, lambda network: settle_network(network, question.precision, device)
    )


def load_gguf(name: GgufRef, question: Question, loading: Loading) -> Model:
    """The model in a GGUF file; arguments as for `load_model`."""
    ref, device = str(name), pick_device(loading.device)
    if loading.keeps_precision:
        question = replace(question, precision=COMPUTED)
    opened, tokenizer = open_gguf(name.path, ref)
    attachments = _NetworkAttachments(name=ref, tokenizer=tokenizer)
    return _build_model(
        opened, attachments, question, lambda network: settle_network(network, question.precision, device)
    )


def _choose_precision(files: Files, question: Question, loading: Loading, device: torch.device) -> Question:
    """The question with what the model computes in; that it takes more memory than the files is announced."""
    if loading.bits is not None:
        return question
    if loading.keeps_precision:
        stored = getattr(torch, read_stored_precision(files.folder))
        question = replace(question, precision=_keep_precision(stored, device))
    announce_upcast(files.ref, read_stored_weights(files.folder), question.precision)
    return question


def choose_stored_precision(folder: Path, device: str | None) -> Precision:
    """What a local model computes in on a device if it keeps the precision that it is stored in."""
    placed = pick_device(None if device == ALL_DEVICES else device)
    return _keep_precision(getattr(torch, read_stored_precision(folder)), placed)


def _keep_precision(stored: torch.dtype, device: torch.device) -> Precision:
    """What a local model of this type computes in: half precision where the device computes in it, else float32."""
    if stored == torch.bfloat16 and computes_in(device, stored):
        return "bfloat16"
    return "float16" if stored == torch.float16 and computes_in(device, stored) else "float32"


def _open_whole(folder: Path, ref: str, kind: Kind, placement: DevicePlacement, loading: Loading) -> LoadedNetwork:
    """The model in one folder; if it is the base of adapters that are in memory, it shares its weights with them."""
    held = find_base_in_memory(folder, kind=kind, dtype=placement.dtype, device=placement.device)
    if held is None or held.stored != placement.dtype or not loading.is_plain:
        return open_pretrained(folder, ref, kind, loading)
    return LoadedNetwork(network=held.copy(ref), kind=kind, folder=folder)


def load_from_memory(  # noqa: PLR0913 - a model, what belongs to it, and how it is used
    source: Any,
    tokenizer: Any = None,
    *,
    card: Notes | None = None,
    question: Question | None = None,
    kind: Kind | None = None,
    device: str | None = None,
    loading: Loading | None = None,
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
        loading: Device and precision, where they were given together.

    Raises:
        ModelError: It is not a supported model, or its tokenizer is missing or another's.
    """
    how, question = loading or Loading(device=device, keeps_precision=question is None), question or Question()
    network, attachments = _unpack_network(source, tokenizer)
    if card is not None:
        attachments = replace(attachments, card=card)
    refuse_absent_weights(network, attachments.name)
    opened = _open_network(network, attachments.name, kind)
    refuse_quantised(opened.network, attachments.name)
    if not reads_arrays(opened.network.config, opened.kind):
        _refuse_no_tokenizer(attachments)
    target_device = None if how.device is None else pick_device(how.device)
    if how.keeps_precision:
        question = replace(question, precision=_keep_precision(opened.network.dtype, target_device or network.device))
    dtype = getattr(torch, question.precision)
    return _build_model(
        opened,
        attachments,
        question,
        lambda network: clone_network(network, name=attachments.name, dtype=dtype, device=target_device),
    )


def load_base_from_memory(source: Any, tokenizer: Any = None, **settings: Any) -> Model | None:
    """The base of a PEFT model, without its adapters, as a model of its own; None for any other model.

    Args:
        source: What `load_from_memory` takes.
        tokenizer: Likewise.
        settings: `question`, `kind` and `device`, likewise.
    """
    network, attachments = _unpack_network(source, tokenizer)
    if not _is_adapted(network):
        return None
    return load_from_memory(remove_adapters(network, attachments.name), attachments.tokenizer, **settings)


@dataclass(frozen=True, kw_only=True)
class _NetworkAttachments:
    """What is around a network."""

    name: str
    tokenizer: Any
    revision: str | None = None
    card: Notes = field(default_factory=dict)
    preprocessing: Notes = field(default_factory=dict)


def _build_model(
    opened: LoadedNetwork, attachments: _NetworkAttachments, question: Question, settle: Callable[[Any], Any]
) -> Model:
    """The model that scores records; its digest is of the weights as they are stored, before `settle` converts them."""
    network, notes = opened.network, dict(opened.notes)
    if reads_arrays(network.config, opened.kind):
        notes[labels.MODEL_SCALING] = ArrayScaling.of(
            attachments.card, attachments.preprocessing, attachments.name
        ).describe()
        attachments = replace(attachments, tokenizer=None)
    else:
        refuse_foreign(attachments.tokenizer, network, attachments.name)
        notes[labels.MODEL_START] = attachments.card.get("start_symbol")
    refuse_not_a_number(network, attachments.name)
    address = compute_model_digest(network, attachments.tokenizer, notes=notes, weights=opened.weights)
    return _KINDS[opened.kind](Pretrained(**vars(attachments), network=settle(network), digest=address), question)


def _unpack_network(source: Any, tokenizer: Any) -> tuple[Any, _NetworkAttachments]:
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
    notes = _read_local_notes(Path(config.name_or_path), name) if config.name_or_path else {}
    if preprocessing:
        notes["preprocessing"] = preprocessing
    return source, _NetworkAttachments(
        name=name, tokenizer=tokenizer, revision=getattr(config, "_commit_hash", None), **notes
    )


def _open_network(network: Any, name: str, kind: Kind | None) -> LoadedNetwork:
    """A local network in memory, with an adapter or without."""
    if _is_adapted(network):
        return open_adapter_in_memory(network, name, kind)
    return LoadedNetwork(network=network, kind=kind or infer_kind_of_class(network), folder=None)


def _is_adapted(network: Any) -> bool:
    """Whether this is a model of peft, which is not loaded to find out."""
    peft = sys.modules.get("peft")
    return peft is not None and isinstance(network, peft.PeftModel)


def _read_local_notes(folder: Path, ref: str) -> dict[str, Notes]:
    """The card and the image preprocessing beside the weights of a local model; empty where they are absent."""
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


def _refuse_no_tokenizer(attachments: _NetworkAttachments) -> None:
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


COMPUTED: Precision = "float32"
"""What quantised weights become: no more was stored, and nothing is rounded a second time."""


def open_gguf(path: Path, ref: str) -> tuple[LoadedNetwork, Any]:
    """The causal model in a file, and its tokenizer.

    Raises:
        MissingDependency: gguf is not installed.
        ModelError: The file is damaged, or of an architecture that transformers does not read.
    """
    try:
        import gguf  # noqa: F401 - transformers reads with it
    except ImportError as error:
        raise MissingDependency(
            f"The model {ref!r} is a GGUF file, which needs the package gguf.",
            do="pip install 'recollect[gguf]'",
            code="gguf_missing",
        ) from error
    with silence_libraries(ref, "The GGUF file cannot be read", code="gguf_unreadable"):
        stored = _count_gguf_weights(path)
    announce_upcast(ref, stored, COMPUTED, file="quantised")
    unreadable = silence_libraries(ref, "The GGUF file cannot be read", code="gguf_unreadable")
    with unreadable, redirect_stderr(io.StringIO()):  # a bar that transformers draws whatever it is told
        settings = {"gguf_file": path.name, "local_files_only": True, "trust_remote_code": False}
        network = AutoModelForCausalLM.from_pretrained(path.parent, dtype=torch.float32, **settings)
        tokenizer = AutoTokenizer.from_pretrained(path.parent, **settings)
    refuse_slow(tokenizer, ref)
    return LoadedNetwork(network=network, kind="causal", folder=None), tokenizer


def _count_gguf_weights(path: Path) -> StoredWeights:
    """How many weights a local GGUF file holds."""
    from gguf import GGUFReader

    return StoredWeights(precision=COMPUTED, numbers=sum(int(each.n_elements) for each in GGUFReader(path).tensors))
