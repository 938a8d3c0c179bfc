"""Figures of the removal audit: the query set among records never seen, and how members look beside them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import pyarrow as pa

from recollect.report.figures.blocks import histograms
from recollect.report.figures.columns import column
from recollect.report.figures.figure import Figure
from recollect.results.result import Result

NEEDED = frozenset({"score", "unsure"})
"""Columns without which nothing can be drawn."""
SIDES = ("audited", "controls", "members")
LABEL = "how sure the model is"
READING = (
    "Left of the threshold a model is unsure, which it hardly ever is of what it was trained on. If the query set is "
    "gone, as much of it lies there as of records like it that were never seen."
)


def removal_figures(result: Result, tables: Mapping[str, pa.Table]) -> list[Figure]:
    """What the tables at hand allow to draw."""
    if any(side not in tables or not {*tables[side].column_names} >= NEEDED for side in SIDES):
        return []
    scores = {side: column(tables[side], "score") for side in SIDES}
    unsure = {side: np.array(tables[side]["unsure"].to_pylist(), dtype=np.bool_) for side in SIDES}
    sure = np.concatenate([scores[side][~unsure[side]] for side in SIDES])
    line = float(sure.min()) if sure.size and any(flags.any() for flags in unsure.values()) else None
    figures = []
    if scores["audited"].size and scores["controls"].size:
        hills = histograms(
            scores["audited"], scores["controls"], label=LABEL, threshold=line, names=("query set", "controls")
        )
        figures.append(replace(hills, title="The query set among records never seen", reading=READING))
    if scores["members"].size and scores["controls"].size:
        names = ("members of calibration models", "controls")
        hills = histograms(scores["members"], scores["controls"], label=LABEL, threshold=line, names=names)
        figures.append(replace(hills, title="How members would look", reading=READING))
    return figures
