"""From a comparison to decisions: whether more leaks from the audited users, from whom, and at which level."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import scipy
from numpy.typing import NDArray

from recollect.audits.leakage.comparison import Comparison
from recollect.errors import NotEnoughData
from recollect.stats.requirements import ROUNDING_SLACK, require_count, required_controls

Floats = NDArray[np.float64]
JOINT_SHARE = 0.1
"""The share of alpha that is spent on the test of all users together, at least; the rest is for flags."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Decisions:
    """The decisions that follow from a comparison."""

    comparison: Comparison
    p_corrected: Floats
    """Of each audited user, in the order of `Comparison.users`; 1 where nothing was compared."""
    joint_p: float
    """Of all users together; 1 where nothing was compared."""
    alpha: float
    refusal: NotEnoughData | None = None
    """Why nothing was compared; None if it was."""

    @property
    def joint_level(self) -> float:
        """The decision about leakage: up to which p-value more is found to leak from all users together."""
        comparison = self.comparison
        if comparison.matching is None or len(comparison.strata) != 1 or len(comparison.strata[0].scores) > 1:
            return self.alpha * JOINT_SHARE
        (stratum,) = comparison.strata
        return self.alpha - bound_false_flags(len(stratum.users), stratum.controls, self.alpha * (1 - JOINT_SHARE))

    @property
    def found_jointly(self) -> bool:
        """Whether more leaks from all audited users together."""
        return self.refusal is None and self.joint_p <= self.joint_level

    @property
    def level(self) -> float:
        """The decision about leakage: up to which corrected p-value a user is flagged."""
        return self.alpha * (1 - JOINT_SHARE * (not self.found_jointly))

    @property
    def flags(self) -> NDArray[np.bool_]:
        """Which users are flagged for leakage, in the order of `Comparison.users`."""
        return np.asarray(self.p_corrected <= self.level)

    @property
    def flagged(self) -> frozenset[str]:
        """The users who are flagged for leakage."""
        return frozenset(user for user, flag in zip(self.comparison.users, self.flags, strict=True) if flag)

    @property
    def found(self) -> bool:
        """Whether more leaks from the audited users than under the null hypothesis."""
        return self.found_jointly or (self.refusal is None and bool(self.flags.any()))


@lru_cache(maxsize=1024)
def bound_false_flags(users: int, controls: int, level: float) -> float:
    """How likely a decision flags anybody at this level if users and controls are exchangeable; at most the level.

    Benjamini–Hochberg flags somebody if, for some j, at least k_j users are above the j-th highest control: k_j is the
    smallest number of users of whom p = j / (controls + 1) is enough. The probabilities are added over j. With few
    controls it is nearly 0, and the test of all users together may have what flags cannot use.

    >>> round(bound_false_flags(40, 160, 0.045), 4), bound_false_flags(20, 1000, 0.045)
    (0.0, 0.045)
    """
    rank = np.arange(1, int(level * (controls + 1) + ROUNDING_SLACK) + 1)
    together = np.ceil(rank * users / (level * (controls + 1)) - ROUNDING_SLACK)
    probability = np.asarray(scipy.stats.hypergeom.cdf(rank - 1, users + controls, controls, together + rank - 1))
    return float(min(level, probability.sum()))


def decide(comparison: Comparison, *, alpha: float) -> Decisions:
    """Decide about leakage from all audited users together and from each, where enough users are compared.

    Args:
        comparison: The users.
        alpha: The significance level of all tests together.
    """
    try:
        refuse_too_few_null_users(comparison, alpha)
    except NotEnoughData as refusal:
        untested = np.ones(len(comparison.users))
        return Decisions(comparison=comparison, p_corrected=untested, joint_p=1.0, alpha=alpha, refusal=refusal)
    return Decisions(
        comparison=comparison,
        p_corrected=comparison.correct(comparison.compute_p_values()),
        joint_p=comparison.compute_joint_p(),
        alpha=alpha,
    )


def refuse_too_few_null_users(comparison: Comparison, alpha: float) -> None:
    """Refuse to decide by a null distribution that is too small for any user to be flagged.

    Raises:
        NotEnoughData: There are too few; it names the number needed.
    """
    users, null = len(comparison.users), len(comparison.null_users)
    require_count(users, 2, of="audited users", purpose="A comparison of users", code="too_few_users")
    of = "held-out users (--controls)"
    require_count(null, count_needed_null_users(alpha), of=of, purpose="A calibrated test", code="too_few_controls")
    if comparison.matching is not None:
        own = "with a text that nobody else has"
        users, null = (len(side.with_records) for side in (comparison.audited, comparison.null))
        require_count(users, 2, of=f"audited users {own}", purpose="A comparison of users", code="too_few_users")
        needed = count_needed_null_users(alpha)
        require_count(null, needed, of=f"{of} {own}", purpose="A calibrated test", code="too_few_controls")
        timed = bool(comparison.matching.cutter.timed.any())
        users, most = int(comparison.compared.sum()), max((each.controls for each in comparison.strata), default=0)
        of = "held-out users (--controls) with as many words and records as an audited user"
        of += ", of the same period" if timed else ""
        found = most if users >= 2 else 0
        code = "not_comparable" if timed else "too_few_controls"
        require_count(found, needed, of=of, purpose="A calibrated test", code=code)


def count_needed_null_users(alpha: float) -> int:
    """How many users of the null distribution a decision on leakage needs so that any user can be flagged."""
    return required_controls(alpha * (1 - JOINT_SHARE))
