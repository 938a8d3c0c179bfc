"""One base in memory for all adapters on it: those that are trained or scored in this process share its weights."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from recollect.digests import digest_bytes
from recollect.models.clones import clone
from recollect.models.devices import pick_device
from recollect.models.model import Kind
from recollect.models.model_digests import describe_tensors
from recollect.models.pretrained import read_config, read_network, read_tokenizer

_Key = tuple[Path, tuple[tuple[str, int, int], ...], Kind]


@dataclass(frozen=True, kw_only=True)
class SharedBase:
    """A base as it computes, and what its weights were when they were read."""

    network: Any
    descriptions: dict[str, str]
    """Type, shape and digest of each weight as it is stored, by name."""
    stored: torch.dtype
    """The type in which most of it is stored."""

    def copy(self, name: str) -> Any:
        """A network of its own whose weights are these."""
        return clone(self.network, name=name)


_held: dict[_Key, SharedBase] = {}
"""The base that was used last. A process holds no more than one: fleets and their target have the same."""
_tokenizers: dict[str, Any] = {}
"""The tokenizer that was used last, by the content of its files."""


def open_base(
    folder: Path, ref: str, *, kind: Kind, dtype: torch.dtype | None = None, device: torch.device | None = None
) -> SharedBase:
    """The model in a folder, shared by all who open it with the same precision on the same device.

    Args:
        folder: Where it is.
        ref: How the user named it.
        kind: What it is to predict.
        dtype: In what it computes; None for what it is stored in.
        device: Where it computes; None for the processor.
    """
    key, placed = _build_key(folder, kind), device or torch.device("cpu")
    if (held := find_base_in_memory(folder, kind=kind, dtype=dtype, device=placed)) is not None:
        return held
    release_bases()  # first, because there may be no room for two
    network = read_network(folder, ref, config=read_config(folder, ref), kind=kind).eval().requires_grad_(False)
    stored, descriptions = network.dtype, describe_tensors(network.state_dict())
    base = SharedBase(
        network=network.to(device=placed, dtype=dtype or stored), descriptions=descriptions, stored=stored
    )
    _held[key] = base
    return base


def find_base_in_memory(
    folder: Path, *, kind: Kind, dtype: torch.dtype | None, device: torch.device
) -> SharedBase | None:
    """The base in a folder, if it is in memory as requested and its files have not changed since."""
    held = _held.get(_build_key(folder, kind))
    if held is None or held.network.dtype != (dtype or held.stored):
        return None
    found = held.network.device
    return held if (found.type, found.index or 0) == (device.type, device.index or 0) else None


def open_base_for_training(folder: Path, ref: str, *, kind: Kind) -> Any:
    """The model in a folder as an adapter is trained on it: in the precision that it is stored in."""
    return open_base(folder, ref, kind=kind, device=pick_device()).copy(ref)


def read_shared_tokenizer(folder: Path, ref: str) -> Any:
    """The tokenizer in a folder, shared by all adapters whose tokenizer has the same files: a whole fleet, mostly."""
    patterns = ("*token*", "vocab*", "merges*", "*.model", "*.jinja")
    files = sorted({path for pattern in patterns for path in folder.glob(pattern) if path.is_file()})
    key = digest_bytes(*(part for path in files for part in (path.name.encode(), path.read_bytes())))
    if key not in _tokenizers:
        _tokenizers.clear()
        _tokenizers[key] = read_tokenizer(folder, ref)
    return _tokenizers[key]


def release_bases() -> None:
    """Forget the base; its memory is free once no model shares it."""
    _held.clear()
    _tokenizers.clear()


def _build_key(folder: Path, kind: Kind) -> _Key:
    """What the weights in a folder are known by: where they are, and the size and time of each file."""
    files = sorted(path for path in folder.iterdir() if path.suffix in {".safetensors", ".bin", ".json"})
    stats = [(path.name, path.stat()) for path in files]
    return folder.resolve(), tuple((name, each.st_size, each.st_mtime_ns) for name, each in stats), kind
