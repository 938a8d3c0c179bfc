"""Where a model runs: the GPU if there is one, else the processor."""

from __future__ import annotations

from dataclasses import dataclass
from multiprocessing import current_process, parent_process

import torch

from recollect.errors import ModelError
from recollect.execution.threads import describe_threads


@dataclass(frozen=True, kw_only=True)
class DevicePlacement:
    """Where a model computes, and in what precision."""

    device: torch.device
    dtype: torch.dtype


def pick_device(name: str | None = None) -> torch.device:
    """The device of that name, or the best one there is."""
    if name is None:
        best = torch.accelerator.current_accelerator(check_available=True)
        return torch.device("cpu") if best is None else _take_turns(best)
    try:
        device = torch.device(name)
        torch.empty(1, device=device)
    except (RuntimeError, AssertionError) as error:
        raise ModelError(
            f"There is no device {name!r} here.", do="Use cpu, or leave the device out.", code="no_such_device"
        ) from error
    return device


def computes_in(device: torch.device, dtype: torch.dtype) -> bool:
    """Whether a device computes in a type natively, rather than much slower than in single precision."""
    if dtype in (torch.float32, torch.float64) or device.type != "cpu":
        return True
    supported = getattr(torch.ops.mkldnn, "_is_mkldnn_bf16_supported", None)
    return dtype == torch.bfloat16 and supported is not None and bool(supported())


def _take_turns(device: torch.device) -> torch.device:
    """The device, or in a worker process the next of several: each worker then has a model on a device of its own."""
    count = torch.accelerator.device_count()
    if parent_process() is None or count < 2:
        return device
    number = current_process()._identity[-1] if current_process()._identity else 1
    return torch.device(device.type, (number - 1) % count)


def describe_device() -> str:
    """The default device and its threads, in words."""
    device = pick_device()
    if device.type == "cpu":
        return f"cpu, {describe_threads(torch.get_num_threads())}"
    return torch.cuda.get_device_name(device)
