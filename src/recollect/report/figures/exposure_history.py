"""Exposure epoch by epoch beside the losses: when, during training, secrets were memorised (the paper's Figure 4)."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from recollect.report.figures.columns import group_by_repetitions, read_column
from recollect.report.figures.figure import Figure
from recollect.report.figures.panel import Colour, Panel
from recollect.report.figures.scale import Floats, Scale


def draw_exposure_by_epoch(history: pa.Table) -> list[Figure]:
    """One figure, if anything was followed for more than one epoch."""
    rows = {name: read_column(history, name) for name in history.column_names}
    epochs = np.unique(rows["epoch"])
    if len(epochs) < 2:
        return []
    across = Scale(low=float(epochs[0]), high=float(epochs[-1]))
    top = Panel(across, Scale.over(rows["exposure_bits"], label="exposure in bits", zero=True), height=230)
    clauses = []
    for name, chosen in group_by_repetitions(rows["planted"]).items():
        kind: Colour = "control" if name == "controls" else "found"
        means = _average_by_epoch(rows["epoch"][chosen], rows["exposure_bits"][chosen], epochs)
        top.draw_dots(rows["epoch"][chosen], rows["exposure_bits"][chosen], kind)
        top.draw_line(epochs, means, kind, name=name)
        clauses.append(
            f"{name}: mean {means[0]:.1f} bits after epoch {epochs[0]:.0f}, {means[-1]:.1f} after {epochs[-1]:.0f}"
        )
    return [
        Figure(
            title="Exposure while the model was trained",
            reading="Each dot is a secret at the end of an epoch, each line a mean. Secrets can be memorised long "
            "before the validation loss rises: stopping early is no protection by itself.",
            description=f"Exposure by epoch. {'; '.join(clauses)}.",
            panels=(top, _draw_losses(rows, epochs)),
        )
    ]


def _draw_losses(rows: dict[str, Floats], epochs: Floats) -> Panel:
    """Training and validation loss by epoch."""
    losses = {
        name: _average_by_epoch(rows["epoch"], rows[f"{name}_loss"], epochs) for name in ("training", "validation")
    }
    across = Scale(low=float(epochs[0]), high=float(epochs[-1]), label="epoch")
    panel = Panel(across, Scale.over(*losses.values(), label="loss"), height=200)
    panel.draw_line(epochs, losses["training"], "control", name="training")
    panel.draw_line(epochs, losses["validation"], "guide", name="validation")
    return panel


def _average_by_epoch(of: Floats, values: Floats, epochs: Floats) -> Floats:
    """The mean of each epoch."""
    return np.array([values[of == epoch].mean() if (of == epoch).any() else np.nan for epoch in epochs])
