"""Table 5: query sets of 2,000 down to 5 digits; errors of EMA and of `calibrated`."""

from __future__ import annotations

from common.outcomes import Outcome
from counting import by_size, scale, told
from laboratory import Laboratory
from tables import MNIST, cells

ZEROS = (0.0,) * 6
PAPER: dict[int, dict[str, tuple[float, ...]]] = {
    2000: {"never in": ZEROS, "far, never in": ZEROS},
    500: {"never in": ZEROS, "far, never in": ZEROS},
    200: {"never in": (0.01, 0.0, 0.01, 0.08, 0.32, 0.01), "far, never in": ZEROS},
    50: {"never in": (0.16, 0.16, 0.32, 1.0, 1.0, 0.32), "far, never in": ZEROS},
    20: {"never in": (0.32, 0.32, 1.0, 1.0, 1.0, 1.0), "far, never in": ZEROS},
    5: {"never in": (0.35, 1.0, 1.0, 1.0, 1.0, 1.0), "far, never in": ZEROS},
}
"""EMA's printed scores of M6 and of S, k = 100 to 50."""


def study(lab: Laboratory) -> Outcome:
    rows = cells(lab, MNIST)
    return Outcome(
        title="Table 5: smaller query sets of digits",
        scale=f"{scale(MNIST, rows)} M1, M6 and further sets drawn from trained and from fresh images.",
        figures=[*by_size(MNIST, rows, PAPER), *told(MNIST, rows)],
    )
