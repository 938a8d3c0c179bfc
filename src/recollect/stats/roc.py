"""ROC curves, true positive rates at a false positive rate, thresholds: by sorting, ties against the attacker."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import scipy

from recollect.checks import check_between
from recollect.stats.groups import Codes, Floats, Group, ValuesLike, count_groups, make_groups
from recollect.stats.intervals import Estimate, Interval, effective_size, lower_limit, upper_limit
from recollect.stats.requirements import count_share, require_count, required_non_members


@dataclass(frozen=True, eq=False)
class Roc:
    """One point per distinct score, from nobody flagged to everybody flagged; flagged are scores ≥ threshold."""

    threshold: Floats
    """Falling; the first is infinite."""
    fpr: Floats
    """The share of non-members flagged; rising from 0 to 1."""
    tpr: Floats
    """The share of members flagged; rising from 0 to 1."""

    def tpr_at(self, fpr: Floats) -> Floats:
        """The true positive rate at these false positive rates: the best point that does not exceed each."""
        return self.tpr[self._indices_at(fpr)]

    def thin(self, points: int, *, rates: Sequence[float] = ()) -> Roc:
        """The curve by about so many points: all of them if they are no more, else as many as any axis can show.

        They are spread evenly over either rate and over the logarithm of the false positive rate; both ends are kept.

        Args:
            points: How many points, at least 3.
            rates: False positive rates at which the thinned curve must read as this one does.

        >>> curve = roc_curve(np.arange(1000) % 7, np.arange(1000) % 5)
        >>> len(curve.fpr), len(curve.thin(6).fpr), bool(curve.thin(6, rates=[0.5]).tpr_at(0.5) == curve.tpr_at(0.5))
        (8, 4, True)
        """
        if len(self.fpr) <= points:
            return self
        each = points // 3
        lowest = max(float(self.fpr[self.fpr > 0].min()), 1e-9)
        across = np.concatenate([np.linspace(0, 1, each), np.geomspace(lowest, 1, each), rates])
        up = np.searchsorted(self.tpr, np.linspace(0, 1, each), side="left").clip(0, len(self.tpr) - 1)
        kept = np.unique(np.concatenate([[0], self._indices_at(across), up, [len(self.fpr) - 1]]).astype(np.int64))
        return Roc(self.threshold[kept], self.fpr[kept], self.tpr[kept])

    def _indices_at(self, fpr: Floats) -> Codes:
        """The last point that does not exceed each of these false positive rates."""
        return np.searchsorted(self.fpr, np.asarray(fpr) + 1e-12, side="right") - 1


def roc_curve(members: ValuesLike, non_members: ValuesLike) -> Roc:
    """The curve of true against false positive rates over all thresholds.

    Equal scores are flagged together, so that a constant score has two points only: nobody and everybody.

    >>> curve = roc_curve([0.9, 0.8, 0.4], [0.5, 0.4])
    >>> curve.fpr.tolist(), curve.tpr.round(2).tolist()
    ([0.0, 0.0, 0.0, 0.5, 1.0], [0.0, 0.33, 0.67, 0.67, 1.0])
    """
    a, b = _require_both_groups(members, non_members, purpose="An ROC curve")
    values = np.concatenate([a.values, b.values])
    order = np.argsort(-values)
    descending, flagged_members = values[order], np.cumsum(order < len(a))
    last = np.append(np.flatnonzero(descending[1:] != descending[:-1]), len(descending) - 1)
    return Roc(
        threshold=np.append(np.inf, descending[last]),
        fpr=np.append(0, last + 1 - flagged_members[last]) / len(b),
        tpr=np.append(0, flagged_members[last]) / len(a),
    )


def threshold_at(non_members: Floats, fpr: float) -> float:
    """The threshold on the ROC curve above which at most a share `fpr` of these non-members is flagged.

    >>> threshold_at(np.array([1.0, 2.0, 3.0, 4.0]), 0.25)
    3.0
    """
    allowed = count_share(fpr, len(non_members))
    return -np.inf if allowed >= len(non_members) else float(np.partition(non_members, -1 - allowed)[-1 - allowed])


def tpr_at_fpr(members: ValuesLike, non_members: ValuesLike, *, fpr: float, confidence: float = 0.95) -> Estimate:
    """The point of the ROC curve at `fpr`: the share of members found; a constant score finds nobody.

    The interval is for the true curve's value at `fpr`, and pays for the threshold having been read off these
    non-members: exact limits of the threshold (order statistics) and exact limits of the share of members beyond them
    (Clopper–Pearson), a quarter of the error allowed to each. It holds for every distribution of scores; with few
    non-members it is wide, and reaches 0 below about 4 / fpr of them. Where users have several records both counts are
    effective ones (Korn–Graubard), which is no longer exact. A
    bootstrap would be narrower, but missed up to four times as often as it claimed in the same simulations.

    >>> estimate = tpr_at_fpr([5, 6, 7, 8, 0], np.arange(0, 5, 0.05), fpr=0.1)
    >>> estimate.value
    0.8

    Args:
        members: Scores of members; higher is more evidence of training.
        non_members: Scores of non-members, from whom the threshold comes.
        fpr: The false positive rate, between 0 and 1.
        confidence: How often such intervals cover the true rate.
    """
    check_between(0, 1, fpr=fpr, confidence=confidence)
    least = required_non_members(fpr)
    a, b = _require_both_groups(members, non_members, purpose=f"TPR at {fpr:.3g} FPR", non_members_needed=least)
    _refuse_one_user(a, b, purpose=f"TPR at {fpr:.3g} FPR")
    threshold = threshold_at(b.values, fpr)
    high, low = _compute_threshold_limits(b, threshold, fpr, confidence)
    return Estimate(
        value=float((a.values > threshold).mean()),
        interval=Interval(
            _compute_tpr_limit(a, high, confidence, lower=True),
            _compute_tpr_limit(a, low, confidence, lower=False),
            confidence,
        ),
        n=count_groups(a, b),
        method="threshold from non-members; order statistics and Clopper–Pearson"
        + (", effective counts (Korn–Graubard)" if a.is_clustered or b.is_clustered else ", exact")
        + ("" if np.isfinite(high) else _explain_open_tpr(len(b), fpr, confidence)),
    )


def _explain_open_tpr(non_members: int, fpr: float, confidence: float) -> str:
    """Why the interval of the ROC curve's true positive rate reaches down to 0, and how many non-members would do."""
    needed = math.ceil(math.log((1 - confidence) / 4) / math.log1p(-fpr))
    return f"; the interval reaches 0 because {non_members:,} non-members do not fix the threshold: {needed:,} would"


def best_threshold(members: ValuesLike, non_members: ValuesLike) -> tuple[float, float]:
    """The threshold on the ROC curve of the highest balanced accuracy, and that accuracy; of equals the largest.

    Found by sorting. A threshold chosen on data must be judged on other data.

    >>> best_threshold([0.9, 0.8, 0.4], [0.5, 0.3, 0.1])
    (0.8, 0.833...)
    """
    a, b = _require_both_groups(members, non_members, purpose="A threshold")
    curve = roc_curve(a, b)
    # In whole numbers, so that equals are equal.
    found, flagged = np.rint(curve.tpr[1:] * len(a)), np.rint(curve.fpr[1:] * len(b))
    best = 1 + int(np.argmax(found * len(b) - flagged * len(a)))
    return float(curve.threshold[best]), float(curve.tpr[best] + 1 - curve.fpr[best]) / 2


def _require_both_groups(
    members: ValuesLike, non_members: ValuesLike, *, purpose: str, non_members_needed: int = 1
) -> tuple[Group, Group]:
    """Both sides of an ROC curve, neither of them empty."""
    a, b = make_groups(members, non_members)
    require_count(len(a), 1, of="members", purpose=purpose, code="too_few_members")
    require_count(len(b), non_members_needed, of="non-members", purpose=purpose, code="too_few_non_members")
    return a, b


def _refuse_one_user(members: Group, non_members: Group, *, purpose: str) -> None:
    """Refuse a point of the ROC curve where all records of a side are one user's: they show no scatter."""
    for group, name, code in (
        (members, "members", "too_few_members"),
        (non_members, "non-members", "too_few_non_members"),
    ):
        if group.is_clustered:
            require_count(group.user_count, 2, of=f"users among the {name}", purpose=purpose, code=code)


def _compute_threshold_limits(
    non_members: Group, threshold: float, fpr: float, confidence: float
) -> tuple[float, float]:
    """Between which scores the true threshold of the ROC curve is: the higher and the lower limit."""
    tail, n = (1 - confidence) / 4, len(non_members)
    size = effective_size(non_members, non_members.values > threshold, confidence=confidence)
    trials = max(1, int(size))
    most = np.floor(scipy.stats.binom.ppf(tail, trials, fpr) * n / trials)
    least = np.ceil((scipy.stats.binom.isf(tail, trials, fpr) + 1) * n / trials)
    descending = np.sort(non_members.values)[::-1]
    return (
        float(descending[int(most) - 1]) if most >= 1 else np.inf,
        float(descending[int(least) - 1]) if least <= n else -np.inf,
    )


def _compute_tpr_limit(members: Group, threshold: float, confidence: float, *, lower: bool) -> float:
    """The lower or upper limit of a true positive rate on the ROC curve."""
    tail, hits = (1 - confidence) / 4, members.values > threshold
    size = effective_size(members, hits, confidence=confidence)
    return (lower_limit if lower else upper_limit)(float(hits.mean()) * size, size, tail=tail)
