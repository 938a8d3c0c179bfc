"""Estimates with intervals: proportions and means whose records may belong to few users."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy
from numpy.typing import NDArray

from recollect.checks import check_between
from recollect.stats.groups import Group, ValuesLike, make_group, require_finite
from recollect.stats.requirements import require_count


@dataclass(frozen=True)
class Interval:
    """A confidence interval: its limits and its confidence level.

    >>> 0.5 in Interval(0.4, 0.7, confidence=0.95)
    True
    """

    low: float
    high: float
    confidence: float

    def __contains__(self, value: float) -> bool:
        return self.low <= value <= self.high


@dataclass(frozen=True, kw_only=True)
class Estimate:
    """A number with all that must travel with it."""

    value: float
    interval: Interval | None
    n: Mapping[str, int]
    """What was counted, by name: members, others, users …"""
    method: str
    """How the interval was made, in words for the report."""
    why_no_interval: str = ""
    """Given if, and only if, there is no interval."""


def clopper_pearson(hits: float, n: float, *, confidence: float = 0.95) -> Interval:
    """The exact interval of a rate of which `hits` of `n` independent trials were seen.

    Clopper & Pearson 1934. Covers at least as often as claimed for every rate. Counts need not be whole, so that
    it also serves effective counts.

    >>> clopper_pearson(0, 20)
    Interval(low=0.0, high=0.168433470983085..., confidence=0.95)
    """
    check_between(0, 1, confidence=confidence)
    tail = (1 - confidence) / 2
    return Interval(lower_limit(hits, n, tail=tail), upper_limit(hits, n, tail=tail), confidence)


def lower_limit(hits: float, n: float, *, tail: float) -> float:
    """The lower limit of an interval (Clopper–Pearson): below it, so many hits would have had probability `tail`.

    >>> round(lower_limit(20, 20, tail=0.05), 4)
    0.8609
    """
    return 0.0 if hits <= 0 else float(scipy.special.betaincinv(hits, n - hits + 1, tail))


def upper_limit(hits: float, n: float, *, tail: float) -> float:
    """The upper limit of an interval (Clopper–Pearson): above it, so few hits would have had probability `tail`.

    >>> round(upper_limit(0, 20, tail=0.05), 4)
    0.1391
    """
    return 1.0 if hits >= n else float(scipy.special.betainccinv(hits + 1, n - hits, tail))


def effective_size(group: Group, hits: NDArray[np.bool_], *, confidence: float = 0.95) -> float:
    """For an interval: how many independent trials the records of `group` are worth where users repeat themselves.

    Korn & Graubard 1998: records divided by the design effect, with Student's factor for few users; never fewer than
    if each user said one thing only. One all-or-nothing user is added to the scatter: a few stray hits look independent
    even where users mostly repeat themselves (without it 9 % of 95 % intervals missed a rate of 0.05 among 40 users).

    >>> five_users_twice = Group(np.zeros(10), np.arange(10) // 2, 5)
    >>> effective_size(five_users_twice, np.zeros(10, dtype=bool))
    5.0
    """
    n, users = len(group), group.user_count
    if not group.is_clustered:
        return float(n)
    rate = float(hits.mean())
    least = n**2 / float(np.square(group.sizes).sum())
    if rate in (0, 1):
        return least
    tail = (1 - confidence) / 2
    factor = (student_quantile(tail, n - 1) / student_quantile(tail, users - 1)) ** 2
    variance = _compute_ratio_variance(group, hits, rate) + max(rate, 1 - rate) ** 2 / users**2
    return float(np.clip(factor * rate * (1 - rate) / variance, least, n))


def proportion(hits: ValuesLike, *, of: str = "records", confidence: float = 0.95) -> Estimate:
    """The share of hits (0 or 1, one per record) with an interval by user.

    Clopper–Pearson, exact where every record has its own user; otherwise on the effective number of trials.

    >>> estimate = proportion([1, 1, 1, 0, 1])
    >>> estimate.value, estimate.n
    (0.8, {'records': 5, 'users': 5})

    Args:
        hits: Zeros and ones, with owners where records share them.
        of: What a record is called in the counts.
        confidence: How often such intervals cover the true share.
    """
    return estimate_proportion(make_group(hits, name=of), of=of, confidence=confidence)


def estimate_proportion(group: Group, *, of: str, confidence: float = 0.95) -> Estimate:
    """The share of hits with an interval, for a side whose owners are already known.

    >>> estimate_proportion(make_group([1, 0]), of="records").value
    0.5
    """
    check_between(0, 1, confidence=confidence)
    if group.is_clustered:
        require_count(group.user_count, 2, of="users", purpose="A share", code="too_few_users")
    require_count(len(group), 1, of=of, purpose="A share", code="too_few_records")
    size = effective_size(group, group.values > 0, confidence=confidence)
    rate = float((group.values > 0).mean())
    return Estimate(
        value=rate,
        interval=clopper_pearson(rate * size, size, confidence=confidence),
        n={of: len(group), "users": group.user_count},
        method="Clopper–Pearson" + (" on the effective count (Korn–Graubard)" if group.is_clustered else ""),
    )


def mean(values: ValuesLike, *, of: str = "records", confidence: float = 0.95) -> Estimate:
    """The mean over records with Student's interval by user.

    >>> estimate = mean([1.0, 2.0, 3.0, 4.0])
    >>> estimate.value, round(estimate.interval.low, 3), round(estimate.interval.high, 3)
    (2.5, 0.446, 4.554)

    Args:
        values: One number per record, with owners where records share them.
        of: What a record is called in the counts.
        confidence: How often such intervals cover the true mean.
    """
    return estimate_mean(make_group(values, name=of), of=of, confidence=confidence)


def estimate_mean(group: Group, *, of: str, confidence: float = 0.95) -> Estimate:
    """The mean with an interval, for a side whose owners are already known.

    >>> estimate_mean(make_group([7.0, 7.0, 7.0]), of="records").why_no_interval
    'all 3 users have the same value, so that their variance cannot be estimated'
    """
    check_between(0, 1, confidence=confidence)
    require_count(group.user_count, 2, of="users", purpose="A mean with an interval", code="too_few_users")
    centre = float(require_finite(group, purpose="A mean").values.mean())
    width = (
        student_quantile((1 - confidence) / 2, group.user_count - 1)
        * _compute_ratio_variance(group, group.values, centre) ** 0.5
    )
    n = {of: len(group), "users": group.user_count}
    if np.ptp(group.values) == 0 or width == 0:
        why = f"all {group.user_count} users have the same value, so that their variance cannot be estimated"
        return Estimate(value=centre, interval=None, n=n, method="mean", why_no_interval=why)
    interval = Interval(centre - float(width), centre + float(width), confidence)
    return Estimate(value=centre, interval=interval, n=n, method="mean, Student's t over users")


def weighted_sum(terms: Sequence[tuple[float, Estimate]], *, n: Mapping[str, int]) -> Estimate:
    """A sum of independent estimates with its interval, each times its weight; 1 and −1 give a difference.

    The distances to the limits add up in squares (Zou & Donner 2008, "MOVER"), so that limits which are not symmetric
    stay so.

    >>> before, after = proportion([1] * 90 + [0] * 10), proportion([1] * 40 + [0] * 60)
    >>> fall = weighted_sum([(1, before), (-1, after)], n={"before": 100, "after": 100})
    >>> round(fall.value, 2), fall.interval.low > 0
    (0.5, True)
    """
    value = sum(weight * term.value for weight, term in terms)
    method = f"MOVER of {'; '.join(dict.fromkeys(term.method for _, term in terms))}"
    below = above = 0.0
    for weight, term in terms:
        if term.interval is None:
            return Estimate(value=value, interval=None, n=n, method=method, why_no_interval=term.why_no_interval)
        low, high = sorted((weight * term.interval.low, weight * term.interval.high))
        below += (weight * term.value - low) ** 2
        above += (high - weight * term.value) ** 2
    confidence = min(term.interval.confidence for _, term in terms if term.interval)
    return Estimate(
        value=value, interval=Interval(value - below**0.5, value + above**0.5, confidence), n=n, method=method
    )


def student_quantile(tail: float, degrees_of_freedom: float) -> float:
    """How many standard errors an interval needs to leave a share `tail` beyond it, by Student's t.

    >>> round(student_quantile(0.025, 4), 3)
    2.776
    """
    return -float(scipy.special.stdtrit(degrees_of_freedom, tail))


def _compute_ratio_variance(group: Group, values: NDArray[Any], centre: float) -> float:
    """The variance of a mean over records, for its interval, when users are what was drawn at random."""
    users = group.user_count
    residuals = group.per_user(values) - centre * group.sizes
    return float(users / (users - 1) * np.square(residuals).sum() / len(group) ** 2)
