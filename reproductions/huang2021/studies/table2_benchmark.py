"""Table 2: MNIST, a perceptron, 2,000 queried images, calibration sets of falling quality."""

from __future__ import annotations

from common.outcomes import Figure, Outcome
from counting import by_query, by_training, ks_scores, scale
from laboratory import QUALITIES, Laboratory
from tables import MNIST, cells, ks_cells

ERRORS = {
    ("ema", "M1–M5"): "0 of 30",
    ("ema", "M6"): "0 of 6",
    ("ema", "S"): "0 of 6",
    ("ks", "M1"): "2 of 6",
    ("ks", "M6"): "6 of 6",
    ("ks", "S"): "0 of 6",
}
KS = {
    100: (0.91, 0.82, 2.34),
    80: (0.98, 0.87, 3.75),
    70: (0.98, 0.88, 1.08),
    60: (1.02, 0.90, 4.74),
    50: (1.07, 0.94, 2.62),
}
"""Printed ρ_KS of M1, M6 and S; the row of k = 90 cannot be read in our copy."""


def study(lab: Laboratory) -> Outcome:
    rows, beside = cells(lab, MNIST), ks_cells(lab, MNIST)
    figures: list[Figure] = [*by_query(MNIST, [*rows, *beside], ERRORS), *ks_scores(MNIST, beside, KS)]
    figures += by_training(MNIST, rows)
    for quality in QUALITIES:
        chosen = [row for row in rows if (row["method"], row["quality"], row["size"]) == ("calibrated", quality, 2000)]
        for name in ("M1", "M6"):
            shares = [row["share"][0] for row in chosen if row["query"] == name and row["share"]]
            if shares:
                mean = sum(shares) / len(shares)
                figures.append(Figure(f"calibrated, k = {quality}, {name}: share still in", None, mean))
    return Outcome(
        title="Table 2: the benchmark, 2,000 queried images",
        scale=f"{scale(MNIST)} Fashion-MNIST in place of SVHN (S). KS in one training.",
        figures=figures,
    )
