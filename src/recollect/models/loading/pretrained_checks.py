"""What is refused of a pretrained model: absurd sizes, quantised or NaN weights, tokenizers that do not fit."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import torch

import recollect.models.architectures  # noqa: F401 - the Auto classes must know our own models
from recollect.errors import ModelError

MAX_LAYERS: Final = 10_000
"""Layers, experts or blocks of one model: each is an object that takes time to make."""
BYTES_PER_WEIGHT: Final = 0.25
"""The least that a weight takes in a file."""
FREE_WEIGHTS: Final = 100_000_000
"""So many weights can be made on any machine, to say what else is wrong with the files."""
_COUNTED: Final = ("layer", "depth", "expert", "block")
_NUMBERS: Final = ("n_", "num_")
"""How the names of numbers begin that cannot be negative: a layer may well be counted from the last."""


def refuse_absurd_sizes(folder: Path, config: Any, auto: Any, ref: str) -> None:
    """Check a configuration: refuse one that wants far more weights than its files can hold.

    Args:
        folder: Where its weights are.
        config: Its configuration.
        auto: The class of transformers that makes the model.
        ref: How the user named it.

    Raises:
        ModelError: Its sizes are absurd: to make it would fill the memory, or take for ever.
    """
    for name, value in _iter_configured_sizes(config.to_dict()):
        counted = any(word in name for word in _COUNTED) and not name.endswith("size")
        if counted and (value > MAX_LAYERS or (value < 0 and name.startswith(_NUMBERS))):
            raise _build_absurd_size_error(ref, f"{name} is {value:,}")
    held = sum(path.stat().st_size for ending in ("safetensors", "bin") for path in folder.glob(f"*.{ending}"))
    with torch.device("meta"):  # the shapes of the weights without the weights
        wanted = sum(weights.numel() for weights in auto.from_config(config).parameters())
    if wanted > FREE_WEIGHTS and wanted * BYTES_PER_WEIGHT > held:
        raise _build_absurd_size_error(ref, f"it wants {wanted:,} weights, and its files have {held:,} bytes")


def _iter_configured_sizes(settings: Any, name: str = "") -> Iterator[tuple[str, int]]:
    """The whole numbers in a configuration that is checked, which may be sizes, with their names."""
    if isinstance(settings, dict):
        for key, value in settings.items():
            yield from _iter_configured_sizes(value, str(key))
    elif isinstance(settings, list | tuple):
        for value in settings:
            yield from _iter_configured_sizes(value, name)
    elif isinstance(settings, int) and not isinstance(settings, bool):
        yield name, settings


def _build_absurd_size_error(ref: str, found: str) -> ModelError:
    """Why a model whose sizes fail the check is not made."""
    return ModelError(
        f"The sizes in the config.json of {ref!r} cannot be true: {found}.",
        do="Take the config.json that the weights were saved with.",
        code="absurd_sizes",
    )


def refuse_quantised(network: Any, ref: str) -> None:
    """Check weights: refuse those that are kept in fewer bits than they compute with."""
    if getattr(network, "hf_quantizer", None) is not None:
        raise ModelError(
            f"The weights of {ref!r} are quantised.",
            do="Save it in floating point and give that.",
            code="quantised_weights",
        )


def refuse_not_a_number(network: Any, ref: str) -> None:
    """Check weights: refuse those that are not numbers, of which nothing comes but NaN."""
    damaged = sorted(name for name, weights in network.named_parameters() if bool(torch.isnan(weights).any()))
    if damaged:
        raise ModelError(
            f"The weights of {ref!r} hold values that are not numbers (NaN): {abbreviate_names(damaged)}.",
            do="Its training diverged, or the file is damaged: save or train the model again.",
            code="weights_not_a_number",
        )


def refuse_slow(tokenizer: Any, ref: str) -> None:
    """Check a tokenizer: refuse one that does not know which characters a token stands for."""
    if not getattr(tokenizer, "is_fast", False):
        raise ModelError(
            f"The tokenizer of {ref!r} gives no character offsets of tokens.",
            do="Convert it to a tokenizer.json (a fast tokenizer) and save it beside the model.",
            code="slow_tokenizer",
        )


def refuse_foreign(tokenizer: Any, network: Any, ref: str) -> None:
    """Check a tokenizer: refuse one that was not made for this model."""
    known = network.get_input_embeddings().num_embeddings
    if tokenizer.vocab_size > known:
        raise ModelError(
            f"The tokenizer of {ref!r} has {tokenizer.vocab_size} tokens, the model only {known}.",
            do="They do not match: save the model's own tokenizer into its folder.",
            code="foreign_tokenizer",
        )


def abbreviate_names(names: list[str]) -> str:
    """The first few of many names of weights that fail a check."""
    return ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")


MAX_TOKEN_NUMBER: Final = 2**24
"""No vocabulary reaches so far; the library lists all numbers up to the largest, even if they are no tokens."""
MAX_GROWTH: Final = 10_000
"""How many characters a normaliser may write for one: those of real models write one or two."""


def refuse_absurd_tokenizer(tokenizer: Any, ref: str) -> None:
    """Refuse a tokenizer that would fill the memory of any machine.

    Args:
        tokenizer: A fast one.
        ref: How the user named the model.

    Raises:
        ModelError: Its token numbers are absurd, or its normaliser makes texts thousands of times longer.
    """
    largest = max(tokenizer.get_vocab().values(), default=0)
    if largest > MAX_TOKEN_NUMBER:
        raise _build_absurd_tokenizer_error(ref, f"it numbers a token {largest:,}")
    normaliser = tokenizer.backend_tokenizer.normalizer
    growth = 1 if normaliser is None else _compute_growth(json.loads(normaliser.__getstate__()))
    if growth > MAX_GROWTH:
        raise _build_absurd_tokenizer_error(ref, f"it writes {growth:,} characters for one")


def _compute_growth(normaliser: Any) -> int:
    """How many characters a normaliser may write for one: the product over its steps.

    >>> replace = {"type": "Replace", "pattern": {"String": " "}, "content": "xyz"}
    >>> _compute_growth({"type": "Sequence", "normalizers": [replace, replace]})
    9
    """
    growth = 1
    for each in normaliser.get("normalizers", ()):
        growth *= _compute_growth(each)
    return growth * max(1, len(normaliser.get("content", ""))) + len(normaliser.get("prepend", ""))


def _build_absurd_tokenizer_error(ref: str, found: str) -> ModelError:
    """Why such a tokenizer is not used."""
    return ModelError(
        f"The tokenizer of {ref!r} cannot be true: {found}.",
        do="Save the model's own tokenizer into its folder again.",
        code="absurd_tokenizer",
    )
