"""Figures of the membership audit: the scores with their threshold, the ROC curve, and p-values of the candidates."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import pyarrow as pa

from recollect.report.figures.blocks import draw_histograms, draw_roc
from recollect.report.figures.columns import read_column
from recollect.report.figures.figure import Figure
from recollect.report.figures.panel import Panel
from recollect.report.figures.scale import Floats, Scale
from recollect.results.result import Result

TENTHS = 10
"""Into so many bins p-values are put."""


def draw_membership_figures(result: Result, tables: Mapping[str, pa.Table]) -> list[Figure]:
    """The figures of membership that the tables at hand allow to draw."""
    candidates = tables.get("candidates")
    if candidates is None or not candidates.num_rows or "score" not in candidates.column_names:
        return []
    label, threshold = f"score (signal: {result.settings.get('signal')})", _read_threshold(tables.get("thresholds"))
    if any(each.finding == "identified" for each in result.withheld):
        threshold = None  # the controls set it, and they do not count
    score = read_column(candidates, "score")
    truth = candidates["trained"].to_pylist() if "trained" in candidates.column_names else []
    members, others = (np.array([each is wanted for each in truth], dtype=np.bool_) for wanted in (True, False))
    if members.any() and others.any():
        histogram = draw_histograms(score[members], score[others], label=label, threshold=threshold)
        drawn = [histogram, draw_roc(tables["roc"]) if "roc" in tables else None]
        return [replace(figure, reveals=("auc", "membership_p")) for figure in drawn if figure is not None]
    controls = tables.get("controls")
    if controls is None or "p_value" not in candidates.column_names:
        return []
    names = "candidates", "controls"
    histogram = draw_histograms(score, read_column(controls, "score"), label=label, threshold=threshold, names=names)
    return [
        replace(histogram, reveals=("auc_against_controls", "training_p", "identified")),
        _draw_p_values(read_column(candidates, "p_value")),
    ]


def _read_threshold(thresholds: pa.Table | None) -> float | None:
    """The strictest threshold that the controls support, for the figure of membership candidates."""
    if thresholds is None or not thresholds.num_rows:
        return None
    found = read_column(thresholds, "threshold")[int(np.argmin(read_column(thresholds, "fpr")))]
    return float(found) if np.isfinite(found) else None


def _draw_p_values(p: Floats) -> Figure:
    """A figure of membership: how often candidates have a p-value of each size."""
    edges = np.linspace(0, 1, TENTHS + 1)
    shares = np.histogram(p, edges)[0] / max(1, p.size)
    top = Scale.over(shares, [2 / TENTHS], label="", zero=True).high
    panel = Panel(
        Scale(low=0.0, high=1.0, label="p-value: the share of controls that score as high"),
        Scale(low=0.0, high=top, label="share of candidates", percent=True),
        height=240,
    )
    panel.draw_bars(edges, shares, "found", of="of the candidates")
    panel.draw_level(1 / TENTHS, "null hypothesis: a tenth each")
    return Figure(
        title="P-values of the candidates",
        reading="Under the null hypothesis, that none is a member, p-values are uniform: every tenth is about as full "
        "as the next. A heap at the left end means that some are members.",
        description=f"Histogram of {p.size:,} p-values: {shares[0]:.1%} are at most 0.1, where 10 % are expected under "
        "the null hypothesis.",
        panels=(panel,),
        legend=(("found", "candidates"),),
        reveals=("training_p", "any_member_p", "identified"),
    )
