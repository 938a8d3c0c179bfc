"""Table 3b: ρ_EMA of chest X-rays, a residual network, calibration sets of falling quality."""

from __future__ import annotations

from collections.abc import Iterator

from common.outcomes import Outcome
from counting import by_query, by_training, scale
from laboratory import Laboratory
from tables import XRAY, growing_cells

ERRORS = {("ema", "C1–C3"): "0 of 30", ("ema", "C4"): "0 of 6", ("ema", "R"): "0 of 6"}
"""Table 3b has no row k = 50; the same scores stand in Table 6a, which has it."""
UNLIKE = (
    "PneumoniaMNIST, 28 × 28, in place of COVIDx; Fashion-MNIST as the far set (R), since the paper's is "
    "PneumoniaMNIST's source; ResNet-18 of a quarter of the width, learning rate 10⁻³."
)


def study(lab: Laboratory) -> Iterator[Outcome]:
    for rows in growing_cells(lab, XRAY):
        yield Outcome(
            title="Table 3b: ρ_EMA of chest X-rays, 800 queried images",
            scale=f"{scale(XRAY, rows)} {UNLIKE}",
            figures=[*by_query(XRAY, rows, ERRORS), *by_training(XRAY, rows)],
        )
