"""Rates of false positives with the target as cluster, and which of them are above what is stated."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from cells import Cell
from counts import Counts, Drawn
from scipy import stats
from worlds import ALPHA

from recollect.stats.significance import holm

INCONCLUSIVE_AT_MOST = 0.10
"""In exchangeable worlds, how often a guard may say that nothing can be said."""
LEVEL = 0.001
"""After Holm over all cells."""
_CLAIMS = ("found", "named", "low_p")
"""Each of them is a false positive."""


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
    """Of "every rate is at most the stated one": the smallest of the three, times three; 1 where some are in."""
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


def summarise(cell: Cell, drawn: Mapping[str, Drawn]) -> Rates:
    """The rates of one cell.

    Args:
        cell: The cell.
        drawn: Its worlds, by set.
    """
    targets = list_counts(drawn)
    counts = sum(targets.values(), Counts())
    worst = max(_CLAIMS, key=lambda name: getattr(counts, name))
    totals = [each.worlds for each in targets.values()]
    hits = {name: [getattr(each, name) for each in targets.values()] for name in (*_CLAIMS, "guarded")}
    return Rates(
        worlds=counts.worlds,
        **{name: getattr(counts, name) / counts.worlds for name in ("found", "named", "inconclusive", "guarded")},
        low_p=counts.low_p / counts.worlds if counts.p_told else None,
        contradictory=counts.contradictory / counts.worlds,
        by_target={name: getattr(each, worst) / each.worlds for name, each in targets.items()},
        p=1.0
        if cell.design.inside
        else min(1.0, len(_CLAIMS) * min(test_rate(hits[name], totals, ALPHA) for name in _CLAIMS)),
        guarded_p=test_rate(hits["guarded"], totals, INCONCLUSIVE_AT_MOST) if cell.design.exchangeable else 1.0,
    )


def list_counts(drawn: Mapping[str, Drawn]) -> dict[str, Counts]:
    """The counts of all targets of all sets; worlds of one target may be alike, those of two share no model."""
    return {f"{name} {target}": each for name, one in drawn.items() for target, each in one.targets.items()}


def test_rate(hits: Sequence[int], totals: Sequence[int], stated: float) -> float:
    """The p-value of "the rate is at most the stated one", where worlds of one target may be alike.

    A binomial test whose number of worlds is divided by the design effect: the variance of the rates by cluster over
    the binomial one, at least 1.

    Args:
        hits: In how many worlds of each cluster it happened.
        totals: How many worlds each cluster has.
        stated: The rate that is stated.
    """
    count, total = sum(hits), sum(totals)
    rate = count / total
    effect = 1.0
    if len(hits) > 1 and 0 < rate < 1:
        rates = np.array(hits) / np.array(totals)
        expected = rate * (1 - rate) / (total / len(hits))
        effect = max(1.0, float(rates.var(ddof=1) / expected))
    smaller = total / effect
    return float(stats.beta.cdf(stated, max(count / effect, 1e-9), smaller - count / effect + 1)) if count else 1.0


def measure_coverage(finding: str, told: Mapping[str, Sequence[int]]) -> dict[str, float | int | str]:
    """How often an interval holds the true value, and the p-value of "at least as often as its confidence level".

    Args:
        finding: What the interval is of.
        told: By target, how many intervals are told and how many of them hold the true value.
    """
    totals = [count for count, _ in told.values()]
    misses = [count - held for count, held in told.values()]
    return {
        "finding": finding,
        "intervals": sum(totals),
        "coverage": 1 - sum(misses) / sum(totals),
        "p": test_rate(misses, totals, ALPHA),
    }


def correct_by_holm(p: Sequence[float]) -> list[float]:
    """P-values after Holm over all cells."""
    return [float(value) for value in holm(p)] if len(p) else []
