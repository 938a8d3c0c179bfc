"""Is it more than chance? What the model gives away of its users, beside what is given away where nothing was seen."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from recollect.audits.leakage.measuring import Leak, by_user
from recollect.stats.comparisons import mann_whitney
from recollect.stats.intervals import Estimate, Interval, mean, weighted_sum
from recollect.stats.significance import benjamini_hochberg, conformal_p
from recollect.stats.support import controls_for_p, require

Floats = NDArray[np.float64]
TINY = 1e-12
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
    fold: Mapping[str, int] | None = None
    """By user, which of several models that have not seen them plays the target; None where one model plays it."""
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

    @property
    def same_users(self) -> bool:
        """Whether both are the same people, before another model."""
        return self.users == self.null_users

    def refuse_too_few(self, alpha: float) -> None:
        """Refuse to compare with so few that nobody could ever be flagged.

        Raises:
            NotEnoughData: Says how many it takes.
        """
        require(len(self.users), 2, of="audited users", purpose="A comparison of users", code="too_few_users")
        of = "users who were not seen (--controls)"
        require(len(self.null_users), needed(alpha), of=of, purpose="A calibrated test", code="too_few_controls")

    def together(self) -> float:
        """The p-value of "no more is given away of the audited users than of those who were not seen"."""
        if np.ptp(np.concatenate([self.values, self.null_values])) == 0:
            return 1.0
        if (folds := self._fold_means) is None:
            return mann_whitney(self.values, self.null_values).p
        return float(stats.t.sf(folds.mean() / max(_scatter(folds), TINY), len(folds) - 1))

    def p_values(self) -> Floats:
        """For each user, how rarely as much is given away of somebody who was not seen; corrected over all users."""
        return benjamini_hochberg(conformal_p(self.values, self.null_values))

    def excess(self) -> Estimate:
        """How much more is given away of an audited user than of one who was not seen, on average."""
        if (folds := self._fold_means) is not None:
            return _among_models(folds, users=len(self.users))
        if self.same_users:
            return mean(self.values - self.null_values, of="differences")
        n = {"users": len(self.users), "controls": len(self.null_users)}
        return weighted_sum([(1, mean(self.values)), (-1, mean(self.null_values))], n=n)

    @cached_property
    def _fold_means(self) -> Floats | None:
        """By how much the target is above each of several models that have not seen a fold; None if there is one."""
        if self.fold is None or not self.same_users:
            return None
        fold = np.array([self.fold[user] for user in self.users])
        used = np.bincount(fold)
        means = np.bincount(fold, weights=self.values - self.null_values)[used > 0] / used[used > 0]
        return means if len(means) > 1 else None


def needed(alpha: float) -> int:
    """How many users who were not seen it takes so that anybody can be flagged."""
    return controls_for_p(alpha * (1 - TOGETHER))


def _scatter(folds: Floats) -> float:
    """How far a model that has seen nobody may be above the mean of several others by chance.

    The target is one training, and trainings differ: what one of them gives away of all users together scatters as the
    models of the folds do. Users of a fold scatter too, so this is rather too much than too little.
    """
    return float(folds.std(ddof=1) * np.sqrt(1 + 1 / len(folds)))


def _among_models(folds: Floats, *, users: int, confidence: float = 0.95) -> Estimate:
    """The mean of the folds, with an interval for one more model beside so many."""
    half = float(stats.t.ppf((1 + confidence) / 2, len(folds) - 1)) * _scatter(folds)
    middle = float(folds.mean())
    return Estimate(
        value=middle,
        interval=Interval(middle - half, middle + half, confidence),
        n={"users": users, "models": len(folds)},
        method="Student's t: one more model beside those of the folds",
    )
