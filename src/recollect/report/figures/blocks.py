"""Figures that several audits share: ROC curves, and histograms of members and non-members with the threshold."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import ArrayLike

from recollect.report.figures.columns import read_column
from recollect.report.figures.figure import Figure
from recollect.report.figures.panel import Panel
from recollect.report.figures.scale import Floats, Scale
from recollect.report.figures.summaries import compute_quantile, sort_distinct

READ_AT = (0.001, 0.01, 0.1)
"""False positive rates at which a curve is described in words."""
MAX_POINTS = 600
"""More than these no screen shows."""


@dataclass(frozen=True)
class RocCurve:
    """The points of a ROC curve as a block of a figure draws them."""

    fpr: Floats
    tpr: Floats

    def tpr_at(self, rates: Floats) -> Floats:
        """The true positive rate at these false positive rates: the best point that does not exceed each."""
        return self.tpr[np.searchsorted(self.fpr, rates + 1e-12, side="right") - 1]


def draw_roc(table: pa.Table) -> Figure | None:
    """A block for several audits: the saved ROC curve, on linear and on logarithmic axes; None if it is damaged.

    The linear one joins its points by straight lines, so that the area beneath is the AUC, in which ties count half.
    The logarithmic one goes by steps: at a false positive rate it shows what is found without exceeding that rate.

    Args:
        table: The columns `fpr` and `tpr`, both rising from 0 to 1.
    """
    curve = _read_roc(table)
    if curve is None:
        return None
    steps = np.diff(sort_distinct(curve.fpr))
    # Below one non-member there is nothing to be read.
    lowest = min(0.1, float(steps.min()))
    linear = _build_share_panel("non-members flagged", "members found")
    linear.draw_line([0, 1], [0, 1], "guide")
    linear.draw_line(*_thin_curve(curve.fpr, curve.tpr), "found")
    logarithmic = _build_share_panel("non-members flagged, logarithmic", "members found, logarithmic", lowest)
    rates = np.geomspace(lowest, 1.0, MAX_POINTS)
    logarithmic.draw_line(rates, rates, "guide")
    logarithmic.draw_line(rates, curve.tpr_at(rates), "found")
    return Figure(
        title="Members found, and non-members wrongly flagged (ROC curve)",
        reading="Each point is a threshold. On the dashed line both rates are equal: random guessing. What "
        "counts is the left end, on the right-hand panel: how many are found at a low false positive rate.",
        description=_describe_roc(curve, lowest),
        panels=(linear, logarithmic),
        legend=(("found", "this audit"), ("guide", "random guessing")),
        beside=True,
        reveals=("auc",),
    )


def draw_histograms(
    members: ArrayLike,
    others: ArrayLike,
    *,
    label: str,
    threshold: float | None = None,
    names: tuple[str, str] = ("members", "non-members"),
) -> Figure:
    """A block for several audits: histograms of members and non-members, and the threshold between them.

    Args:
        members: Scores of members; higher is more evidence of training.
        others: Scores of non-members.
        label: What the score is, with its unit.
        threshold: From which score on a record is flagged.
        names: What the two are called, where it is not known who was a member.
    """
    groups = select_drawable(members), select_drawable(others)
    reached = [] if threshold is None else [threshold]
    panel = draw_overlaid_histograms(groups, Scale.over(*groups, reached, label=label), names=names)
    if threshold is not None:
        panel.draw_threshold(threshold, f"threshold {threshold:.3g}")
    return Figure(
        title=f"{names[0].capitalize()} and {names[1]}",
        reading=f"The less the two distributions overlap, the better {names[0]} are separated from {names[1]}; "
        "scores right of the threshold are flagged.",
        description=_describe_histograms(dict(zip(names, groups, strict=True)), label, threshold),
        panels=(panel,),
        legend=(("found", f"{names[0]} ({groups[0].size:,})"), ("null", f"{names[1]} ({groups[1].size:,})")),
    )


def draw_overlaid_histograms(
    groups: tuple[Floats, Floats], x: Scale, *, names: tuple[str, str], height: int = 300
) -> Panel:
    """A block for several audits: two histograms over one axis, the null distribution behind."""
    edges = compute_bins(np.concatenate(groups), x)
    found, null = (np.histogram(group, edges)[0] / max(1, group.size) for group in groups)
    top = Scale.over(found, null, label="", zero=True).high
    panel = Panel(x, Scale(low=0.0, high=top, label="share of the group", percent=True), height=height)
    panel.draw_bars(edges, null, "null", of=f"of the {names[1]}")
    panel.draw_bars(edges, found, "found", of=f"of the {names[0]}")
    return panel


def compute_bins(values: Floats, x: Scale) -> Floats:
    """Bin edges of a block's histograms, as wide as Freedman and Diaconis advise; 10 to 60 of them."""
    span = compute_quantile(values, 0.75) - compute_quantile(values, 0.25) if values.size else 0.0
    width = 2 * span / max(1, values.size) ** (1 / 3)
    wanted = math.ceil((x.high - x.low) / width) if width > 0 else 60
    return np.linspace(x.low, x.high, min(60, max(10, wanted)) + 1)


def _read_roc(table: pa.Table) -> RocCurve | None:
    """The ROC curve for a block, from its table; None if it is none."""
    if not {"fpr", "tpr"} <= {*table.column_names}:
        return None
    fpr, tpr = read_column(table, "fpr"), read_column(table, "tpr")
    rising = all(len(rate) > 1 and rate[0] == 0 and rate[-1] == 1 and (np.diff(rate) >= 0).all() for rate in (fpr, tpr))
    return RocCurve(fpr, tpr) if rising else None


def _build_share_panel(across: str, up: str, lowest: float = 0.0) -> Panel:
    """A square panel of two shares in a block, on logarithmic axes if they do not begin with 0."""
    x, y = (Scale(low=lowest, high=1.0, label=label, log=lowest > 0, percent=True) for label in (across, up))
    return Panel(x, y, width=500, height=360)


def select_drawable(values: ArrayLike) -> Floats:
    """The values that a block of a figure can draw."""
    found = np.ravel(np.asarray(values, dtype=np.float64))
    return found[np.isfinite(found)]


def _thin_curve(x: Floats, y: Floats) -> tuple[Floats, Floats]:
    """The ROC curve of a block by the points that a screen can distinguish; both ends are kept."""
    if len(x) <= MAX_POINTS:
        return x, y
    kept = np.unique(np.searchsorted(x + y, np.linspace(0, 2, MAX_POINTS)).clip(0, len(x) - 1))
    return x[kept], y[kept]


def _describe_roc(curve: RocCurve, lowest: float) -> str:
    """The ROC curve of a block in words, as far down as there are non-members to judge by."""
    rates = [rate for rate in READ_AT if rate >= lowest]
    found = curve.tpr_at(np.asarray(rates))
    clauses = [
        f"{100 * hit:.3g} % of members are found where {100 * rate:g} % of non-members are flagged"
        for rate, hit in zip(rates, found, strict=True)
    ]
    return f"ROC curve: {'; '.join(clauses)}."


def _describe_histograms(groups: Mapping[str, Floats], label: str, threshold: float | None) -> str:
    """The histograms of a block in words: where the two groups are."""
    clauses = [
        f"median of {name} {compute_quantile(values, 0.5):.3g}" for name, values in groups.items() if values.size
    ]
    if threshold is not None:
        clauses += [
            f"{np.mean(values >= threshold):.1%} of {name} at or beyond the threshold"
            for name, values in groups.items()
            if values.size
        ]
    return f"Histograms of {label}: {', '.join(clauses)}."
