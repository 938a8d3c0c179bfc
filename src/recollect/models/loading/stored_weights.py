"""The stored weights of a model: their precision and size, from the headers of its files. Loads no torch."""

from __future__ import annotations

import json
import struct
import warnings
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from recollect.errors import RecollectWarning
from recollect.files import read_json
from recollect.models.model_options import Precision

_MAX_HEADER: Final = 100_000_000
_DTYPES: Final = {"F64": "float64", "F32": "float32", "F16": "float16", "BF16": "bfloat16"}
_BYTES: Final = {"float64": 8, "float32": 4, "float16": 2, "bfloat16": 2}


@dataclass(frozen=True, kw_only=True)
class StoredWeights:
    """What the files of a model hold."""

    precision: Precision
    """The type of most of its numbers."""
    numbers: int
    """How many there are."""

    def compute_bytes(self, precision: Precision) -> int:
        """The memory that they take in a precision."""
        return self.numbers * _BYTES[precision]


def read_stored_weights(folder: Path) -> StoredWeights | None:
    """What the stored weights of a folder are, from the headers of its safetensors files; None without any."""
    counts: Counter[str] = Counter()
    for path in sorted(folder.glob("*.safetensors")):
        counts.update(_count_stored_numbers(_read_weights_header(path).items()))
    if not counts:
        return None
    return StoredWeights(precision=counts.most_common(1)[0][0], numbers=counts.total())  # type: ignore[arg-type]


def announce_upcast(ref: str, stored: StoredWeights | None, precision: Precision, *, file: str = "") -> None:
    """Announce before loading that stored weights take more memory than their files, and how much.

    Args:
        ref: How the user named the model.
        stored: What its files hold.
        precision: What it computes in.
        file: What the files are, where they hold no floating-point numbers.
    """
    if stored is None or (not file and not _BYTES[stored.precision] < 4 <= _BYTES[precision]):
        return
    gigabytes = stored.compute_bytes(precision) / 1e9
    warnings.warn(
        f"The weights of {ref!r} are stored {file or f'in {stored.precision}'} and computed in {precision} here, which "
        f"takes about {gigabytes:.1f} GB of memory.",
        RecollectWarning,
        stacklevel=4,
    )


def read_stored_precision(folder: Path) -> Precision:
    """The precision of most stored weights of a folder: from their headers, or as its configuration states it."""
    stored = read_stored_weights(folder)
    return _read_config_precision(folder) if stored is None else stored.precision


def _read_config_precision(folder: Path) -> Precision:
    """The precision of stored weights that a configuration states; float32 where it states none."""
    try:
        config = dict(read_json(folder / "config.json"))
    except (OSError, ValueError, TypeError):
        return "float32"
    stated = config.get("dtype") or config.get("torch_dtype")
    return stated if stated in _BYTES else "float32"


def _read_weights_header(path: Path) -> dict[str, Any]:
    """The header of stored weights (safetensors); nothing of a damaged one, of which the loader complains."""
    try:
        with path.open("rb") as file:
            (length,) = struct.unpack("<Q", file.read(8))
            if length > _MAX_HEADER:
                return {}
            found = json.loads(file.read(length))
    except (OSError, ValueError, RecursionError, struct.error):
        return {}
    return found if isinstance(found, dict) else {}


def _count_stored_numbers(tensors: Iterable[tuple[str, Any]]) -> Counter[str]:
    """How many floating-point numbers of each type the stored weights have."""
    counts: Counter[str] = Counter()
    for name, tensor in tensors:
        if name == "__metadata__" or not isinstance(tensor, dict) or tensor.get("dtype") not in _DTYPES:
            continue
        begin, end = tensor.get("data_offsets", (0, 0))
        precision = _DTYPES[tensor["dtype"]]
        counts[precision] += (end - begin) // _BYTES[precision]
    return counts
