"""Is it more than chance? What the model gives away of its users, beside what is given away where nothing was seen."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from recollect.audits.leakage.measuring import Leak, by_user
from recollect.stats.comparisons import mann_whitney
from recollect.stats.intervals import Estimate, mean, weighted_sum
from recollect.stats.significance import benjamini_hochberg, conformal_p
from recollect.stats.support import controls_for_p, require

Floats = NDArray[np.float64]
TOGETHER = 0.1
"""The share of alpha that is spent on all users together; the rest is spent on flags."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Compared:
    """Users whom the model may have seen, and users, or models, of whom it is known that they were not seen.

    One number stands for each user: the most that is given away of them in one sequence that nobody else wrote. A user
    of whom nothing is given away has 0.
    """

    tested: Mapping[int, Leak]
    null: Mapping[int, Leak]
    users: tuple[str, ...]
    null_users: tuple[str, ...]
    same_users: bool
    """Whether both are the same people, before another model."""
    in_nats: bool
    """Whether sequences are compared by nats; else by words."""

    @cached_property
    def values(self) -> Floats:
        """Of the audited users, in the order of `users`."""
        most = by_user(self.tested, in_nats=self.in_nats)
        return np.array([most.get(user, 0.0) for user in self.users])

    @cached_property
    def null_values(self) -> Floats:
        """Of those who were not seen, in the order of `null_users`."""
        most = by_user(self.null, in_nats=self.in_nats)
        return np.array([most.get(user, 0.0) for user in self.null_users])

    def refuse_too_few(self, alpha: float) -> None:
        """Refuse to compare with so few that nobody could ever be flagged.

        Raises:
            NotEnoughData: Says how many it takes.
        """
        require(len(self.users), 2, of="audited users", purpose="A comparison of users")
        needed = controls_for_p(alpha * (1 - TOGETHER))
        require(len(self.null_users), needed, of="users who were not seen (--controls)", purpose="A calibrated test")

    def together(self) -> float:
        """The p-value of "no more is given away of the audited users than of those who were not seen"."""
        if np.ptp(np.concatenate([self.values, self.null_values])) == 0:
            return 1.0
        return mann_whitney(self.values, self.null_values).p

    def p_values(self) -> Floats:
        """For each user, how rarely as much is given away of somebody who was not seen; corrected over all users."""
        return benjamini_hochberg(conformal_p(self.values, self.null_values))

    def excess(self) -> Estimate:
        """How much more is given away of an audited user than of one who was not seen, on average."""
        if self.same_users:
            return mean(self.values - self.null_values, of="differences")
        n = {"users": len(self.users), "controls": len(self.null_users)}
        return weighted_sum([(1, mean(self.values)), (-1, mean(self.null_values))], n=n)
