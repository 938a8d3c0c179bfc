"""EMA: thresholds from one calibration model, a vote for every record, and a test of the votes against all ones.

Huang, Li & Li 2021, "EMA: Auditing Data Removal from Trained Models", Algorithms 1 and 2, with the misprints undone:
TNR counts what lies *below* the threshold, and the test is the two-sided two-sample t-test with equal variances, which
gives the p-values that are printed.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from recollect.settings import one_of
from recollect.stats.owners import Floats
from recollect.stats.roc import best_threshold
from recollect.stats.support import require

Test = Literal["t", "ks"]
Thresholds = Literal["global", "per-class"]
Labels = Sequence[str | int | None]
Votes = NDArray[np.bool_]

METRICS: Final = ("correctness", "confidence", "negative_entropy")
"""What is measured of every record; higher is more evidence of training."""


@dataclass(frozen=True, kw_only=True)
class Cuts:
    """The thresholds of one metric."""

    everyone: float
    """Of all records."""
    by_class: Mapping[str | int | None, float]
    """Of the records of one class, where they have their own."""

    def votes(self, values: Floats, labels: Labels) -> Votes:
        """Which records reach their threshold."""
        levels = np.array([self.by_class.get(label, self.everyone) for label in labels], dtype=np.float64)
        return np.asarray(values >= levels)


def cuts(members: Floats, others: Floats, labels: tuple[Labels, Labels], *, per: Thresholds) -> Cuts:
    """The thresholds of the highest balanced accuracy, found by sorting (Algorithm 2); of equals the largest.

    Args:
        members: A metric of the records that trained the calibration model, under that model.
        others: The same of the other half of the calibration set.
        labels: The true classes of both.
        per: Whether every class has its own threshold; classes that one half lacks share the global one.
    """
    one_of(("global", "per-class"), per=per)
    everyone, _ = best_threshold(members, others)
    by_class: dict[str | int | None, float] = {}
    if per == "per-class":
        for label in dict.fromkeys(labels[0]):
            mine = [np.array([each == label for each in side], dtype=np.bool_) for side in labels]
            if mine[1].any():
                by_class[label], _ = best_threshold(members[mine[0]], others[mine[1]])
    return Cuts(everyone=everyone, by_class=by_class)


def score(votes: Votes, *, test: Test = "t") -> float:
    """ρ_EMA: the p-value of "the votes come from where all votes are one"; small is removed (Algorithm 1).

    If all votes agree there is no variance to test with: ρ is 1 if all are one, and 0 if none is.

    >>> score(np.array([True] * 10)), score(np.array([False] * 10))
    (1.0, 0.0)
    >>> round(score(np.array([True] * 49 + [False])), 2)
    0.32
    """
    one_of(("t", "ks"), test=test)
    require(len(votes), 2, of="votes", purpose="EMA's test", code="too_few_votes")
    if votes.all():
        return 1.0
    if test == "t" and not votes.any():
        return 0.0
    with warnings.catch_warnings():
        # that one side has no variance is how the paper means it; that many ties have no exact p-value is how scipy is
        warnings.simplefilter("ignore", RuntimeWarning)
        numbers, ones = votes.astype(np.float64), np.ones(len(votes))
        found = stats.ks_2samp(numbers, ones) if test == "ks" else stats.ttest_ind(numbers, ones)
        return float(found.pvalue)
