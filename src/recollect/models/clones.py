"""Copies of a network that leave the user's own alone: modules of their own, and the same weights wherever they fit."""

from __future__ import annotations

from collections.abc import Sequence
from copy import deepcopy
from itertools import chain
from typing import Any

import torch
from torch import Tensor, nn

from recollect.errors import ModelError


def clone(network: Any, *, name: str, dtype: torch.dtype | None = None, device: torch.device | None = None) -> Any:
    """A copy in evaluation mode whose mode, hooks, precision and device are its own.

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


def refuse_absent(network: Any, name: str) -> None:
    """Refuse weights of which only the shape is known, as after loading with a device map that does not fit.

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
        """How often all of them together were changed in place."""
        return sum(tensor._version for tensor in self._shared)
