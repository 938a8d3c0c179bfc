"""Arrays as inputs of a classifier: the same few steps for every model, without an image processor."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from recollect import labels
from recollect.corpora.record import Record
from recollect.digests import Json
from recollect.errors import CorpusError, ModelError


@dataclass(frozen=True, kw_only=True)
class ArrayScaling:
    """What is taken off each channel and what it is then divided by; one number stands for all channels."""

    mean: tuple[float, ...] = (0.0,)
    std: tuple[float, ...] = (1.0,)

    @classmethod
    def of(cls, card: Mapping[str, Any], preprocessing: Mapping[str, Any], ref: str) -> ArrayScaling:
        """The scaling that a model was trained with: its card's, else its image processor's, else none.

        Raises:
            ModelError: The numbers make no sense.
        """
        if "input_mean" in card or "input_std" in card:
            mean, std = card.get("input_mean", 0.0), card.get("input_std", 1.0)
        elif preprocessing.get("do_normalize", True):
            mean, std = preprocessing.get("image_mean") or 0.0, preprocessing.get("image_std") or 1.0
        else:
            mean, std = 0.0, 1.0
        try:
            scaling = cls(mean=_as_tuple(mean), std=_as_tuple(std))
        except (TypeError, ValueError):
            scaling = cls(std=(0.0,))
        if not np.isfinite([*scaling.mean, *scaling.std]).all() or min(scaling.std) <= 0:
            raise ModelError(
                f"The model {ref!r} scales its inputs by mean {mean!r} and deviation {std!r}.",
                do="Correct input_mean and input_std in its card.json.",
                code="invalid_scaling",
            )
        return scaling

    def describe(self) -> Json:
        """For the model's digest, because its numbers depend on it."""
        return {labels.MODEL_SCALING_MEAN: self.mean, labels.MODEL_SCALING_STD: self.std}


def _as_tuple(value: float | list[float]) -> tuple[float, ...]:
    """One number of an array's scaling or several, as a tuple."""
    return tuple(float(number) for number in np.atleast_1d(value))


@dataclass(frozen=True, kw_only=True)
class ArrayReader:
    """Turns the array of a record into what a model reads."""

    scaling: ArrayScaling
    channels: int | None = None
    """How many channels the model reads; None if any."""
    size: tuple[int, int] | None = None
    """Height and width that it reads; None if any."""

    @classmethod
    def of(cls, config: Any, scaling: ArrayScaling) -> ArrayReader:
        """A reader for the model with this configuration."""
        size = getattr(config, "image_size", None)
        height, width = size if isinstance(size, list | tuple) else (size, size)
        image_size = None if height is None or width is None else (int(height), int(width))
        return cls(scaling=scaling, channels=getattr(config, "num_channels", None), size=image_size)

    def __call__(self, record: Record) -> NDArray[np.float32]:
        """The input, channels first.

        Bytes are divided by 255; numbers with a fraction are taken as they are, on the scale from 0 to 1. Then the
        scaling is applied. H×W becomes 1×H×W, H×W×C becomes C×H×W; a vector stays one.

        Raises:
            CorpusError: The record has no array, or one that the model cannot read.
        """
        values = _get_scaled_array(record)
        if values.ndim == 2:
            values = values[None]
        elif values.ndim == 3:
            values = values.transpose(2, 0, 1)
        elif values.ndim != 1:
            raise CorpusError(
                f"The array of record {record.id!r} has {values.ndim} dimensions.",
                do="Give H×W, H×W×C or a vector.",
                code="array_dimensions",
            )
        self._refuse_misshapen(values, record)
        return self._scale(values)

    def _refuse_misshapen(self, values: NDArray[np.float32], record: Record) -> None:
        """Refuse what the configuration rules out."""
        if values.ndim == 1:
            return
        channels, *size = values.shape
        if self.channels not in (None, channels) or self.size not in (None, tuple(size)):
            height, width = self.size or ("H", "W")
            raise CorpusError(
                f"The array of record {record.id!r} is {size[0]}×{size[1]} with {channels} channels; "
                f"the model reads {height}×{width} with {self.channels or 'any number of'} channels.",
                do="Give arrays of the shape the model was trained on, channels last.",
                code="array_shape",
            )

    def _scale(self, values: NDArray[np.float32]) -> NDArray[np.float32]:
        """The values after mean and deviation."""
        shape = (-1,) + (1,) * (values.ndim - 1)
        mean = np.array(self.scaling.mean, dtype=np.float32).reshape(shape)
        std = np.array(self.scaling.std, dtype=np.float32).reshape(shape)
        if max(len(mean), len(std)) not in (1, len(values)):
            raise ModelError(
                f"The model scales {max(len(mean), len(std))} channels, but reads {len(values)}.",
                do="Correct input_mean and input_std in its card.json.",
                code="scaling_of_other_channels",
            )
        return np.ascontiguousarray((values - mean) / std)


def _get_scaled_array(record: Record) -> NDArray[np.float32]:
    """The array of a record on the scale from 0 to 1."""
    if record.array is None:
        raise CorpusError(
            f"Record {record.id!r} has no array.",
            do="This model reads arrays: give an .npz file.",
            code="record_without_array",
        )
    if record.array.dtype == np.uint8:
        return record.array.astype(np.float32) / np.float32(255)
    if not np.issubdtype(record.array.dtype, np.floating):
        raise CorpusError(
            f"The array of record {record.id!r} holds {record.array.dtype}.",
            do="Give bytes (uint8, 0 to 255) or floating point numbers (0 to 1).",
            code="array_type",
        )
    if not np.isfinite(record.array).all():
        raise CorpusError(
            f"The array of record {record.id!r} holds NaN or infinity.",
            do="Remove or repair it.",
            code="array_not_finite",
        )
    return record.array.astype(np.float32)
