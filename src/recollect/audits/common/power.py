"""What a design could have found at all: the smallest p-value, the smallest effect, and how much data would do."""

from __future__ import annotations

import math
from typing import Final

import numpy as np
import scipy

from recollect.audits.common.amounts import Floats
from recollect.stats.requirements import required_controls

USUAL_POWER: Final = 0.8
"""How often an effect is found that counts as detectable."""
_ROUNDING: Final = 1e-12
"""Slack: 1 / 20 comes out as a little more than 0.05."""


def smallest_conformal_p(controls: int, *, tests: int = 1, draws: int = 1) -> float:
    """The power of a conformal test: the smallest p-value of a unit that scores above all controls.

    >>> smallest_conformal_p(19), smallest_conformal_p(19, draws=21), smallest_conformal_p(99, tests=10)
    (0.05, 0.1, 0.1)

    Args:
        controls: How many control users there are.
        tests: By how many tests it is multiplied: Holm's correction. Benjamini–Hochberg's takes nothing if all units
            score above all controls.
        draws: How many cuts of the unit are combined: several cost a factor of two.
    """
    return min(1.0, tests * (2 if draws > 1 else 1) / (controls + 1))


def smallest_rank_p(above: int, below: int) -> float:
    """The power of a rank test: its smallest p-value, if every unit of one side scores above all of the other.

    >>> round(smallest_rank_p(3, 3), 3), smallest_rank_p(0, 5)
    (0.05, 1.0)
    """
    if not above or not below:
        return 1.0
    ways = (
        scipy.special.gammaln(above + below + 1) - scipy.special.gammaln(above + 1) - scipy.special.gammaln(below + 1)
    )
    return float(math.exp(-ways))


def smallest_tied_rank_p(above: Floats, below: Floats) -> float:
    """The power of a rank test of these very scores: its smallest p-value, if the highest of all were on one side.

    Ties cost power: where all scores are the same, no division of them is significant.

    >>> smallest_tied_rank_p(np.zeros(6), np.zeros(40)), round(smallest_tied_rank_p(np.arange(3.0), np.arange(3, 6)), 3)
    (1.0, 0.05)
    """
    if not len(above) or not len(below):
        return 1.0
    ordered = np.sort(np.concatenate([above, below]))[::-1]
    limit = ordered[len(above) - 1]
    ties, inside = np.count_nonzero(ordered == limit), len(above) - np.count_nonzero(ordered > limit)
    return min(1.0, float(scipy.special.binom(ties, inside) * smallest_rank_p(len(above), len(below))))


def count_needed_controls(above: int, *, alpha: float, tests: int = 1) -> int:
    """How many control users it takes for enough power that some scores of so many users are significant.

    >>> count_needed_controls(1, alpha=0.05), count_needed_controls(3, alpha=0.05)
    (19, 3)

    Args:
        above: Users of the one side.
        alpha: The significance level.
        tests: By how many tests the p-value of a single unit is multiplied.
    """
    single = required_controls(alpha, tests=tests)
    return next((m for m in range(1, single) if above > 1 and smallest_rank_p(above, m) <= alpha + _ROUNDING), single)


def minimum_detectable_auc(above: int, below: int, *, alpha: float, power: float = USUAL_POWER) -> float | None:
    """The AUC from which on a one-sided rank test has this power: finds the difference in so many runs; None if never.

    Noether 1987, with the variance of the null hypothesis, which is conservative for few users; that of a single unit
    is exact if scores are normal.

    >>> round(minimum_detectable_auc(40, 160, alpha=0.05), 3), minimum_detectable_auc(1, 10, alpha=0.05)
    (0.627, None)

    Args:
        above: Users of the one side.
        below: Users of the other.
        alpha: The significance level.
        power: How often it is to be found.
    """
    if smallest_rank_p(above, below) > alpha + _ROUNDING:
        return None
    if above == 1:
        return _find_single_auc(below, alpha=alpha, power=power)
    reach = float(scipy.special.ndtri(power) - scipy.special.ndtri(alpha))
    return min(1.0, 0.5 + reach * math.sqrt((above + below + 1) / (12 * above * below)))


def _find_single_auc(controls: int, *, alpha: float, power: float) -> float:
    """The AUC from which on the conformal test of one unit against so many controls has this power, by bisection."""
    allowed = math.floor(alpha * (controls + 1) + _ROUNDING) - 1  # so many controls may score as high
    score = np.linspace(-8, 8, 1601)  # of the unit, about its mean

    def compute_power(shift: float) -> float:
        tail = scipy.special.ndtr(-(score + shift))  # of a control, beyond the unit
        density = np.exp(-np.square(score) / 2)
        return float(density @ scipy.special.bdtr(allowed, controls, tail) / density.sum())

    low, high = 0.0, 12.0
    while high - low > 1e-6:
        middle = (low + high) / 2
        low, high = (middle, high) if compute_power(middle) < power else (low, middle)
    return float(scipy.special.ndtr(high / math.sqrt(2)))
