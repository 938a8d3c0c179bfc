"""Table 6: query sets of 800 down to 5 chest X-rays; errors of EMA and of `calibrated`."""

from __future__ import annotations

from common.outcomes import Outcome
from counting import by_size, scale
from laboratory import Laboratory
from tables import XRAY, cells

PAPER = {800: "0 of 6", 500: "0 of 6", 200: "0 of 6", 50: "0 of 6", 20: "2 of 6", 5: "6 of 6"}
"""Of the six cells of C6 (ours: C4) at each size, those in which EMA's printed score is above 0.1."""


def study(lab: Laboratory) -> Outcome:
    return Outcome(
        title="Table 6: smaller query sets of chest X-rays",
        scale=f"{scale(XRAY)} C1, C6 and further sets drawn from trained and from fresh images.",
        figures=list(by_size(XRAY, cells(lab, XRAY), PAPER)),
    )
