"""Exposure during training, where somebody followed it: the file that `ExposureTracker` writes, as a table."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import pyarrow as pa
from pydantic import BaseModel, Field, TypeAdapter, ValidationError

from recollect.errors import StoreError
from recollect.files.arrow_tables import build_array, build_table


class _TrackedSecret(BaseModel):
    """One secret at the end of an epoch."""

    planted: int | None
    exposure_bits: Annotated[float, Field(allow_inf_nan=False)]


class _TrackedEpoch(BaseModel):
    """One epoch."""

    epoch: Annotated[float, Field(allow_inf_nan=False)]
    """A fraction where it was measured within an epoch."""
    training_loss: Annotated[float, Field(allow_inf_nan=False)] | None = None
    validation_loss: Annotated[float, Field(allow_inf_nan=False)] | None = None
    secrets: list[_TrackedSecret]


def read_exposure_history(path: Path) -> pa.Table:
    """One row per epoch and secret: epoch, losses, how often it was planted, its exposure.

    Raises:
        StoreError: The file is not one that a follower wrote.
    """
    try:
        epochs = TypeAdapter(list[_TrackedEpoch]).validate_json(path.read_bytes())
    except (OSError, ValidationError) as error:
        raise StoreError(
            f"{str(path)!r} does not tell the exposure of each epoch.",
            do="Have ExposureTracker write it, or remove it.",
            code="exposure_by_epoch_unreadable",
        ) from error
    rows = [(epoch, secret) for epoch in epochs for secret in epoch.secrets]
    return build_table(
        {
            "epoch": build_array([epoch.epoch for epoch, _ in rows], pa.float64()),
            "training_loss": build_array([epoch.training_loss for epoch, _ in rows], pa.float64()),
            "validation_loss": build_array([epoch.validation_loss for epoch, _ in rows], pa.float64()),
            "planted": build_array([secret.planted for _, secret in rows], pa.int64()),
            "exposure_bits": build_array([secret.exposure_bits for _, secret in rows], pa.float64()),
        }
    )
