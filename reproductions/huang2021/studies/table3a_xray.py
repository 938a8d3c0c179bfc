"""Table 3a: ρ_KS of chest X-rays, calibration sets of falling quality."""

from __future__ import annotations

from collections.abc import Iterator

from common.outcomes import Outcome
from counting import by_query, ks_scores, of_sets, printed_wrong, scale
from laboratory import Laboratory
from studies.table3b_xray import UNLIKE
from tables import XRAY, growing_ks_cells

PAPER_IN = ("C1", "C2", "C3", "C4", "C5")
SETS = (*PAPER_IN, "C6", "R")
KS = {
    100: dict(zip(SETS, (1.19, 1.20, 1.23, 1.20, 1.21, 0.99, 0.53), strict=True)),
    90: dict(zip(SETS, (1.25, 1.28, 1.23, 1.24, 1.25, 1.01, 0.71), strict=True)),
    80: dict(zip(SETS, (1.26, 1.27, 1.2, 1.22, 1.21, 1.00, 0.96), strict=True)),
    70: dict(zip(SETS, (1.28, 1.26, 1.24, 1.21, 1.24, 1.02, 0.73), strict=True)),
    60: dict(zip(SETS, (1.32, 1.32, 1.31, 1.26, 1.31, 1.09, 1.06), strict=True)),
}
"""Printed ρ_KS; there is no row k = 50. The paper has five folds: its C1–C5 stand beside our C1–C3, and its C6 beside
our C4."""
BESIDE = {
    quality: {**{name: row[name] for name in ("C1", "C2", "C3", "R")}, "C4": row["C6"]} for quality, row in KS.items()
}
ERRORS = {
    ("ks", "C1–C3"): printed_wrong(of_sets(KS, PAPER_IN), lambda rho: rho >= 1),
    ("ks", "C4"): printed_wrong(of_sets(KS, ("C6",)), lambda rho: rho < 1),
    ("ks", "R"): printed_wrong(of_sets(KS, ("R",)), lambda rho: rho < 1),
}


def study(lab: Laboratory) -> Iterator[Outcome]:
    for rows in growing_ks_cells(lab, XRAY):
        yield Outcome(
            title="Table 3a: ρ_KS of chest X-rays, 800 queried images",
            scale=f"{scale(XRAY, rows)} {UNLIKE}",
            figures=[*by_query(XRAY, rows, ERRORS), *ks_scores(XRAY, rows, BESIDE)],
        )
