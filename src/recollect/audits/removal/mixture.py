"""How much of the query set is still in the model: an estimate with its interval, and tests of both hypotheses."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
from scipy import stats

from recollect.audits.removal.rates import Rate
from recollect.errors import NotEnoughData
from recollect.stats.intervals import Estimate, Interval, weighted_sum

STEPS: Final = 200
"""The number of steps in which shares still in are tried."""
WANTED_POWER: Final = 0.8
CURVE: Final = (5, 10, 20, 50, 100, 200, 500, 1000, 2000)
"""Sizes of query sets at which the power is computed."""
MAX_RECORDS: Final = 1_000_000
"""No larger set is ever recommended."""
METHOD: Final = "mixture of members and non-members; MOVER of exact intervals"


@dataclass(frozen=True, kw_only=True)
class Mixture:
    """How often the target has low confidence in the audited records, beside rates of members and unseen records."""

    low_confidence: int
    """Audited records in which the target has low confidence."""
    size: int
    """Audited records."""
    members: Rate
    """Of calibration models in their own members."""
    unseen: Rate
    """Of the target in similar records that it was not trained on."""
    unseen_lowest: Rate | None = None
    """The same at its lowest, where the controls are of another kind than the audited records; None if they are not."""
    alpha: float = 0.05
    alpha_share: float = 1.0
    """The share of α that the test for "still there" may spend, where another one spends the rest."""
    tolerance: float = 0.5
    """A set is gone only if a share this large, or larger, still in is ruled out."""

    @property
    def rate(self) -> Rate:
        """The rate of low confidence in the audited records."""
        return Rate(value=self.low_confidence / self.size, size=float(self.size))

    @property
    def p_still_there(self) -> float:
        """How often a set of which nothing is in would have so few records of low confidence (Fisher's exact test).

        Divided by the share of α it may spend: so both tests of a set together are wrong with probability α at most.
        """
        unseen = self.unseen_lowest or self.unseen
        pool = math.floor(unseen.size)
        hits = min(pool, math.floor(unseen.hits + 1e-9))
        found = stats.hypergeom.cdf(self.low_confidence, pool + self.size, hits + self.low_confidence, self.size)
        return min(1.0, float(found) / self.alpha_share)

    @property
    def p_all_in(self) -> float:
        """How often a set that is wholly in would have so many records of low confidence (Fisher's exact test)."""
        pool = math.floor(self.members.size)
        hits = min(pool, math.ceil(self.members.hits - 1e-9))
        found = stats.hypergeom.sf(self.low_confidence - 1, pool + self.size, hits + self.low_confidence, self.size)
        return float(found)

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
    def identifiable(self) -> bool:
        """Whether members and unseen records differ at all, so that a share still in can be estimated."""
        return self.unseen.value > self.members.value

    def estimate_share(self, confidence: float) -> Estimate:
        """The share of the audited records that is still in, with the shares that the counts do not rule out.

        Low confidence has a mixed rate: φ times the members' and 1 − φ times that of unseen records. A share φ is
        ruled out if the difference of both sides is not zero (MOVER of exact intervals); all three rates are uncertain.

        Raises:
            NotEnoughData: Members and unseen records do not differ.
        """
        if not self.identifiable:
            raise NotEnoughData(
                "Calibration models are no more confident in their members than the target is in non-members.",
                do="Give more controls, or a recipe that trains as the target was trained.",
                code="members_indistinguishable",
            )
        left, value = self.list_compatible_shares(confidence), self.likeliest_share
        low, high = (min(left), max(left)) if left else (value, value)
        interval = Interval(min(low, value), max(high, value), confidence)
        n = {"audited": self.size, "members": int(self.members.size), "non_members": int(self.unseen.size)}
        return Estimate(value=value, interval=interval, n=n, method=METHOD)

    @property
    def likeliest_share(self) -> float:
        """The share still in that explains the rate of low confidence best, where a share can be estimated."""
        share = 1 - (self.rate.value - self.members.value) / (self.unseen.value - self.members.value)
        return min(1.0, max(0.0, share))

    def list_compatible_shares(self, confidence: float) -> list[float]:
        """The shares still in that the counts do not rule out; none if the set is beyond either side."""
        return [share for share in np.linspace(0, 1, STEPS + 1).tolist() if self._is_compatible(share, confidence)]

    def excludes(self, share: float) -> bool:
        """Whether so large a share still in, or a larger one, is ruled out at α."""
        return self._compute_surplus(share, 1 - 2 * self.alpha, self.unseen).low > 0

    def compute_power(self) -> tuple[float, float]:
        """How often such a set is called still there if all of it is, and gone if all of it is."""
        if not self.identifiable:
            return 0.0, 0.0
        # the most records of low confidence that still mean "still there", and the fewest that mean "gone"
        most = _find_last(lambda hits: replace(self, low_confidence=hits).p_still_there <= self.alpha, self.size)
        gone = _find_last(lambda hits: not replace(self, low_confidence=hits).excludes(self.tolerance), self.size) + 1
        found = float(stats.binom.cdf(most, self.size, self.members.value)) if most >= 0 else 0.0
        cleared = float(stats.binom.sf(max(gone, most + 1) - 1, self.size, self.unseen.value))
        return found, cleared

    def compute_power_curve(self) -> dict[str, list[float]]:
        """The power of both decisions by the size of the set, with these controls."""
        sizes = sorted({*CURVE, self.size})
        found = [replace(self, size=size, low_confidence=0).compute_power() for size in sizes]
        still, gone = ([pair[side] for pair in found] for side in (0, 1))
        return {"size": [float(size) for size in sizes], "still_there": still, "gone": gone}

    def find_sufficient_size(self) -> int | None:
        """About how many audited records suffice to decide either way; None if no number does with these controls."""
        if not self.identifiable:
            return None
        size = float(self.size)
        while size <= MAX_RECORDS:
            count = math.ceil(size)
            if min(replace(self, size=count, low_confidence=0).compute_power()) >= WANTED_POWER:
                return count
            size *= 1.15
        return None

    def _is_compatible(self, share: float, confidence: float) -> bool:
        """Whether a share still in is not ruled out."""
        rates = {self.unseen, self.unseen_lowest or self.unseen}
        return any(0.0 in self._compute_surplus(share, confidence, unseen) for unseen in rates)

    def _compute_surplus(self, share: float, confidence: float, unseen: Rate) -> Interval:
        """By how much the rate of low confidence exceeds what it would be if this share were in."""
        terms = [
            (1.0, self.rate.estimate(confidence)),
            (-share, self.members.estimate(confidence)),
            (share - 1, unseen.estimate(confidence)),
        ]
        found = weighted_sum(terms, n={}).interval
        assert found is not None  # noqa: S101 - every term has one
        return found


def _find_last(holds: Callable[[int], bool], most: int) -> int:
    """The largest number up to `most` for which a falling condition holds; −1 if for none."""
    low, high = -1, most
    while low < high:
        middle = (low + high + 1) // 2
        if holds(middle):
            low = middle
        else:
            high = middle - 1
    return low
