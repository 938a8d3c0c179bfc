"""Figures of the removal audit: the query set among held-out records, member scores, power, and EMA's votes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import pyarrow as pa

from recollect.report.figures.blocks import draw_histograms
from recollect.report.figures.columns import read_column
from recollect.report.figures.figure import Figure
from recollect.report.figures.panel import Panel
from recollect.report.figures.scale import Scale
from recollect.results.result import Result

COLUMN = "member_probability"
SIDES = ("audited", "controls", "members")
LABEL = "probability of being a member"
QUERY_SET = ("fraction_still_in", "p_still_there", "p_gone", "auc_against_controls")
"""What the scores of the query set beside those of the controls reveal."""
READING = (
    "Learned from calibration models, whose members are known. If the query set is gone, its records have the same "
    "mean as comparable records that were never in the training set."
)


def draw_removal_figures(result: Result, tables: Mapping[str, pa.Table]) -> list[Figure]:
    """The figures of removal that the tables at hand allow to draw."""
    figures = _draw_score_histograms(tables)
    if "power" in tables and tables["power"].num_rows:
        figures.append(_draw_power(result, tables["power"]))
    if "votes" in tables and tables["votes"].num_rows:
        figures.append(_draw_votes(tables["votes"]))
    return figures


def _draw_score_histograms(tables: Mapping[str, pa.Table]) -> list[Figure]:
    """A figure of removal: how much the query set, the controls and members look like members."""
    if any(side not in tables or COLUMN not in tables[side].column_names for side in SIDES):
        return []
    values = {side: read_column(tables[side], COLUMN) for side in SIDES}
    if "compared" in tables["controls"].column_names:
        compared = np.array(tables["controls"]["compared"].to_pylist(), dtype=np.bool_)
        values["controls"] = values["controls"][compared]
    figures = []
    for side, name, title, reveals in (
        ("audited", "query set", "The query set among records never seen", QUERY_SET),
        ("members", "members of calibration models", "How members would be scored", ()),
    ):
        if values[side].size and values["controls"].size:
            histogram = draw_histograms(values[side], values["controls"], label=LABEL, names=(name, "controls"))
            figures.append(replace(histogram, title=title, reading=READING, reveals=reveals))
    return figures


def _draw_power(result: Result, power: pa.Table) -> Figure:
    """A figure of removal: how often a set of each size would be decided rightly, either way."""
    size, still, gone = (read_column(power, name) for name in ("size", "still_there", "gone"))
    x = Scale(low=float(size.min()), high=float(size.max()), label="audited records, logarithmic", log=True)
    panel = Panel(x, Scale(low=0.0, high=1.0, label="how often it is decided so", percent=True))
    panel.draw_line(size, gone, "null")
    panel.draw_dots(size, gone, "null", [f"gone, {n:,.0f} records: {p:.0%}" for n, p in zip(size, gone, strict=True)])
    panel.draw_line(size, still, "found")
    panel.draw_dots(size, still, "found", [f"still there, {n:,.0f}: {p:.0%}" for n, p in zip(size, still, strict=True)])
    set_size = next((each.n.get("audited") for each in result.findings if each.name == "fraction_still_in"), None)
    if set_size and x.low <= set_size <= x.high:
        panel.draw_threshold(float(set_size), f"this set: {set_size:,}")
    clauses = [f"{n:,.0f} records: {a:.0%} and {b:.0%}" for n, a, b in zip(size, still, gone, strict=True)]
    return Figure(
        title="Power by the size of the set",
        reading="With few records most sets of either kind are inconclusive. The lines show how often a set that is "
        "all in would be called still there, and one that is all out would be called gone, with these controls.",
        description=f"Power by the size of the set, still there and gone; {'; '.join(clauses)}.",
        panels=(panel,),
        legend=(("found", "all in, called still there"), ("null", "all out, called gone")),
    )


def _draw_votes(votes: pa.Table) -> Figure:
    """A figure of removal: the share of the query set that passes each of EMA's thresholds."""
    metrics = [name.removesuffix("_passed") for name in votes.column_names if name.endswith("_passed")]
    names = [*metrics, "any of them"]
    columns = [*(f"{metric}_passed" for metric in metrics), "memorised"]
    shares = [float(np.mean(votes[name].to_pylist())) for name in columns]
    named = tuple((index + 0.5, name.replace("_", " ")) for index, name in enumerate(names))
    x = Scale(low=0.0, high=float(len(names)), label="metric", named=named)
    panel = Panel(x, Scale(low=0.0, high=1.0, label="records that pass its threshold", percent=True))
    panel.draw_bars(np.arange(len(names) + 1.0), shares, "found", of="of the query set")
    summary = ", ".join(f"{name} {share:.1%}" for (_, name), share in zip(named, shares, strict=True))
    return Figure(
        title="EMA’s votes",
        reading="A record counts as memorised if any metric passes its threshold. EMA calls the set removed if these "
        "votes differ significantly from all ones: so a few hard records are enough in a large set, and a small "
        "set is called memorised whatever it is.",
        description=f"Share of {votes.num_rows:,} records that pass each threshold: {summary}.",
        panels=(panel,),
        legend=(("found", "records that pass"),),
    )
