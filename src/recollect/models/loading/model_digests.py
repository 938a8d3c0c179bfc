"""A model's digest: the address of its weights, configuration and tokenizer, the same wherever it is loaded."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from recollect import labels
from recollect.digests import Json, digest, new_hasher

_VOLATILE_KEYS = frozenset(
    {
        # where it came from and what wrote it
        "_name_or_path",
        "transformers_version",
        "architectures",
        "base_model_name_or_path",
        "revision",
        "peft_version",
        # how it is run or stored; the weights' own types are part of their digest
        "dtype",
        "torch_dtype",
        "use_cache",
        "return_dict",
        "output_attentions",
        "output_hidden_states",
        "inference_mode",
    }
)
"""Keys of a configuration that change from one saving or loading to the next without moving a number."""


def compute_model_digest(
    network: torch.nn.Module, tokenizer: Any = None, *, notes: Json = None, weights: str | None = None
) -> str:
    """The address of a model: any weight, meaningful setting or token that changes, changes it.

    Args:
        network: A Hugging Face model.
        tokenizer: Its tokenizer; None for models that read arrays.
        notes: Whatever else its numbers depend on, such as how inputs are scaled.
        weights: The digest of its weights, where they were described before; computed here if None.
    """
    return digest(
        labels.MODEL_CLASSES.get(type(network).__name__, type(network).__name__),
        weights or compute_weights_digest(network.state_dict()),
        drop_volatile_keys(json.loads(network.config.to_json_string())),  # type: ignore[operator, union-attr]
        None if tokenizer is None else compute_tokenizer_digest(tokenizer),
        notes,
    )


def compute_weights_digest(weights: Mapping[str, Tensor]) -> str:
    """The address of tensors by name, type, shape and bytes; they are read where they are, without a copy."""
    state = new_hasher()
    for name in sorted(weights):
        values = weights[name].detach().cpu().contiguous()
        state.update(f"{name}\x1f{values.dtype}\x1f{tuple(values.shape)}\n".encode())
        state.update(values.flatten().view(torch.uint8).numpy().data)
    return state.hexdigest()


def describe_tensors(tensors: Mapping[str, Tensor]) -> dict[str, str]:
    """Type, shape and digest of each tensor: a base that adapters share is described once for all of them."""
    return {name: f"{tensor.dtype}\x1f{compute_weights_digest({'': tensor})}" for name, tensor in tensors.items()}


def combine_descriptions(described: Mapping[str, str]) -> str:
    """The digest of tensors that `describe_tensors` described."""
    return digest(dict(described))


def compute_tokenizer_digest(tokenizer: Any) -> str:
    """The address of all that decides how a text becomes tokens."""
    backend = getattr(tokenizer, "backend_tokenizer", None)
    rules = {labels.TOKENIZER_VOCABULARY: tokenizer.get_vocab()} if backend is None else json.loads(backend.to_str())
    # how the last call padded and cut is written into the rules, though it is no part of them
    rules = {key: value for key, value in rules.items() if key not in {"padding", "truncation"}}
    special = {name: str(token) for name, token in tokenizer.special_tokens_map.items()}
    return digest(rules, special, int(tokenizer.model_max_length))


def drop_volatile_keys(settings: Json) -> Json:
    """Settings for a digest: without the keys that do not change a number, at any depth.

    >>> drop_volatile_keys({"layers": 2, "use_cache": True, "text": {"dtype": "float32", "heads": 4}})
    {'layers': 2, 'text': {'heads': 4}}
    """
    if isinstance(settings, Mapping):
        return {key: drop_volatile_keys(value) for key, value in settings.items() if key not in _VOLATILE_KEYS}
    return settings
