"""The figure of the fluency audit."""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa

from recollect.report.figures.blocks import draw_histograms
from recollect.report.figures.columns import read_column
from recollect.report.figures.figure import Figure
from recollect.results.result import Result


def draw(result: Result, tables: Mapping[str, pa.Table]) -> list[Figure]:
    """How often the audited people and the controls are predicted."""
    if not {"people", "controls"} <= tables.keys():
        return []
    audited, controls = (read_column(tables[name], "score") for name in ("people", "controls"))
    return [draw_histograms(audited, controls, label="share of tokens predicted", names=("audited people", "controls"))]
