"""Checkpoints: one file with the tensors as safetensors and the rest as JSON in its header, written whole.

No random state is kept because none exists between steps: everything random in training is drawn from streams
named after the seed and the step (see `loop.py`), so the position is the random state.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor

from recollect.digests import digest
from recollect.errors import StoreError
from recollect.files import write_atomically
from recollect.models.loading.model_digests import compute_weights_digest

_CHECKSUM = "checksum"


def write_checkpoint(path: Path, tensors: Mapping[str, Tensor], facts: Mapping[str, Any]) -> None:
    """Put tensors and facts into one file that replaces the old one only when it is complete."""
    held = {name: tensor.detach().contiguous() for name, tensor in tensors.items()}
    written = json.dumps(facts)
    with write_atomically(path) as temporary:
        save_file(held, temporary, metadata={"facts": written, _CHECKSUM: _compute_checkpoint_checksum(held, written)})


def read_checkpoint(path: Path, device: torch.device) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """The tensors and facts that `write_checkpoint` put into a file."""
    try:
        with safe_open(path, framework="pt", device=str(device)) as file:
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 - not a mapping
            metadata = file.metadata()
        if metadata[_CHECKSUM] != _compute_checkpoint_checksum(tensors, metadata["facts"]):
            raise ValueError("its content does not fit its checksum")
        return tensors, json.loads(metadata["facts"])
    except (OSError, ValueError, KeyError, TypeError, SafetensorError) as error:
        raise StoreError(
            f"The checkpoint '{path}' is damaged: {error}.",
            do=f"Delete this folder to train from the beginning: '{path.parent}'.",
            code="checkpoint_damaged",
        ) from error


def _compute_checkpoint_checksum(tensors: Mapping[str, Tensor], facts: str) -> str:
    """The digest of all that a checkpoint holds: a flipped bit must not pass for a weight."""
    return digest(compute_weights_digest(tensors), facts)


def get_weights(model: torch.nn.Module) -> dict[str, Tensor]:
    """The weights for a checkpoint: parameters and buffers of a model by name; what is shared comes once.

    What is frozen, as the base of an adapter is, comes from where the training started.
    """
    trained = [(name, value) for name, value in model.named_parameters() if value.requires_grad]
    return {name: value.detach() for name, value in [*trained, *model.named_buffers()]}


def set_weights(model: torch.nn.Module, values: Mapping[str, Tensor]) -> None:
    """Give a model the weights of a checkpoint, as `get_weights` gave them."""
    with torch.no_grad():
        for name, value in get_weights(model).items():
            value.copy_(values[name])


def get_optimiser_state(optimiser: torch.optim.Optimizer) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """The state of an optimiser for a checkpoint: its tensors as `parameter/name`, its numbers under the same names."""
    tensors: dict[str, Tensor] = {}
    numbers: dict[str, Any] = {}
    for parameter, state in optimiser.state_dict()["state"].items():
        for name, value in state.items():
            (tensors if isinstance(value, Tensor) else numbers)[f"{parameter}/{name}"] = value
    return tensors, numbers


def set_optimiser_state(
    optimiser: torch.optim.Optimizer, tensors: Mapping[str, Tensor], numbers: Mapping[str, Any]
) -> None:
    """Give an optimiser the state in a checkpoint, as `get_optimiser_state` gave it; settings come from the recipe."""
    state: dict[int, dict[str, Any]] = {}
    for key, value in {**tensors, **numbers}.items():
        parameter, name = key.split("/")
        state.setdefault(int(parameter), {})[name] = value
    optimiser.load_state_dict({"state": state, "param_groups": optimiser.state_dict()["param_groups"]})


def select_prefix(tensors: Mapping[str, Tensor], name: str) -> dict[str, Tensor]:
    """The tensors of a checkpoint whose name begins with `name:`, without it."""
    return {key.removeprefix(f"{name}:"): value for key, value in tensors.items() if key.startswith(f"{name}:")}


def add_prefix(name: str, tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """The tensors of a checkpoint under `name:`, so that several fit into one file."""
    return {f"{name}:{key}": value for key, value in tensors.items()}
