"""Curves of the paper's figures, as SVG files that any browser shows."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np
from common.drawing import write_panel
from numpy.typing import NDArray

from recollect.report.figures.panel import Kind, Panel
from recollect.report.figures.scale import Scale

Floats = NDArray[np.float64]
KINDS: tuple[Kind, ...] = ("found", "control", "guide")
POINTS = 201


def cumulative(sides: Mapping[str, Floats], label: str, file: Path) -> None:
    """Draw which share of each side lies at or below every value; at most three sides."""
    x = Scale.over(*sides.values(), label=label)
    panel = Panel(x, Scale(low=0, high=1, label="share at or below", percent=True))
    places = np.linspace(x.low, x.high, POINTS)
    for kind, values in zip(KINDS, sides.values(), strict=False):
        panel.draw_line(places, np.searchsorted(np.sort(values), places, side="right") / len(values), kind)
    said = ", ".join(f"{name} {way}" for name, way in zip(sides, ("orange", "grey", "dashed"), strict=False))
    write_panel(file, panel, f"Cumulative shares of {label}: {said}.")
