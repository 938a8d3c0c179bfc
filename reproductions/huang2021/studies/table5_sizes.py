"""Table 5: query sets of 2,000 down to 5 digits; errors of EMA and of `calibrated`."""

from __future__ import annotations

from common.outcomes import Outcome
from counting import by_size, scale
from laboratory import Laboratory
from tables import MNIST, cells

PAPER = {2000: "0 of 6", 500: "0 of 6", 200: "1 of 6", 50: "6 of 6", 20: "6 of 6", 5: "6 of 6"}
"""Of the six cells of M6 at each size, those in which EMA's printed score is above 0.1."""


def study(lab: Laboratory) -> Outcome:
    return Outcome(
        title="Table 5: smaller query sets of digits",
        scale=f"{scale(MNIST)} M1, M6 and further sets drawn from trained and from fresh images.",
        figures=list(by_size(MNIST, cells(lab, MNIST), PAPER)),
    )
