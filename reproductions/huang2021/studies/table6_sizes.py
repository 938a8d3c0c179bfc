"""Table 6: query sets of 800 down to 5 chest X-rays; errors of EMA and of `calibrated`."""

from __future__ import annotations

from collections.abc import Iterator

from common.outcomes import Outcome
from counting import by_size, scale, told
from laboratory import Laboratory
from tables import XRAY, growing_cells

ZEROS = (0.0,) * 6
PAPER: dict[int, dict[str, tuple[float, ...]]] = {
    800: {"never in": ZEROS, "far, never in": ZEROS},
    500: {"never in": ZEROS, "far, never in": ZEROS},
    200: {"never in": ZEROS, "far, never in": ZEROS},
    50: {"never in": (0.01, 0.0, 0.01, 0.01, 0.01, 0.0), "far, never in": (0.04, 0.0, 0.0, 0.0, 0.0, 0.0)},
    20: {"never in": (0.15, 0.02, 0.07, 0.32, 0.04, 0.04), "far, never in": (0.07, 0.01, 0.04, 0.04, 0.04)},
    5: {"never in": (1.0, 0.35, 1.0, 1.0, 0.14, 0.14), "far, never in": (1.0, 0.14, 0.35, 1.0, 0.35)},
}
"""EMA's printed scores of C6 (ours: C4) and of R, k = 100 to 50; of R at 20 and 5 images, that of k = 90 cannot be
read."""


def study(lab: Laboratory) -> Iterator[Outcome]:
    for rows in growing_cells(lab, XRAY):
        yield Outcome(
            title="Table 6: smaller query sets of chest X-rays",
            scale=f"{scale(XRAY, rows)} C1, C4 and further sets drawn from trained and from fresh images.",
            figures=[*by_size(XRAY, rows, PAPER), *told(XRAY, rows)],
        )
