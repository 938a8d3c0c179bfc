"""Rates of false positives with the target as cluster, and which of them are above what is stated."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from cells import Cell
from scipy import stats
from worlds import ALPHA, Said

from recollect.stats.significance import holm

INCONCLUSIVE_AT_MOST = 0.10
"""In exchangeable worlds, how often a guard may say that nothing can be said."""
LEVEL = 0.001
"""After Holm over all cells."""
_BLAMED = ("not_comparable", "explained_by_texts", "placebo_failed")
"""Codes of a guard: too little data is nobody's fault."""


@dataclass(frozen=True, kw_only=True)
class Rates:
    """How often an audit said what in the worlds of one cell."""

    worlds: int
    found: float
    named: float
    low_p: float | None
    """Of one person; None where no p-value is told in any world."""
    inconclusive: float
    guarded: float
    """Inconclusive because of the guard, the blind baseline or the placebo."""
    contradictory: float
    """Somebody is named, and the outcome is not that something was found."""
    by_target: dict[str, float]
    """The largest of the three rates, by target."""
    p: float
    """Of "every rate is at most the stated one": the smallest of the three, times three."""
    guarded_p: float
    """Of "the guard objects in at most 10 % of worlds", in exchangeable worlds."""

    @property
    def holds(self) -> bool:
        """Whether nothing is above what is stated, before any correction for many cells."""
        return self.p >= LEVEL and self.guarded_p >= LEVEL

    def line(self) -> str:
        """One line for the terminal."""
        low = "   – " if self.low_p is None else f"{self.low_p:5.1%}"
        return (
            f"n {self.worlds:4d}  found {self.found:5.1%}  named {self.named:5.1%}  p≤.05 {low}  inconclusive "
            f"{self.inconclusive:5.1%} (guard {self.guarded:5.1%})  p {self.p:.1e}{'' if self.holds else '  FAIL'}"
        )


def summarise(cell: Cell, said: Sequence[Said]) -> Rates:
    """The rates of one cell."""
    targets = np.array([f"{each.set} {each.target}" for each in said])
    claims = {
        "found": np.array([each.outcome == "found" for each in said]),
        "named": np.array([each.named for each in said]),
        "low_p": np.array([bool(each.low_p) for each in said]),
    }
    guarded = np.array([each.outcome == "inconclusive" and each.code in _BLAMED for each in said])
    worst = max(claims.values(), key=lambda flags: flags.mean())
    return Rates(
        worlds=len(said),
        found=float(claims["found"].mean()),
        named=float(claims["named"].mean()),
        low_p=float(claims["low_p"].mean()) if any(each.low_p is not None for each in said) else None,
        inconclusive=float(np.mean([each.outcome in ("inconclusive", "refused") for each in said])),
        guarded=float(guarded.mean()),
        contradictory=float(np.mean([each.named and each.outcome != "found" for each in said])),
        by_target={str(t): float(worst[targets == t].mean()) for t in np.unique(targets)},
        p=min(1.0, 3 * min(test_rate(flags, targets, ALPHA) for flags in claims.values())),
        guarded_p=test_rate(guarded, targets, INCONCLUSIVE_AT_MOST) if cell.design.exchangeable else 1.0,
    )


def test_rate(flags: np.ndarray, clusters: np.ndarray, stated: float) -> float:
    """The p-value of "the rate is at most the stated one", where worlds of one target may be alike.

    A binomial test whose number of worlds is divided by the design effect: the variance of the rates by cluster over
    the binomial one, at least 1.
    """
    count, total = int(flags.sum()), len(flags)
    names = np.unique(clusters)
    rates = np.array([flags[clusters == name].mean() for name in names])
    rate = count / total
    effect = 1.0
    if len(names) > 1 and 0 < rate < 1:
        expected = rate * (1 - rate) / (total / len(names))
        effect = max(1.0, float(rates.var(ddof=1) / expected))
    smaller = total / effect
    return float(stats.beta.cdf(stated, max(count / effect, 1e-9), smaller - count / effect + 1)) if count else 1.0


def measure_coverage(finding: str, held: Sequence[tuple[str, bool]]) -> dict[str, float | int | str]:
    """How often an interval holds the true value, and the p-value of "at least as often as its confidence level".

    Args:
        finding: What the interval is of.
        held: For each world its target, and whether the interval held the true value.
    """
    clusters = np.array([cluster for cluster, _ in held])
    misses = np.array([not each for _, each in held])
    coverage = 1 - float(misses.mean())
    return {"finding": finding, "intervals": len(held), "coverage": coverage, "p": test_rate(misses, clusters, ALPHA)}


def correct_by_holm(p: Sequence[float]) -> list[float]:
    """P-values after Holm over all cells."""
    return [float(value) for value in holm(p)] if len(p) else []
