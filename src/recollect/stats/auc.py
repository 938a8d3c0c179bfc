"""AUC: how often a member scores above someone who is not one, with intervals that count users."""

from __future__ import annotations

import numpy as np
import scipy

from recollect.checks import check_between
from recollect.stats.groups import Floats, Group, ValuesLike, count_groups, make_groups, require_users
from recollect.stats.intervals import Estimate, Interval, student_quantile, upper_limit


def auc(members: ValuesLike, non_members: ValuesLike, *, confidence: float = 0.95) -> Estimate:
    """The probability that a member scores higher than a non-member, ties counting half; 0.5 is random guessing.

    Variance by DeLong et al. 1988, by user after Obuchowski 1997 (a user may be on both sides), on the logit scale
    with Welch's degrees of freedom. One all-or-nothing user is added to the scatter of each side: without it intervals
    near 1 and from unequal sides are too narrow (91 % instead of 95 % for 20 members, 200 others and AUC 0.97).

    >>> auc([0.9, 0.8, 0.4], [0.5, 0.3, 0.1]).value
    0.888...

    Args:
        members: Scores of members; higher is more evidence of training.
        non_members: Scores of non-members.
        confidence: How often such intervals cover the true AUC.
    """
    check_between(0, 1, confidence=confidence)
    a, b = _require_auc_groups(members, non_members)
    above_others, above_members = placements(a.values, b.values), 1 - placements(b.values, a.values)
    value = float(above_others.mean())
    influences = _compute_influence(a, above_others, value), _compute_influence(b, above_members, value)
    return Estimate(
        value=value,
        interval=_compute_auc_interval(value, a, b, influences, confidence),
        n=count_groups(a, b),
        method="DeLong by user (Obuchowski), logit scale",
    )


def placements(values: Floats, among: Floats) -> Floats:
    """The terms of an AUC: for each value the share of `among` below it, ties counting half.

    >>> placements(np.array([2.0, 5.0]), np.array([1.0, 2.0, 3.0, 4.0])).tolist()
    [0.375, 1.0]
    """
    ordered, order = np.sort(among), np.argsort(values)
    rising = values[order]  # searching for rising values is several times faster than for any order
    below = np.empty(len(values))
    below[order] = np.searchsorted(ordered, rising, side="left") + np.searchsorted(ordered, rising, side="right")
    return np.asarray(below / (2 * len(among)))


def _require_auc_groups(members: ValuesLike, non_members: ValuesLike) -> tuple[Group, Group]:
    """Both sides of an AUC, with enough users for an interval."""
    a, b = make_groups(members, non_members)
    require_users(a, b, purpose="An AUC with an interval")
    return a, b


def _compute_influence(group: Group, placed: Floats, value: float) -> Floats:
    """By how much each user of one side moves the AUC [population]; their squares add up to its variance."""
    users = group.user_count
    deviation = group.per_user(placed) - value * group.sizes
    return np.asarray(np.sqrt(users / (users - 1)) * deviation / len(group))


def _compute_auc_interval(
    value: float, a: Group, b: Group, influences: tuple[Floats, Floats], confidence: float
) -> Interval:
    """Welch's interval of an AUC on the logit scale, from each user's influence through either side."""
    tail = (1 - confidence) / 2
    empirical_variance = float(np.square(sum(influences)).sum())
    if empirical_variance == 0:
        return _compute_interval_without_variance(value, min(a.user_count, b.user_count), confidence)
    bernoulli_variance = value * (1 - value)
    variances = [
        np.square(i).sum() + bernoulli_variance / g.user_count**2 for i, g in zip(influences, (a, b), strict=True)
    ]
    degrees_of_freedom = sum(variances) ** 2 / sum(
        each_variance**2 / (g.user_count - 1) for each_variance, g in zip(variances, (a, b), strict=True)
    )
    variance = empirical_variance + bernoulli_variance / a.user_count**2 + bernoulli_variance / b.user_count**2
    half = student_quantile(tail, degrees_of_freedom) * variance**0.5 / bernoulli_variance
    low, high = scipy.special.expit(scipy.special.logit(value) + np.array([-half, half]))
    # a few pairs out of order among many records: the logit scale runs away, and whole users say more
    pairs = min(_count_effective_users(a), _count_effective_users(b))
    lowest = 1 - upper_limit((1 - value) * pairs, pairs, tail=tail)
    highest = upper_limit(value * pairs, pairs, tail=tail)
    return Interval(max(float(low), lowest), min(float(high), highest), confidence)


def _count_effective_users(group: Group) -> float:
    """How many users of equal size the users of a side of an AUC are worth (Kish)."""
    return float(group.sizes.sum() ** 2 / np.square(group.sizes).sum())


def _compute_interval_without_variance(value: float, pairs: int, confidence: float) -> Interval:
    """The interval of an AUC when every user agrees: could a pair of users have differed, and not been seen to?"""
    unseen = upper_limit(0, pairs, tail=(1 - confidence) / 2)
    return Interval(value * (1 - unseen), value + (1 - value) * unseen, confidence)
