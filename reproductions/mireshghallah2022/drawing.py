"""Figures of the paper as SVG files that stand alone: histograms and ROC curves of the ratio and of the loss."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from common.drawing import write_panel
from laboratory import FPR, Row

from recollect.report.figures.blocks import compute_bins
from recollect.report.figures.panel import Panel
from recollect.report.figures.scale import Floats, Scale
from recollect.stats.roc import roc_curve


def scores(row: Row) -> tuple[Floats, Floats]:
    """The scores of members and of others."""
    found = row["tables"]["candidates"]
    members, others = ([each["score"] for each in found if each["trained"] is side] for side in (True, False))
    return np.array(members), np.array(others)


def example(ratio: Row, loss: Row) -> str | None:
    """A member that the ratio flags and the loss does not, as in the paper's Figure 3: the first by its name."""
    flag = f"flagged_at_fpr_{FPR:g}"
    missed = {each["record"] for each in loss["tables"]["candidates"] if not each[flag]}
    found = [each["record"] for each in ratio["tables"]["candidates"] if each[flag] and each["trained"]]
    return min((record for record in found if record in missed), default=None)


def hills(file: Path, row: Row, label: str, record: str | None) -> None:
    """Figure 3: members (orange), others (blue), the threshold, and one member."""
    members, others = scores(row)
    x = Scale.over(members, others, label=f"{label}; higher is more evidence of training")
    edges = compute_bins(np.concatenate([members, others]), x)
    shares = [np.histogram(side, edges)[0] / len(side) for side in (others, members)]
    y = Scale.over(*shares, label="share of members (orange), others (blue)", zero=True)
    panel = Panel(x, Scale(low=0.0, high=y.high, label=y.label, percent=True))
    panel.draw_bars(edges, shares[0], "null")
    panel.draw_bars(edges, shares[1], "found")
    panel.draw_threshold(next(each["threshold"] for each in row["tables"]["thresholds"]), f"threshold at {FPR:.0%}")
    if record is not None:
        at = next(each["score"] for each in row["tables"]["candidates"] if each["record"] == record)
        panel.draw_line([at, at], [0, y.high * 0.85], "control", name="a member")
    write_panel(file, panel, f"Histograms of {label} of {len(members)} members and {len(others)} others.")


def curves(file: Path, ratio: Row, loss: Row, *, log: bool) -> None:
    """Figures 4 and 5: both curves, on plain or on logarithmic axes."""
    found = {name: roc_curve(*scores(row)) for name, row in (("ratio", ratio), ("loss", loss))}
    lowest = 1 / len(scores(ratio)[1]) if log else 0.0
    axes = [
        Scale(low=lowest, high=1.0, label=said, log=log, percent=True) for said in ("others flagged", "members found")
    ]
    panel = Panel(*axes, width=480, height=400)
    places = np.geomspace(lowest, 1, 400) if log else np.linspace(0, 1, 400)
    panel.draw_line(places, places, "guide")
    panel.draw_line(places, found["loss"].tpr_at(places), "control")
    panel.draw_line(places, found["ratio"].tpr_at(places), "found")
    told = ", ".join(f"{name} finds {float(curve.tpr_at(0.01)):.1%} of members at 1 %" for name, curve in found.items())
    write_panel(file, panel, f"ROC curves of the ratio (orange) and of the loss (grey): {told} of others flagged.")
