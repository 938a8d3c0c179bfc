"""Statistics that hold what they claim. NumPy and SciPy only.

Higher scores always mean more evidence of training. Every function takes plain numbers, or numbers with owners
(`Owned`, `Scores`): then users, not records, are what is counted and resampled.
"""

from recollect.stats.auc import auc, placements
from recollect.stats.bootstrap import bootstrap
from recollect.stats.comparisons import Comparison, kolmogorov_smirnov, mann_whitney, permutation
from recollect.stats.decisions import accuracy, balanced_accuracy, false_positive_rate, precision, recall
from recollect.stats.epsilon import (
    epsilon_from_counts,
    epsilon_from_one_run,
    epsilon_from_scores,
    one_run_epsilon,
    one_run_p,
)
from recollect.stats.intervals import Estimate, Interval, clopper_pearson, mean, proportion, weighted_sum
from recollect.stats.owners import HasOwners, Numbers, Owned
from recollect.stats.roc import Roc, best_threshold, roc_curve, threshold_at, tpr_at_fpr
from recollect.stats.significance import (
    Alternative,
    benjamini_hochberg,
    binomial_p,
    bonferroni,
    conformal_p,
    holm,
    too_small_p,
)
from recollect.stats.support import controls_for_p, others_for_fpr, require

__all__ = [
    "Alternative",
    "Comparison",
    "Estimate",
    "HasOwners",
    "Interval",
    "Numbers",
    "Owned",
    "Roc",
    "accuracy",
    "auc",
    "balanced_accuracy",
    "benjamini_hochberg",
    "best_threshold",
    "binomial_p",
    "bonferroni",
    "bootstrap",
    "clopper_pearson",
    "conformal_p",
    "controls_for_p",
    "epsilon_from_counts",
    "epsilon_from_one_run",
    "epsilon_from_scores",
    "false_positive_rate",
    "holm",
    "kolmogorov_smirnov",
    "mann_whitney",
    "mean",
    "one_run_epsilon",
    "one_run_p",
    "others_for_fpr",
    "permutation",
    "placements",
    "precision",
    "proportion",
    "recall",
    "require",
    "roc_curve",
    "threshold_at",
    "too_small_p",
    "tpr_at_fpr",
    "weighted_sum",
]
