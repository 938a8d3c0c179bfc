"""One base in memory for all adapters on it: those that are trained or scored in this process share its weights."""

from __future__ import annotations

from collections.abc import Sequence
from copy import deepcopy
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from recollect.digests import digest_bytes
from recollect.errors import ModelError
from recollect.models.loading.devices import pick_device
from recollect.models.loading.model_digests import describe_tensors
from recollect.models.loading.pretrained import read_pretrained_config, read_pretrained_network, read_tokenizer
from recollect.models.model import Kind

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
        return clone_network(self.network, name=name)


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
    key, placed = _build_base_key(folder, kind), device or torch.device("cpu")
    if (held := find_base_in_memory(folder, kind=kind, dtype=dtype, device=placed)) is not None:
        return held
    release_bases()  # first, because there may be no room for two
    network = (
        read_pretrained_network(folder, ref, config=read_pretrained_config(folder, ref), kind=kind)
        .eval()
        .requires_grad_(False)
    )
    stored, descriptions = network.dtype, describe_tensors(network.state_dict())
    base = SharedBase(
        network=network.to(device=placed, dtype=dtype or stored), descriptions=descriptions, stored=stored
    )
    _held[key] = base
    return base


def find_base_in_memory(
    folder: Path, *, kind: Kind, dtype: torch.dtype | None, device: torch.device
) -> SharedBase | None:
    """The shared base of a folder, if it is in memory as requested and its files have not changed since."""
    held = _held.get(_build_base_key(folder, kind))
    if held is None or held.network.dtype != (dtype or held.stored):
        return None
    found = held.network.device
    return held if (found.type, found.index or 0) == (device.type, device.index or 0) else None


def open_base_for_training(folder: Path, ref: str, *, kind: Kind) -> Any:
    """The shared base in a folder as an adapter is trained on it: in the precision that it is stored in."""
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


def _build_base_key(folder: Path, kind: Kind) -> _Key:
    """What a shared base is known by: its folder, and the size and time of each file."""
    files = sorted(path for path in folder.iterdir() if path.suffix in {".safetensors", ".bin", ".json"})
    stats = [(path.name, path.stat()) for path in files]
    return folder.resolve(), tuple((name, each.st_size, each.st_mtime_ns) for name, each in stats), kind


def clone_network(
    network: Any, *, name: str, dtype: torch.dtype | None = None, device: torch.device | None = None
) -> Any:
    """A copy that shares the weights of a network; its mode, hooks, precision and device are its own.

    A weight that has the precision and device requested is shared, so the copy costs no memory where nothing needs to
    be converted. Should a shared weight change later, the copy refuses to compute: its digest would not be its own.

    Args:
        network: Any module.
        name: How messages name it.
        dtype: The precision of its floating-point numbers; None to leave them.
        device: Where it computes; None to leave it.

    Raises:
        ModelError: It holds something that cannot be copied.
    """
    shared: list[Tensor] = []
    memo: dict[int, Any] = {}
    with torch.no_grad():
        for tensor in chain(network.parameters(), network.buffers()):
            moved = tensor.to(device=device, dtype=dtype if tensor.is_floating_point() else None)
            if moved is tensor:
                shared.append(tensor)
            elif isinstance(tensor, nn.Parameter):
                moved = nn.Parameter(moved, requires_grad=False)
            memo[id(tensor)] = moved
    try:
        copied = deepcopy(network, memo)
    except (TypeError, RuntimeError, AttributeError) as error:
        raise ModelError(
            f"The model {name!r} holds something that cannot be copied: {error}",
            do="Save it with save_pretrained and give the folder.",
            code="cannot_be_copied",
        ) from error
    copied.register_forward_pre_hook(_ChangeGuard(shared, name))
    return copied.eval()


def refuse_absent_weights(network: Any, name: str) -> None:
    """Refuse to share weights of which only the shape is known, as after loading with a device map that does not fit.

    Raises:
        ModelError: There are such weights.
    """
    if any(tensor.device.type == "meta" for tensor in network.parameters()):
        raise ModelError(
            f"Some weights of the model {name!r} are not in memory.",
            do="Load it whole, on one device, or save it and give the folder.",
            code="weights_not_in_memory",
        )


class _ChangeGuard:
    """A hook before every pass that refuses to continue once a shared weight was changed in place, as training does."""

    def __init__(self, shared: Sequence[Tensor], name: str) -> None:
        # tensors made in inference mode count no changes, and can have none
        self._shared = [tensor for tensor in shared if not tensor.is_inference()]
        self._name, self._before = name, self._versions()

    def __call__(self, _module: nn.Module, _inputs: Any) -> None:
        if self._versions() != self._before:
            raise ModelError(
                f"The weights of the model {self._name!r} have changed since it was loaded.",
                do="Load it again: answers are kept under the address of the weights that gave them.",
                code="model_changed",
            )

    def __getstate__(self) -> dict[str, Any]:
        """Without the tensors: in another process the weights are a copy, which nobody trains."""
        return {"_shared": [], "_name": self._name, "_before": 0}

    def _versions(self) -> int:
        """How often all shared weights together were changed in place."""
        return sum(tensor._version for tensor in self._shared)
