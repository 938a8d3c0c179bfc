"""How much of the query set the model still shows: an estimate with its interval, and tests against both truths."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Final, Literal

import numpy as np
from scipy import stats

from recollect.audits.removal.rates import Rate
from recollect.errors import NotEnoughData
from recollect.stats.intervals import Estimate, Interval, weighted_sum

Verdict = Literal["still there", "gone", "over-unlearned", "cannot tell"]
"""What can be said of a set."""
STEPS: Final = 200
"""How finely shares still in are tried."""
WANTED_POWER: Final = 0.8
CURVE: Final = (5, 10, 20, 50, 100, 200, 500, 1000, 2000)
"""Sizes of query sets at which the power is told."""
MOST_RECORDS: Final = 1_000_000
"""No more are ever asked for."""


@dataclass(frozen=True, kw_only=True)
class Case:
    """How often the target is unsure of the audited records, beside what members and records never seen would show."""

    unsure: int
    """Audited records of which the target is unsure."""
    size: int
    """Audited records."""
    members: Rate
    """Of calibration models about their own members."""
    never: Rate
    """Of the target about records like these that it never saw."""
    least: Rate | None = None
    """The same at its lowest, where the controls are of another kind than the audited records; None if they are not."""
    alpha: float = 0.05
    spent: float = 1.0
    """The share of α that the test for "still there" may spend, where another one spends the rest."""
    tolerance: float = 0.5
    """The share still in from which on a set is not gone."""

    @property
    def rate(self) -> Rate:
        """The share of unsure answers about the audited records."""
        return Rate(value=self.unsure / self.size, size=float(self.size))

    @property
    def p_still(self) -> float:
        """How often a set of which nothing is in would show so few unsure answers (Fisher's exact test).

        Divided by what may be spent: so both tests of a set together are wrong with probability α at most.
        """
        never = self.least or self.never
        pool = math.floor(never.size)
        hits = min(pool, math.floor(never.hits + 1e-9))
        found = float(stats.hypergeom.cdf(self.unsure, pool + self.size, hits + self.unsure, self.size))
        return min(1.0, found / self.spent)

    @property
    def p_removed(self) -> float:
        """How often a set that is wholly in would show so many unsure answers (Fisher's exact test)."""
        pool = math.floor(self.members.size)
        hits = min(pool, math.ceil(self.members.hits - 1e-9))
        return float(stats.hypergeom.sf(self.unsure - 1, pool + self.size, hits + self.unsure, self.size))

    @property
    def told(self) -> bool:
        """Whether members and records never seen differ at all, so that a share still in can be told."""
        return self.never.value > self.members.value

    def share_in(self, confidence: float) -> Estimate:
        """The share of the audited records that is still in, with the shares that the counts do not rule out.

        Unsure answers are a mixture: φ times the members' rate and 1 − φ times that of records never seen. A share φ is
        ruled out if the difference of both sides is not zero (MOVER of exact intervals); all three rates are uncertain.
        """
        if not self.told:
            raise NotEnoughData(
                "Calibration models are no surer of their members than the target of records it never saw.",
                do="Give more controls, or a recipe that trains as the target was trained.",
            )
        left, value = self.shares_left(confidence), self.likeliest
        low, high = (min(left), max(left)) if left else (value, value)
        interval = Interval(min(low, value), max(high, value), confidence)
        n = {"audited": self.size, "members": int(self.members.size), "never_seen": int(self.never.size)}
        return Estimate(value=value, interval=interval, n=n, method=_METHOD)

    @property
    def likeliest(self) -> float:
        """The share still in that explains the unsure answers best, where a share can be told."""
        share = 1 - (self.rate.value - self.members.value) / (self.never.value - self.members.value)
        return min(1.0, max(0.0, share))

    def shares_left(self, confidence: float) -> list[float]:
        """The shares still in that the counts do not rule out; none if the set is beyond either side."""
        return [share for share in np.linspace(0, 1, STEPS + 1).tolist() if self._possible(share, confidence)]

    def excludes(self, share: float) -> bool:
        """Whether so large a share still in, or a larger one, is ruled out at α."""
        return self._surplus(share, 1 - 2 * self.alpha, self.never).low > 0

    @property
    def p_gone(self) -> float:
        """The smallest α at which a share still in from the tolerance on is ruled out; 0.5 if at none."""
        low, high = 0.0, 0.5
        for _ in range(40):
            middle = (low + high) / 2
            if replace(self, alpha=middle).excludes(self.tolerance):
                high = middle
            else:
                low = middle
        return high

    @property
    def verdict(self) -> Verdict:
        """What can be said of the set; either error has at most probability α."""
        if not self.told:
            return "cannot tell"
        if self.p_still <= self.alpha:
            return "still there"
        return "gone" if self.excludes(self.tolerance) else "cannot tell"

    def power(self) -> tuple[float, float]:
        """How often such a set is called still there if all of it is, and gone if all of it is."""
        if not self.told:
            return 0.0, 0.0
        # the most unsure answers that still speak for "still there", and the fewest that speak for "gone"
        most = _last(lambda hits: replace(self, unsure=hits).p_still <= self.alpha, self.size)
        gone = _last(lambda hits: not replace(self, unsure=hits).excludes(self.tolerance), self.size) + 1
        found = float(stats.binom.cdf(most, self.size, self.members.value)) if most >= 0 else 0.0
        cleared = float(stats.binom.sf(max(gone, most + 1) - 1, self.size, self.never.value))
        return found, cleared

    def power_curve(self) -> dict[str, list[float]]:
        """The power of both verdicts by the size of the set, with these controls."""
        sizes = sorted({*CURVE, self.size})
        found = [replace(self, size=size, unsure=0).power() for size in sizes]
        still, gone = ([pair[side] for pair in found] for side in (0, 1))
        return {"size": [float(size) for size in sizes], "still_there": still, "gone": gone}

    def enough(self) -> int | None:
        """About how many audited records would do to tell either way; None if no number would with these controls."""
        if not self.told:
            return None
        size = float(self.size)
        while size <= MOST_RECORDS:
            count = math.ceil(size)
            if min(replace(self, size=count, unsure=0).power()) >= WANTED_POWER:
                return count
            size *= 1.15
        return None

    def _possible(self, share: float, confidence: float) -> bool:
        """Whether a share still in is not ruled out."""
        rates = {self.never, self.least or self.never}
        return any(0.0 in self._surplus(share, confidence, never) for never in rates)

    def _surplus(self, share: float, confidence: float, never: Rate) -> Interval:
        """By how much there are more unsure answers than if this share were in."""
        parts = [
            (1.0, self.rate.estimate(confidence)),
            (-share, self.members.estimate(confidence)),
            (share - 1, never.estimate(confidence)),
        ]
        found = weighted_sum(parts, n={}).interval
        assert found is not None  # noqa: S101 - every part has one
        return found


_METHOD = "mixture of members and records never seen; MOVER of exact intervals"


def _last(holds: Callable[[int], bool], most: int) -> int:
    """The largest number up to `most` for which a falling condition holds; −1 if for none."""
    low, high = -1, most
    while low < high:
        middle = (low + high + 1) // 2
        if holds(middle):
            low = middle
        else:
            high = middle - 1
    return low
