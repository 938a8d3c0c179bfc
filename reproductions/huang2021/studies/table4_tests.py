"""Table 4: EMA's votes against all ones, by the t-test and by Kolmogorov–Smirnov."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

from cells import Row
from common.outcomes import Figure, Outcome
from counting import scale
from laboratory import QUALITIES, Laboratory
from tables import MNIST, Part, cells

PAPER: dict[tuple[str, str], dict[int, dict[str, float]]] = {
    ("mnist", "ema, KS test"): {
        quality: {"in": 1.0, "out": out, "far": 0.0}
        for quality, out in zip(QUALITIES, (0.10, 0.08, 0.11, 0.08, 0.12, 0.27), strict=True)
    },
    ("mnist", "ema"): {quality: {"in": 1.0, "out": 0.0, "far": 0.0} for quality in QUALITIES},
    ("xray", "ema, KS test"): {100: {"in": 1.0, "out": 0.02, "far": 0.05}},
    ("xray", "ema"): {100: {"in": 1.0, "out": 0.0, "far": 0.0}},
}
"""ρ_EMA of the folds that are in, of M6 and C6, which never were, and of the far set; of the X-rays, one row can be
read for sure."""


def study(lab: Laboratory) -> Outcome:
    rows = cells(lab, MNIST)
    return Outcome(title="Table 4a, b: t-test and KS test", scale=scale(MNIST, rows), figures=[*tests(MNIST, rows)])


def tests(part: Part, rows: list[Row]) -> Iterator[Figure]:
    """The mean scores of one part of the paper."""
    whole = [row for row in rows if row["size"] == part.sizes.fold]
    sets = {"in": part.inside, "out": (part.outside,), "far": (part.far,)}
    for method, quality, (sort, names) in product(("ema, KS test", "ema"), QUALITIES, sets.items()):
        chosen = [row for row in whole if (row["method"], row["quality"]) == (method, quality)]
        scores = [row["rho_ema"] for row in chosen if row["query"] in names]
        if not scores:
            continue
        paper = PAPER[part.name, method].get(quality, {}).get(sort)
        said = names[0] if len(names) == 1 else f"{names[0]}–{names[-1]}"
        yield Figure(f"{method}, k = {quality}: mean ρ of {said}", paper, sum(scores) / len(scores))
