"""Table 4 (a, b): EMA's votes against all ones, by the t-test and by Kolmogorov–Smirnov."""

from __future__ import annotations

from common.outcomes import Figure, Outcome
from laboratory import QUALITIES, Laboratory
from mnist import cells, scale

PAPER = {
    "ema, KS test": dict(zip(QUALITIES, (0.10, 0.08, 0.11, 0.08, 0.12, 0.27), strict=True)),
    "ema": dict.fromkeys(QUALITIES, 0.0),
}
"""ρ of M6, which never was in."""


def study(lab: Laboratory) -> Outcome:
    rows = [row for row in cells(lab) if row["size"] == 2000 and row["query"] == "M6"]
    figures = []
    for method, printed in PAPER.items():
        for quality in QUALITIES:
            scores = [row["rho_ema"] for row in rows if (row["method"], row["quality"]) == (method, quality)]
            figures.append(
                Figure(f"{method}, k = {quality}: mean ρ of M6", printed[quality], sum(scores) / len(scores))
            )
    return Outcome(title="Table 4 (a, b): t-test and KS test", scale=scale(rows), figures=figures)
