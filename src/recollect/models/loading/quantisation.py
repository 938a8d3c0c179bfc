"""Quantising: a trained model whose weights are rounded to a few bits.

Carlini et al. 2018, "The Secret Sharer", appendix D.3: each weight is forced to one of 256 values. A model of a
quarter of the size that still gives away a secret does not store its training data; it has memorised the secret.
"""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

from safetensors import safe_open
from safetensors.torch import save_file
from torch import Tensor

from recollect.checks import check_between
from recollect.digests import new_hasher, update_from_file
from recollect.errors import ModelError, StoreError
from recollect.files import write_atomically, write_text
from recollect.models.loading.model_cards import CARD, README, read_card, write_card
from recollect.models.loading.model_folders import find_checkpoint_folder


def quantise(ref: str, out: Path, *, bits: int = 8) -> Path:
    """Write a model whose weight matrices have at most 2^bits values each; the folder that holds it.

    Each matrix (embedding, convolution) is rounded by itself to 2^bits − 1 evenly spaced values around zero, the
    outermost of which is its largest weight. Biases and norms, a few of all weights, stay as they are. The values are
    written as the floating-point numbers they stand for, so that every loader reads the folder. Its card says what
    was done. Called again, it returns at once.

    Args:
        ref: The folder of a whole model that is stored in safetensors, or hf:NAME.
        out: The new folder.
        bits: From 2 to 16.

    Raises:
        ModelError: The weights are not stored in safetensors.
        StoreError: The new folder holds something else.
    """
    check_between(1, 17, bits=bits)
    folder = find_checkpoint_folder(ref)
    files = sorted(folder.glob("model*.safetensors"))
    if not files:
        raise ModelError(
            f"The model {ref!r} is not stored in safetensors.",
            do="Save it anew with save_pretrained.",
            code="no_safetensors",
        )
    origin = {"bits": bits, "from": _compute_quantised_digest(files)}
    if not _is_quantised_already(out, origin):
        for file in folder.iterdir():
            if file.is_file() and file not in files and file.name not in {CARD, README}:
                with write_atomically(out / file.name) as temporary:
                    shutil.copyfile(file, temporary)
        counts = [_round_file(file, out / file.name, bits) for file in files]
        rounded, total = (sum(column) for column in zip(*counts, strict=True))
        _write_quantised_card(folder, out, {**origin, "weights_rounded": rounded, "weights": total})
    return out


def round_weights(weights: Tensor, *, bits: int = 8) -> Tensor:
    """Weights quantised to the nearest of 2^bits − 1 evenly spaced values around zero; vectors and integers as is.

    >>> import torch
    >>> round_weights(torch.tensor([[-1.0, 0.1, 0.5]]), bits=2).tolist()
    [[-1.0, 0.0, 0.0]]
    """
    if weights.dim() < 2 or not weights.is_floating_point() or not weights.numel():
        return weights
    step = weights.abs().max().double() / (2 ** (bits - 1) - 1)
    return weights if step == 0 else ((weights.double() / step).round() * step).to(weights.dtype)


def _round_file(source: Path, target: Path, bits: int) -> tuple[int, int]:
    """Write one file of quantised weights; how many were rounded, and how many there are."""
    with safe_open(source, framework="pt") as held:
        found = {name: held.get_tensor(name) for name in held.keys()}  # noqa: SIM118 - no mapping
        metadata = held.metadata()
    with write_atomically(target) as temporary:
        save_file(
            {name: round_weights(value, bits=bits).contiguous() for name, value in found.items()}, temporary, metadata
        )
    matrices = sum(value.numel() for value in found.values() if value.dim() >= 2 and value.is_floating_point())
    return matrices, sum(value.numel() for value in found.values())


def _compute_quantised_digest(files: list[Path]) -> str:
    """The address of the stored weights that were quantised."""
    state = new_hasher()
    for file in files:
        update_from_file(state, file)
    return state.hexdigest()


def _is_quantised_already(out: Path, origin: dict[str, Any]) -> bool:
    """Whether the folder already holds this very model; one that holds anything else is refused."""
    if not out.exists() or not any(out.iterdir()):
        return False
    existing = read_card(out).get("quantised", {})
    if {name: existing.get(name) for name in origin} != origin:
        raise StoreError(
            f"{out} holds something else.", do="Name a folder that is empty or not there yet.", code="folder_taken"
        )
    return True


def _write_quantised_card(folder: Path, out: Path, origin: dict[str, Any]) -> None:
    """The card of the model it was made from, with what was done to it; `card.json` last: it says that all is there."""
    readme = folder / README
    sentence = f"The weight matrices were rounded to {origin['bits']} bits after training.\n"
    write_text(out / README, f"{readme.read_text(encoding='utf-8')}\n{sentence}" if readme.is_file() else sentence)
    write_card(out, {**read_card(folder), "quantised": origin})
