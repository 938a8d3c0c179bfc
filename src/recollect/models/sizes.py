"""Whether the sizes in a model's configuration can be true, before anything of that size is made."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import torch

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
    """Refuse a model whose configuration wants far more weights than its files can hold.

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
    """All whole numbers in a configuration, which may be sizes, with the names they are under."""
    if isinstance(settings, dict):
        for key, value in settings.items():
            yield from _iter_configured_sizes(value, str(key))
    elif isinstance(settings, list | tuple):
        for value in settings:
            yield from _iter_configured_sizes(value, name)
    elif isinstance(settings, int) and not isinstance(settings, bool):
        yield name, settings


def _build_absurd_size_error(ref: str, found: str) -> ModelError:
    """Why a model of such sizes is not made."""
    return ModelError(
        f"The sizes in the config.json of {ref!r} cannot be true: {found}.",
        do="Take the config.json that the weights were saved with.",
        code="absurd_sizes",
    )
