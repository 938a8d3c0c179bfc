"""One total over another, such as nats per token, with intervals by user that hold for few users and unequal ones."""

from __future__ import annotations

import numpy as np
import scipy

from recollect.checks import check_at_least, check_between
from recollect.errors import NotEnoughData
from recollect.stats.groups import Floats
from recollect.stats.intervals import Interval, student_quantile
from recollect.stats.requirements import require_count

MIN_EFFECTIVE_USERS = 1.5
"""Where one user owns nearly everything, the others say nothing of how much users differ."""


def compute_ratio_interval(
    numerators: Floats, denominators: Floats, *, is_share: bool = False, confidence: float = 0.95
) -> Interval:
    """The interval of one total over another, when the users to whom both belong are what was drawn at random.

    The ratio without each user in turn (jackknife) shows how much users matter, on the scale of log-odds for shares and
    of logarithms otherwise, so that the limits stay in the possible range; Student's t has as many degrees of freedom
    as there are users of equal weight (Kish 1965), less one. Resampling users instead cannot leave the range of what
    they have: with two users it covers the true number half of the time.

    >>> interval = compute_ratio_interval(np.array([30.0, 50.0, 40.0]), np.array([10.0, 10.0, 10.0]))
    >>> round(interval.low, 2), round(interval.high, 2)
    (2.14, 7.48)

    Args:
        numerators: One number per user, none of them negative.
        denominators: One positive number per user.
        is_share: Whether each numerator counts some of what its denominator counts.
        confidence: How often such intervals cover the true ratio.

    Raises:
        NotEnoughData: There are fewer than two users, or they do not show how much users differ.
    """
    check_between(0, 1, confidence=confidence)
    check_at_least(0, smallest=float(denominators.min(initial=1)))
    users = len(numerators)
    require_count(users, 2, of="users", purpose="An interval by user", code="too_few_users")
    if np.ptp(numerators / denominators) == 0:
        raise NotEnoughData(
            f"All {users} users have the same value, so that no interval can be estimated.", code="constant_statistic"
        )
    effective = denominators.sum() ** 2 / np.square(denominators).sum()
    shift = _compute_jackknife_error(numerators, denominators, is_share=is_share) * student_quantile(
        (1 - confidence) / 2, effective - 1
    )
    centre = _transform(numerators.sum() / denominators.sum(), is_share=is_share)
    limits = scipy.special.expit if is_share else np.exp
    with np.errstate(over="ignore"):
        low, high = limits(centre + np.array([-shift, shift])).tolist()
    if effective < MIN_EFFECTIVE_USERS or not np.isfinite([shift, low, high]).all():
        raise NotEnoughData(
            f"One of {users} users decides the number nearly alone, so that no interval can be estimated.",
            do="Add users who have as much.",
            code="one_user_decides",
        )
    return Interval(low, high, confidence)


def _compute_jackknife_error(numerators: Floats, denominators: Floats, *, is_share: bool) -> float:
    """The standard error of a ratio, transformed, from how it changes when each user is left out."""
    users, whole, total = len(numerators), numerators.sum(), denominators.sum()
    without = _transform((whole - numerators) / (total - denominators), is_share=is_share)
    with np.errstate(invalid="ignore"):
        moves = without - _transform(whole / total, is_share=is_share)
    return float(((users - 1) / users * np.square(moves).sum()) ** 0.5)


def _transform(ratio: Floats, *, is_share: bool) -> Floats:
    """A ratio on the scale on which its errors are about as large in both directions; infinite at the ends."""
    with np.errstate(divide="ignore"):
        return np.asarray(scipy.special.logit(np.clip(ratio, 0, 1)) if is_share else np.log(np.maximum(ratio, 0)))
