"""Figures of several models of one setting: means, and how far the models lie apart."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from statistics import fmean

from common.outcomes import Figure
from laboratory import Row


def summarised(name: str, rows: Sequence[Row], *, loss: float | None = None, bits: float | None = None) -> list[Figure]:
    """Mean test loss, estimated exposure and exposure of several models, and the range of the last.

    Args:
        name: What the figures' names begin with.
        rows: One of each model, with `test_loss`.
        loss: The paper's test loss.
        bits: The paper's estimated exposure.
    """
    return [*_means(name, rows, loss, bits)]


def _means(name: str, rows: Sequence[Row], loss: float | None, bits: float | None) -> Iterator[Figure]:
    exposures = [row["exposure_bits"] for row in rows]
    yield Figure(f"{name}: test loss, nats, mean of {len(rows)}", loss, fmean(row["test_loss"] for row in rows))
    yield Figure(f"{name}: estimated exposure, bits, mean", bits, fmean(row["skew_normal_bits"] for row in rows))
    yield Figure(f"{name}: exposure, bits, mean", None, fmean(exposures))
    yield Figure(f"{name}: exposure, bits, lowest", None, min(exposures))
    yield Figure(f"{name}: exposure, bits, highest", None, max(exposures))
