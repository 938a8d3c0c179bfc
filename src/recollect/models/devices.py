"""Where a model runs: the GPU if there is one, else the processor."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from recollect.errors import ModelError


@dataclass(frozen=True, kw_only=True)
class Placement:
    """Where a model computes, and in what precision."""

    device: torch.device
    dtype: torch.dtype


def pick_device(name: str | None = None) -> torch.device:
    """The device of that name, or the best one there is."""
    if name is None:
        best = torch.accelerator.current_accelerator(check_available=True)
        return best if best is not None else torch.device("cpu")
    try:
        device = torch.device(name)
        torch.empty(1, device=device)
    except (RuntimeError, AssertionError) as error:
        raise ModelError(
            f"There is no device {name!r} here.", do="Use cpu, or leave the device out.", code="no_such_device"
        ) from error
    return device


def describe_device() -> str:
    """The default device and its threads, in words."""
    device = pick_device()
    return f"cpu, {torch.get_num_threads()} threads" if device.type == "cpu" else torch.cuda.get_device_name(device)
