"""From a folder to a Hugging Face model that may be trusted with numbers: every weight is the checkpoint's own."""

from __future__ import annotations

import importlib.util
import warnings
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from copy import copy
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from typing import Any

import torch
import transformers
from transformers import AutoConfig, AutoTokenizer
from transformers.utils import logging

import recollect.models.architectures  # noqa: F401 - the Auto classes must know our own models
from recollect.digests import Json
from recollect.errors import MissingDependency, ModelError, RecollectError
from recollect.models.loading.devices import pick_device
from recollect.models.loading.pretrained_checks import (
    abbreviate_names,
    refuse_absurd_sizes,
    refuse_absurd_tokenizer,
    refuse_quantised,
    refuse_slow,
)
from recollect.models.model import Kind, Precision
from recollect.models.model_options import ALL_DEVICES, Loading

_AUTO_CLASSES: dict[Kind, tuple[str, str]] = {
    "causal": ("AutoModelForCausalLM", "MODEL_FOR_CAUSAL_LM_MAPPING"),
    "masked": ("AutoModelForMaskedLM", "MODEL_FOR_MASKED_LM_MAPPING"),
    "seq2seq": ("AutoModelForSeq2SeqLM", "MODEL_FOR_SEQ_TO_SEQ_CAUSAL_LM_MAPPING"),
    "classifier": ("AutoModelForSequenceClassification", "MODEL_FOR_SEQUENCE_CLASSIFICATION_MAPPING"),
}
"""What loads each kind, and where `transformers` lists the architectures of that kind."""
_ARRAY_CLASSES = ("AutoModelForImageClassification", "MODEL_FOR_IMAGE_CLASSIFICATION_MAPPING")
"""The same for classifiers of arrays."""


@dataclass(frozen=True, kw_only=True)
class Pretrained:
    """A model as it was loaded: all that the four kinds of models are made of."""

    name: str
    """How the user named it."""
    network: Any
    """The Hugging Face model, in evaluation mode, on its device and in the precision requested."""
    tokenizer: Any
    """Its tokenizer; None for a model that reads arrays."""
    digest: str
    """The address of weights as stored, configuration and tokenizer."""
    revision: str | None = None
    """The commit of the hub that it was resolved to, if it is from there."""
    card: Mapping[str, Any] = field(default_factory=dict)
    """The content of `card.json`, for models that were trained by a recipe."""
    preprocessing: Mapping[str, Any] = field(default_factory=dict)
    """The content of `preprocessor_config.json`, for models that read images."""


@dataclass(frozen=True, kw_only=True)
class LoadedNetwork:
    """A model as it is in its folder or in memory: in the precision that it is stored in."""

    network: Any
    kind: Kind
    folder: Path | None
    """Where its tokenizer and its card are; None for a model in memory."""
    notes: Mapping[str, Json] = field(default_factory=dict)
    """What its numbers depend on besides weights, configuration and tokenizer."""
    weights: str | None = None
    """The digest of its weights, where it is known already."""


def open_pretrained(folder: Path, ref: str, kind: Kind, loading: Loading) -> LoadedNetwork:
    """The pretrained model that is in one folder."""
    network = read_pretrained_network(
        folder, ref, config=read_pretrained_config(folder, ref), kind=kind, loading=loading
    )
    return LoadedNetwork(network=network, kind=kind, folder=folder)


def read_pretrained_config(folder: Path, ref: str) -> Any:
    """The configuration of the pretrained model in this folder; code that is beside it is never run."""
    with silence_libraries(ref, "Its configuration cannot be read", code="config_unreadable"):
        config = AutoConfig.from_pretrained(folder, local_files_only=True, trust_remote_code=False)
    _forget_implementations(config)
    return config


def _forget_implementations(config: Any) -> None:
    """Let no pretrained configuration choose how attention is computed: it could name code of a hub."""
    config._attn_implementation = None
    if hasattr(config, "_experts_implementation"):
        config._experts_implementation = None
    for name in getattr(config, "sub_configs", ()):
        if (inner := getattr(config, name, None)) is not None:
            _forget_implementations(inner)


def infer_kind(config: Any, ref: str) -> Kind:
    """What a pretrained model predicts, by the name of its architecture.

    Raises:
        ModelError: The name does not say, or the model has no output layer.
    """
    kinds = [kind for kind, (_, listing) in _AUTO_CLASSES.items() if _is_listed(listing, config)]
    if _is_listed(_ARRAY_CLASSES[1], config):
        kinds.append("classifier")
    if "seq2seq" in kinds and getattr(config, "is_encoder_decoder", False):
        return "seq2seq"  # BART and its kin are listed as masked models too
    if len(kinds) == 1:
        return kinds[0]
    named = f"is a {' and '.join(config.architectures)}" if config.architectures else "does not name its architecture"
    raise ModelError(
        f"The model {ref!r} {named}, which does not define what it predicts.",
        do=f"Set --kind (kind=): {', '.join(_AUTO_CLASSES)}. A model without an output layer cannot be used.",
        code="unknown_kind",
    )


def infer_kind_of_class(network: Any) -> Kind:
    """What a pretrained model in memory predicts, by its class.

    Raises:
        ModelError: The class does not say, or has no output layer.
    """
    config, name = copy(network.config), type(network).__name__
    config.architectures = [name]
    return infer_kind(config, name)


def _is_listed(listing: str, config: Any) -> bool:
    """Whether `transformers` lists the architecture that a pretrained configuration names."""
    listed = getattr(transformers, listing).get(type(config), ())
    classes = listed if isinstance(listed, tuple) else (listed,)
    return any(found.__name__ in (config.architectures or []) for found in classes)


def reads_arrays(config: Any, kind: Kind) -> bool:
    """Whether a pretrained model reads arrays rather than texts: the image classifiers."""
    if kind != "classifier" or _is_listed(_AUTO_CLASSES["classifier"][1], config):
        return False
    return type(config) in getattr(transformers, _ARRAY_CLASSES[1])


def read_pretrained_network(
    folder: Path,
    ref: str,
    *,
    config: Any,
    kind: Kind,
    supplied: Collection[str] = (),
    loading: Loading = Loading(),  # noqa: B008 - it cannot change
) -> Any:
    """The pretrained network with its weights, on the processor and in the precision they are stored in.

    Args:
        folder: Where it is.
        ref: How the user named it.
        config: Its configuration.
        kind: What it is to predict.
        supplied: Modules whose weights something else will supply (an adapter's own output layer).
        loading: Where its weights go, with how many bits, and what computes attention.

    Raises:
        ModelError: The files are damaged, or some weights would have to be made up: a model with an output layer
            drawn at random answers, but its numbers mean nothing.
    """
    auto = getattr(transformers, (_ARRAY_CLASSES if reads_arrays(config, kind) else _AUTO_CLASSES[kind])[0])
    with silence_libraries(ref, f"It cannot be loaded as a {kind} model", code="weights_unreadable"):
        refuse_absurd_sizes(folder, config, auto, ref)
        network, found = auto.from_pretrained(
            folder,
            config=config,
            local_files_only=True,
            trust_remote_code=False,
            weights_only=True,
            output_loading_info=True,
            ignore_mismatched_sizes=True,
            **_build_loading_arguments(loading, ref),
        )
    wrong = sorted(
        f"{name} ({list(stored)} instead of {list(wanted)})" for name, stored, wanted in found["mismatched_keys"]
    )
    if wrong:
        raise ModelError(
            f"The weights of {ref!r} do not fit its config.json: {abbreviate_names(wrong)}.",
            do="Save the model again, whole.",
            code="weights_misfit",
        )
    if loading.bits is None:
        refuse_quantised(network, ref)
    missing = sorted(name for name in found["missing_keys"] if not set(name.split(".")) & set(supplied))
    if missing:
        raise ModelError(
            f"The model {ref!r} lacks weights that a {kind} model needs: {abbreviate_names(missing)}.",
            do="They would be drawn at random, and its answers would mean nothing. "
            "Give a model that was trained with them, or set --kind (kind=) to what it predicts.",
            code="missing_weights",
        )
    return network


def _build_loading_arguments(loading: Loading, ref: str) -> dict[str, Any]:
    """The arguments of `from_pretrained` that say how a model is loaded.

    Raises:
        MissingDependency: It needs a package that is not installed.
    """
    found: dict[str, Any] = {} if loading.attention is None else {"attn_implementation": loading.attention}
    if loading.device == ALL_DEVICES:
        _require_package("accelerate", ref, f"is spread over devices (device {ALL_DEVICES})")
        found["device_map"] = "auto"
    if loading.bits is None:
        return found
    _require_package("bitsandbytes", ref, f"is rounded to {loading.bits[0]} bits")
    quantisation = transformers.BitsAndBytesConfig(**{f"load_in_{loading.bits}": True})
    placed = {"": loading.device or str(pick_device())}
    return {"device_map": placed, **found, "quantization_config": quantisation}


def _require_package(package: str, ref: str, reason: str) -> None:
    """Refuse a pretrained model that needs a package that is not installed."""
    if importlib.util.find_spec(package) is None:
        raise MissingDependency(
            f"The model {ref!r} {reason}, which needs the package {package}.",
            do=f"pip install {package}",
            code=f"{package}_missing",
        )


def read_tokenizer(folder: Path, ref: str) -> Any:
    """The tokenizer of the pretrained model in this folder.

    Raises:
        ModelError: There is none, or it gives no character offsets of tokens.
    """
    with silence_libraries(ref, "Its tokenizer cannot be loaded", code="tokenizer_unreadable"):
        tokenizer = AutoTokenizer.from_pretrained(folder, local_files_only=True, trust_remote_code=False)
    # without its files, transformers makes up an empty tokenizer of the model's family
    files = {"tokenizer.json", *type(tokenizer).vocab_files_names.values()}
    if not any((folder / name).is_file() for name in files if name):
        raise ModelError(
            f"The model {ref!r} has no tokenizer.",
            do=f"Save its tokenizer into {str(folder)!r} as well.",
            code="no_tokenizer",
        )
    refuse_slow(tokenizer, ref)
    refuse_absurd_tokenizer(tokenizer, ref)
    return tokenizer


def settle_network(network: Any, precision: Precision, device: torch.device) -> Any:
    """The pretrained network ready to score: evaluation mode, precision, device, nothing to be trained.

    A model that is spread over devices stays where it is, and one that was rounded to a few bits stays as it is.
    """
    network = network.eval().requires_grad_(False)
    if getattr(network, "hf_quantizer", None) is not None:
        return network
    dtype = getattr(torch, precision)
    if len(set(getattr(network, "hf_device_map", {}).values())) > 1:
        for weights in chain(network.parameters(), network.buffers()):
            if weights.is_floating_point():
                weights.data = weights.data.to(dtype)
        return network
    return network.to(device=device, dtype=dtype)


@contextmanager
def silence_libraries(ref: str, what: str, *, code: str) -> Iterator[None]:
    """Silence the libraries while they load a pretrained model; what they raise becomes one clear error."""
    level, bars = logging.get_verbosity(), logging.is_progress_bar_enabled()
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    except (RecollectError, MemoryError):
        raise
    except Exception as error:  # libraries raise anything if files are damaged or do not belong together
        if "weights_only" in str(error):  # torch advises to run the code; nobody should
            raise ModelError(
                f"The model {ref!r} could not be loaded: its weights are pickled with objects that are no tensors.",
                do="Such a file can run any code when it is read, so it is not. Save the weights as safetensors.",
                code=code,
            ) from error
        message = next((line.strip() for line in str(error).splitlines() if line.strip()), type(error).__name__)
        raise ModelError(
            f"The model {ref!r} could not be loaded. {what}: {message}",
            do="Only architectures that transformers knows are read; code from a model's folder is never run.",
            code=code,
        ) from error
    finally:
        logging.set_verbosity(level)
        if bars:
            logging.enable_progress_bar()
