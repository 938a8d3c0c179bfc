"""Table 2: MNIST, a perceptron, 2,000 queried images, calibration sets of falling quality."""

from __future__ import annotations

from common.outcomes import Figure, Outcome
from counting import by_query, by_training, ks_scores, of_sets, printed_wrong, scale
from laboratory import QUALITIES, Laboratory
from tables import MNIST, cells, ks_cells

SETS = (*MNIST.inside, MNIST.outside, MNIST.far)
KS: dict[int, dict[str, float]] = {
    100: dict(zip(SETS, (0.91, 0.90, 0.90, 0.89, 0.90, 0.82, 2.34), strict=True)),
    90: {"M5": 0.95},
    80: dict(zip(SETS, (0.98, 0.95, 0.97, 0.95, 0.96, 0.87, 3.75), strict=True)),
    70: dict(zip(SETS, (0.98, 0.96, 0.97, 0.96, 0.96, 0.88, 1.08), strict=True)),
    60: dict(zip(SETS, (1.02, 0.99, 1.01, 1.00, 0.99, 0.90, 4.74), strict=True)),
    50: dict(zip(SETS, (1.07, 1.04, 1.06, 1.05, 1.05, 0.94, 2.62), strict=True)),
}
"""Printed ρ_KS; of the row of k = 90 one cell can be read in our copy."""
ERRORS = {
    ("ema", "M1–M5"): "0 of 30",
    ("ema", "M6"): "0 of 6",
    ("ema", "S"): "0 of 6",
    ("ks", "M1–M5"): printed_wrong(of_sets(KS, MNIST.inside), lambda rho: rho >= 1),
    ("ks", "M6"): printed_wrong(of_sets(KS, ("M6",)), lambda rho: rho < 1),
    ("ks", "S"): printed_wrong(of_sets(KS, ("S",)), lambda rho: rho < 1),
}
"""EMA's row of k = 90 cannot be read here, but the same scores stand in Table 5a."""


def study(lab: Laboratory) -> Outcome:
    rows, beside = cells(lab, MNIST), ks_cells(lab, MNIST)
    figures: list[Figure] = [*by_query(MNIST, [*rows, *beside], ERRORS), *ks_scores(MNIST, beside, KS)]
    figures += by_training(MNIST, rows)
    for quality in QUALITIES:
        chosen = [row for row in rows if (row["method"], row["quality"], row["size"]) == ("calibrated", quality, 2000)]
        for name in ("M1", "M6"):
            shares = [row["share"][0] for row in chosen if row["query"] == name and row.get("share")]
            if shares:
                mean = sum(shares) / len(shares)
                figures.append(Figure(f"calibrated, k = {quality}, {name}: share still in", None, mean))
    return Outcome(
        title="Table 2: the benchmark, 2,000 queried images",
        scale=f"{scale(MNIST, rows)} Fashion-MNIST in place of SVHN (S).",
        figures=figures,
    )
