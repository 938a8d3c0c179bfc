"""How much of the query set is still in the model: a mixture of two means, with its interval and both tests.

The mean member probability of the audited records lies between that of records which the target was not trained on,
and that of members. How far it lies between them is the share still in.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

import numpy as np
import scipy

from recollect.audits.removal.mixture_means import MixtureMean, average_members, compute_t_quantile, correct_by_ratio
from recollect.audits.removal.neighbours import Neighbours
from recollect.errors import NotEnoughData
from recollect.signals.scores import Scores
from recollect.stats.groups import Floats
from recollect.stats.intervals import Estimate, Interval

if TYPE_CHECKING:
    from recollect.audits.removal.audit import RemovalAudit


SHARES: Final = np.linspace(0, 1, 201)
"""The shares still in that are tried."""
WANTED_POWER: Final = 0.8
STILL_THERE_SHARE: Final = 0.8
"""Of α, for "still there"; the rest is for "over-unlearned", the other way to accuse a set that is gone."""
CURVE: Final = (5, 10, 20, 50, 100, 200, 500, 1000, 2000)
"""Sizes of query sets at which the power is computed."""
MAX_RECORDS: Final = 1_000_000
"""No larger set is ever recommended."""
WEAKEST: Final = 0.75
"""The target may memorise less strongly than calibration models, which are trained on other data and often on less of
it: intervals and upper bounds allow for members that exceed non-members by this share of what they do there."""
METHOD: Final = (
    "mixture of the means of members and non-members; MOVER of t-intervals, upper end for a target that memorises "
    "up to a quarter less strongly than calibration models"
)


@dataclass(frozen=True, kw_only=True)
class Mixture:
    """The mean member probability of the audited records, beside those of members and non-members."""

    audited: MixtureMean
    unseen: MixtureMean
    """Of the target, in records like these that it was not trained on."""
    members: MixtureMean
    """Of calibration models, in records that they were trained on."""
    p_above: float
    """How often a set of non-members would have so high a mean; by the test that decides."""
    unseen_alternatives: tuple[MixtureMean, ...] = ()
    """The mean of non-members by another correction for easier neighbours, and without any: intervals allow for all of
    them, and what is ruled out must be so by each; empty without neighbours."""
    alpha: float = 0.05
    tolerance: float = 0.5
    """The share still in from which on a set is not gone."""

    @property
    def size(self) -> int:
        """Audited units."""
        return round(self.audited.size)

    @property
    def gap(self) -> float:
        """By how much members exceed non-members."""
        return self.members.value - self.unseen.value

    @property
    def identifiable(self) -> bool:
        """Whether members and non-members differ at all, so that a share still in can be estimated."""
        return self.gap > 0

    @property
    def likeliest_share(self) -> float:
        """The share still in that explains the mean of the audited best, where a share can be estimated."""
        return min(1.0, max(0.0, (self.audited.value - self.unseen.value) / self.gap))

    @property
    def p_gone(self) -> float:
        """The smallest α at which a share still in from the tolerance on is ruled out; 0.5 if at none."""
        return self._find_level(lambda level: self.excludes_share(self.tolerance, level))

    @property
    def p_all_in(self) -> float:
        """The smallest α at which it is ruled out that nothing was removed; 0.5 if at none."""
        return self._find_level(lambda level: self.excludes_share(1.0, level))

    def weaken(self) -> Mixture:
        """The same if the target memorises as weakly as intervals allow for."""
        members = replace(
            self.members,
            value=self.unseen.value + WEAKEST * self.gap,
            variance=WEAKEST * self.members.variance
            + (1 - WEAKEST) * self.unseen.variance
            + WEAKEST * (1 - WEAKEST) * self.gap**2,
        )
        return replace(self, members=members)

    def excludes_share(self, share: float, level: float) -> bool:
        """Whether so large a share still in, or a larger one, is ruled out at a level, even of a weaker target."""
        return all(
            bool(weak._compute_surplus(share) < -weak._compute_margin(share, level)) for weak in self._list_weakened()
        )

    def bound_share(self, level: float) -> float:
        """The largest share still in that is not ruled out at a significance level, even of a weaker target."""
        left = np.any(
            [weak._compute_surplus(SHARES) >= -weak._compute_margin(SHARES, level) for weak in self._list_weakened()],
            axis=0,
        )
        return float(SHARES[left].max(initial=0.0))

    def _list_weakened(self) -> list[Mixture]:
        """The mixture with each mean of non-members there is, if the target memorises as weakly as is allowed for."""
        return [replace(self, unseen=unseen).weaken() for unseen in (self.unseen, *self.unseen_alternatives)]

    def estimate_share(self, confidence: float) -> Estimate:
        """The share of the audited records that is still in, with the shares that the means do not rule out.

        Zero is ruled out only if the test for "still there" rules it out at the level of one side of the interval.

        Raises:
            NotEnoughData: Members and non-members do not differ.
        """
        if not self.identifiable:
            raise NotEnoughData(
                "Calibration models show no more sign of their members than the target does of records it was not "
                "trained on.",
                do="Give more controls, or a recipe that trains as the target was trained.",
                code="members_indistinguishable",
            )
        value, level = self.likeliest_share, (1 - confidence) / 2
        left = self.list_compatible_shares(confidence)
        low, high = (min(left), max(left)) if left else (value, value)
        if self.p_above > level:
            low = 0.0
        n = {"audited": self.size, "members": int(self.members.size), "non_members": int(self.unseen.size)}
        return Estimate(
            value=value, interval=Interval(min(low, value), max(high, value), confidence), n=n, method=METHOD
        )

    def list_compatible_shares(self, confidence: float) -> list[float]:
        """The shares still in that the means do not rule out; none if the set is beyond either side."""
        compatible = np.zeros(len(SHARES), dtype=np.bool_)
        for unseen in (self.unseen, *self.unseen_alternatives):
            either = replace(self, unseen=unseen)
            weak, level = either.weaken(), (1 - confidence) / 2
            # a weaker target needs a larger share for the same mean: so it moves the upper end only
            enough = either._compute_surplus(SHARES) <= either._compute_margin(SHARES, level)
            compatible |= enough & (weak._compute_surplus(SHARES) >= -weak._compute_margin(SHARES, level))
        found: list[float] = SHARES[compatible].tolist()
        return found

    def compute_power(self, size: float | None = None) -> tuple[float, float]:
        """How often a set is called still there if all of it is, and gone if all of it is; by its size."""
        if not self.identifiable:
            return 0.0, 0.0
        count = self.audited.size if size is None else float(size)
        found = self._compute_probability(self.members.variance / count, count, share=0.0, gap=self.gap)
        weak = self.weaken()
        gone = weak._compute_probability(
            weak.unseen.variance / count, count, share=weak.tolerance, gap=weak.tolerance * weak.gap
        )
        return found, gone

    def find_detectable_share(self) -> float | None:
        """The smallest share still in that would be found four times in five; None if not even all of it."""
        if not self.identifiable:
            return None
        size, unseen, ratio = self.audited.size, self.unseen.variance, self.audited.size / self.unseen.size
        # what is in and what is not are dealt out anew together: their difference widens the null distribution
        pooled = (ratio * self._imply_variance(SHARES) + unseen) / (1 + ratio)
        pooled += np.square(SHARES * self.gap / (1 + ratio)) * ratio
        quantile = compute_t_quantile(STILL_THERE_SHARE * self.alpha, size - 1)
        margin = quantile * np.sqrt(pooled * (1 + ratio) / size)
        error = np.sqrt((SHARES * self.members.variance + (1 - SHARES + ratio) * unseen) / size)
        found = SHARES[(SHARES > 0) & (SHARES * self.gap - margin >= scipy.special.ndtri(WANTED_POWER) * error)]
        return float(found.min()) if len(found) else None

    def compute_power_curve(self) -> dict[str, list[float]]:
        """The power of both decisions by the size of the set, with these controls."""
        sizes = sorted({*CURVE, self.size})
        found = [self.compute_power(size) for size in sizes]
        still, gone = ([pair[side] for pair in found] for side in (0, 1))
        return {"size": [float(size) for size in sizes], "still_there": still, "gone": gone}

    def find_sufficient_size(self) -> int | None:
        """About how many audited records suffice to decide either way; None if no number does with these controls."""
        size = float(max(2, self.size))
        while self.identifiable and size <= MAX_RECORDS:
            if min(self.compute_power(math.ceil(size))) >= WANTED_POWER:
                return math.ceil(size)
            size *= 1.15
        return None

    def _compute_probability(self, variance: float, size: float, *, share: float, gap: float) -> float:
        """How often a difference of means, with this variance of the audited side, exceeds its margin at α."""
        audited = MixtureMean(value=0.0, variance=variance * size, size=size)
        margin = float(replace(self, audited=audited)._compute_margin(share, self.alpha))
        others = self.unseen.variance / self.unseen.size * (1 - share) ** 2
        error = math.sqrt(variance + others + share**2 * self.members.variance / self.members.size)
        return float(scipy.special.ndtr((gap - margin) / error)) if error > 0 else float(gap > margin)

    def _compute_surplus(self, share: float | Floats) -> Floats:
        """By how much the mean of the audited exceeds what it would be if this share were in."""
        return np.asarray(self.audited.value - share * self.members.value - (1 - share) * self.unseen.value)

    def _compute_margin(self, share: float | Floats, level: float) -> Floats:
        """What the surplus may be under the null hypothesis, with this probability of error on either side (MOVER)."""
        others = np.hypot(share * self.members.compute_margin(level), (1 - share) * self.unseen.compute_margin(level))
        # few records that happen to be alike say little about their mean: at least the variance that this share implies
        deviation = np.sqrt(np.maximum(self.audited.variance, self._imply_variance(share)))
        unit = replace(self.audited, variance=1.0).compute_margin(level)
        return np.hypot(unit if self.audited.size <= 1 else unit * deviation, others)

    def _imply_variance(self, share: float | Floats) -> Floats:
        """The variance of one audited record if this share is in."""
        between = share * (1 - share) * self.gap**2
        return np.asarray(share * self.members.variance + (1 - share) * self.unseen.variance + between)

    def _find_level(self, excluded: Callable[[float], bool]) -> float:
        """The smallest significance level at which something is ruled out; 0.5 if at none."""
        low, high = 0.0, 0.5
        for _ in range(30):
            middle = (low + high) / 2
            if excluded(middle):
                high = middle
            else:
                low = middle
        return high


def build_mixture(
    audit: RemovalAudit, sides: tuple[Scores, Scores, Scores], neighbours: Neighbours | None, above: float
) -> Mixture:
    """The mixture of audited records that are like some control, beside members and non-members that represent them.

    Args:
        audit: Its level and tolerance.
        sides: Member probabilities of the audited, the controls and the members of calibration models.
        neighbours: The controls that represent each audited record; None if all do alike.
        above: The p-value of "still there".
    """
    audited, controls, members = sides
    weights = None if neighbours is None else neighbours.nearest_weights
    named = None if weights is None else dict(zip(controls.records, weights.tolist(), strict=True))
    compared = audited.values if neighbours is None else audited.values[~neighbours.far]
    unseen, *otherwise = _estimate_unseen(controls.values, neighbours)
    return Mixture(
        audited=MixtureMean.of(compared),
        unseen=unseen,
        unseen_alternatives=tuple(otherwise),
        members=average_members(members, named),
        p_above=above,
        alpha=audit.level,
        tolerance=audit.tolerance,
    )


def _estimate_unseen(controls: Floats, neighbours: Neighbours | None) -> list[MixtureMean]:
    """The mean of non-members like the audited records in a mixture, by the best correction first."""
    if neighbours is None:
        return [MixtureMean.of(controls)]
    nearest, difference = (
        MixtureMean.of(controls, weights) for weights in (neighbours.nearest_weights, neighbours.corrected_weights)
    )
    ratio = correct_by_ratio(controls, neighbours)
    if ratio is None:  # nothing is ruled out then: a single record has an unbounded margin
        return [difference, replace(difference, size=1.0), nearest]
    return [ratio, difference, nearest]


def build_unlike_mixture(audit: RemovalAudit, audited: Scores, members: Scores) -> Mixture:
    """The mixture of all audited records, with nothing known of non-members: they may all have probability 0."""
    return Mixture(
        audited=MixtureMean.of(audited.values),
        unseen=MixtureMean(value=0.0, variance=0.0, size=np.inf),
        members=average_members(members, None),
        p_above=1.0,
        alpha=audit.level,
        tolerance=audit.tolerance,
    )


def fits_no_share(mixture: Mixture, confidence: float) -> bool:
    """Whether a share still in can be estimated from the mixture, and none explains the scores."""
    return mixture.identifiable and not mixture.list_compatible_shares(confidence)
