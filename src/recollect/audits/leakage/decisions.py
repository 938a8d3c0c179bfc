"""From leaks to decisions: whether more leaks from the audited users than under the null hypothesis."""

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
    """The audited users, and the null distribution: held-out users, or the same users under models not trained on them.

    The score of a user is the largest leak in one sequence that no other user wrote; 0 if there is none.
    """

    leaks: Mapping[int, Leak]
    null_leaks: Mapping[int, Leak]
    users: tuple[str, ...]
    null_users: tuple[str, ...]
    fold_of: Mapping[str, int] | None = None
    """By user, which of several models not trained on them replaces the target; None where one model does."""
    in_nats: bool
    """Whether sequences are compared by nats; else by words."""

    @cached_property
    def scores(self) -> Floats:
        """Of the audited users, in the order of `users`."""
        most = score_users(self.leaks, in_nats=self.in_nats)
        return np.array([most.get(user, 0.0) for user in self.users])

    @cached_property
    def null_scores(self) -> Floats:
        """Of the null distribution, in the order of `null_users`."""
        most = score_users(self.null_leaks, in_nats=self.in_nats)
        return np.array([most.get(user, 0.0) for user in self.null_users])

    @property
    def same_users(self) -> bool:
        """Whether both are the same people, scored by different models."""
        return self.users == self.null_users

    def refuse_too_few(self, alpha: float) -> None:
        """Refuse a null distribution that is too small for any user to be flagged.

        Raises:
            NotEnoughData: There are too few; it names the number needed.
        """
        require_count(len(self.users), 2, of="audited users", purpose="A comparison of users", code="too_few_users")
        of = "held-out users (--controls)"
        require_count(
            len(self.null_users), count_needed(alpha), of=of, purpose="A calibrated test", code="too_few_controls"
        )

    @property
    def joint_method(self) -> str:
        """How all users together are tested."""
        return "Mann–Whitney over users" if self._fold_means is None else "Student's t over the models of the folds"

    def compute_joint_p(self) -> float:
        """The p-value of "no more leaks from the audited users than under the null hypothesis"."""
        if np.ptp(np.concatenate([self.scores, self.null_scores])) == 0:
            return 1.0
        if (folds := self._fold_means) is None:
            return mann_whitney(self.scores, self.null_scores).p
        return float(stats.t.sf(folds.mean() / max(_compute_prediction_error(folds), TINY), len(folds) - 1))

    def compute_p_values(self) -> Floats:
        """Each user's p-value against the null distribution, corrected over all users."""
        return benjamini_hochberg(conformal_p(self.scores, self.null_scores))

    def estimate_excess(self) -> Estimate:
        """How much more leaks from an audited user than from a null user, on average."""
        if (folds := self._fold_means) is not None:
            return _predict_one_more(folds, users=len(self.users))
        if self.same_users:
            return mean(self.scores - self.null_scores, of="differences")
        n = {"users": len(self.users), "controls": len(self.null_users)}
        return weighted_sum([(1, mean(self.scores)), (-1, mean(self.null_scores))], n=n)

    @cached_property
    def _fold_means(self) -> Floats | None:
        """By how much the target exceeds each of several models not trained on a fold; None if there is one."""
        if self.fold_of is None or not self.same_users:
            return None
        fold = np.array([self.fold_of[user] for user in self.users])
        used = np.bincount(fold)
        means = np.bincount(fold, weights=self.scores - self.null_scores)[used > 0] / used[used > 0]
        return means if len(means) > 1 else None


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
        """Whether more leaks from the audited users than under the null hypothesis."""
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
    """How many null users are needed for any user to be flagged."""
    return required_controls(alpha * (1 - JOINT_SHARE))


def _compute_prediction_error(folds: Floats) -> float:
    """How far a model trained on none of the users may exceed the mean of several others under the null hypothesis.

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
