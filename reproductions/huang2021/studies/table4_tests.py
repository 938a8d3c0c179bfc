"""Table 4: EMA's votes against all ones, by the t-test and by Kolmogorov–Smirnov."""

from __future__ import annotations

from common.outcomes import Figure, Outcome
from counting import scale
from laboratory import QUALITIES, Laboratory
from tables import MNIST, XRAY, Part, cells

PAPER = {
    ("mnist", "ema, KS test"): dict(zip(QUALITIES, (0.10, 0.08, 0.11, 0.08, 0.12, 0.27), strict=True)),
    ("mnist", "ema"): dict.fromkeys(QUALITIES, 0.0),
    ("xray", "ema, KS test"): {100: 0.02},
    ("xray", "ema"): {100: 0.0},
}
"""ρ of M6 and C6, which never were in; of the X-rays, one row can be read for sure."""


def study(lab: Laboratory) -> Outcome:
    figures = [figure for part in (MNIST, XRAY) for figure in _of(lab, part)]
    return Outcome(title="Table 4: t-test and KS test", scale=scale(MNIST), figures=figures)


def _of(lab: Laboratory, part: Part) -> list[Figure]:
    """The mean scores of one part of the paper."""
    rows = [row for row in cells(lab, part) if (row["size"], row["query"]) == (part.sizes.fold, part.outside)]
    figures = []
    for method in ("ema, KS test", "ema"):
        for quality in QUALITIES:
            scores = [row["rho_ema"] for row in rows if (row["method"], row["quality"]) == (method, quality)]
            label = f"{method}, k = {quality}: mean ρ of {part.outside}"
            figures.append(Figure(label, PAPER[part.name, method].get(quality), sum(scores) / len(scores)))
    return figures
