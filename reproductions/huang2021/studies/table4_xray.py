"""Table 4c, d: EMA's votes of chest X-rays against all ones, by the t-test and by Kolmogorov–Smirnov."""

from __future__ import annotations

from collections.abc import Iterator

from common.outcomes import Outcome
from counting import scale
from laboratory import Laboratory
from studies.table3b_xray import UNLIKE
from studies.table4_tests import tests
from tables import XRAY, growing_cells


def study(lab: Laboratory) -> Iterator[Outcome]:
    for rows in growing_cells(lab, XRAY):
        figures = [*tests(XRAY, rows)]
        yield Outcome(title="Table 4c, d: X-rays", scale=f"{scale(XRAY, rows)} {UNLIKE}", figures=figures)
