"""Table 3: chest X-rays, a residual network, calibration sets of falling quality."""

from __future__ import annotations

from common.outcomes import Figure, Outcome
from counting import by_query, by_training, ks_scores, scale
from laboratory import Laboratory
from tables import XRAY, cells, ks_cells

ERRORS = {
    ("ema", "C1–C3"): "0 of 25",
    ("ema", "C4"): "0 of 5",
    ("ema", "R"): "0 of 5",
}
"""Of the rows that can be read: k = 100 to 60. The paper has five folds: its C1–C5 stand beside our C1–C3, and its C6
beside our C4."""


def study(lab: Laboratory) -> Outcome:
    rows, beside = cells(lab, XRAY), ks_cells(lab, XRAY)
    figures: list[Figure] = [*by_query(XRAY, [*rows, *beside], ERRORS), *ks_scores(XRAY, beside, {})]
    figures += by_training(XRAY, rows)
    return Outcome(
        title="Table 3: chest X-rays, 800 queried images",
        scale=f"{scale(XRAY)} PneumoniaMNIST, 28 × 28, in place of COVIDx; Fashion-MNIST as the far set (R), since "
        "the paper's is PneumoniaMNIST's source; ResNet-18 of a quarter of the width, learning rate 10⁻³.",
        figures=figures,
    )
