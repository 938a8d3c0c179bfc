"""From leaks to decisions: whether more leaks of the audited users than of users whom the model has not seen."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from recollect.audits.leakage.epsilon import Leak, score_users
from recollect.errors import NotEnoughData
from recollect.stats.comparisons import mann_whitney
from recollect.stats.intervals import Estimate, Interval, mean, weighted_sum
from recollect.stats.requirements import require_count, required_controls
from recollect.stats.significance import benjamini_hochberg, conformal_p

Floats = NDArray[np.float64]
TINY = 1e-12
JOINT_SHARE = 0.1
"""The share of alpha that is spent on the test of all users together; the rest is spent on flags."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Comparison:
    """Users whom the model may have seen, and users, or models, of which it is known that they were not seen.

    The score of a user is the most that leaks of them in one sequence that nobody else wrote; 0 if nothing does.
    """

    leaks: Mapping[int, Leak]
    null_leaks: Mapping[int, Leak]
    users: tuple[str, ...]
    null_users: tuple[str, ...]
    fold_of: Mapping[str, int] | None = None
    """By user, which of several models that have not seen them replaces the target; None where one model does."""
    in_nats: bool
    """Whether sequences are compared by nats; else by words."""

    @cached_property
    def scores(self) -> Floats:
        """Of the audited users, in the order of `users`."""
        most = score_users(self.leaks, in_nats=self.in_nats)
        return np.array([most.get(user, 0.0) for user in self.users])

    @cached_property
    def null_scores(self) -> Floats:
        """Of those who were not seen, in the order of `null_users`."""
        most = score_users(self.null_leaks, in_nats=self.in_nats)
        return np.array([most.get(user, 0.0) for user in self.null_users])

    @property
    def same_users(self) -> bool:
        """Whether both are the same people, scored by different models."""
        return self.users == self.null_users

    def refuse_too_few(self, alpha: float) -> None:
        """Refuse to compare with so few that nobody could ever be flagged.

        Raises:
            NotEnoughData: Says how many it takes.
        """
        require_count(len(self.users), 2, of="audited users", purpose="A comparison of users", code="too_few_users")
        of = "users who were not seen (--controls)"
        require_count(
            len(self.null_users), count_needed(alpha), of=of, purpose="A calibrated test", code="too_few_controls"
        )

    @property
    def joint_method(self) -> str:
        """How all users together are tested."""
        return "Mann–Whitney over users" if self._fold_means is None else "Student's t over the models of the folds"

    def compute_joint_p(self) -> float:
        """The p-value of "no more leaks of the audited users than of those who were not seen"."""
        if np.ptp(np.concatenate([self.scores, self.null_scores])) == 0:
            return 1.0
        if (folds := self._fold_means) is None:
            return mann_whitney(self.scores, self.null_scores).p
        return float(stats.t.sf(folds.mean() / max(_compute_prediction_error(folds), TINY), len(folds) - 1))

    def compute_p_values(self) -> Floats:
        """For each user, how rarely as much leaks of somebody who was not seen; corrected over all users."""
        return benjamini_hochberg(conformal_p(self.scores, self.null_scores))

    def estimate_excess(self) -> Estimate:
        """How much more leaks of an audited user than of one who was not seen, on average."""
        if (folds := self._fold_means) is not None:
            return _predict_one_more(folds, users=len(self.users))
        if self.same_users:
            return mean(self.scores - self.null_scores, of="differences")
        n = {"users": len(self.users), "controls": len(self.null_users)}
        return weighted_sum([(1, mean(self.scores)), (-1, mean(self.null_scores))], n=n)

    @cached_property
    def _fold_means(self) -> Floats | None:
        """By how much the target is above each of several models that have not seen a fold; None if there is one."""
        if self.fold_of is None or not self.same_users:
            return None
        fold = np.array([self.fold_of[user] for user in self.users])
        used = np.bincount(fold)
        means = np.bincount(fold, weights=self.scores - self.null_scores)[used > 0] / used[used > 0]
        return means if len(means) > 1 else None


@dataclass(frozen=True, kw_only=True, eq=False)
class Decisions:
    """What a comparison amounts to."""

    comparison: Comparison
    p_corrected: Floats
    """Of each audited user, in the order of `Comparison.users`; 1 where nothing was compared."""
    joint_p: float
    """Of all users together; 1 where nothing was compared."""
    alpha: float
    refusal: NotEnoughData | None = None
    """Why nothing was compared; None if it was."""

    @property
    def level(self) -> float:
        """Up to which corrected p-value a user is flagged."""
        return self.alpha * (1 - JOINT_SHARE)

    @property
    def flags(self) -> NDArray[np.bool_]:
        """Which users are flagged, in the order of `Comparison.users`."""
        return np.asarray(self.p_corrected <= self.level)

    @property
    def flagged(self) -> frozenset[str]:
        """The users who are flagged."""
        return frozenset(user for user, flag in zip(self.comparison.users, self.flags, strict=True) if flag)

    @property
    def found(self) -> bool:
        """Whether more leaks of the audited users than of those who were not seen."""
        return self.refusal is None and (self.joint_p <= self.alpha * JOINT_SHARE or bool(self.flags.any()))


def decide(comparison: Comparison, *, alpha: float) -> Decisions:
    """Test all audited users together and each of them, where there are enough users to compare with.

    Args:
        comparison: The users.
        alpha: The significance level of all tests together.
    """
    try:
        comparison.refuse_too_few(alpha)
    except NotEnoughData as refusal:
        untested = np.ones(len(comparison.users))
        return Decisions(comparison=comparison, p_corrected=untested, joint_p=1.0, alpha=alpha, refusal=refusal)
    return Decisions(
        comparison=comparison,
        p_corrected=comparison.compute_p_values(),
        joint_p=comparison.compute_joint_p(),
        alpha=alpha,
    )


def count_needed(alpha: float) -> int:
    """How many users who were not seen it takes so that anybody can be flagged."""
    return required_controls(alpha * (1 - JOINT_SHARE))


def _compute_prediction_error(folds: Floats) -> float:
    """How far a model that has seen nobody may be above the mean of several others under the null hypothesis.

    The target is one training, and trainings differ: what one of them leaks of all users together varies as the models
    of the folds do. Users of a fold vary too, so this is rather too large than too small.
    """
    return float(folds.std(ddof=1) * np.sqrt(1 + 1 / len(folds)))


def _predict_one_more(folds: Floats, *, users: int, confidence: float = 0.95) -> Estimate:
    """The mean of the folds, with an interval for one more model beside so many."""
    half = float(stats.t.ppf((1 + confidence) / 2, len(folds) - 1)) * _compute_prediction_error(folds)
    middle = float(folds.mean())
    return Estimate(
        value=middle,
        interval=Interval(middle - half, middle + half, confidence),
        n={"users": users, "models": len(folds)},
        method="Student's t: one more model beside those of the folds",
    )
