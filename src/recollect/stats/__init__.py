"""Statistics that hold what they claim. NumPy and SciPy only.

Higher scores always mean more evidence of training. Every function takes plain numbers, or numbers with owners
(`OwnedValues`, `Scores`): then users, not records, are what is counted and resampled.
"""

from recollect.stats.auc import auc, placements
from recollect.stats.bootstrap import bootstrap
from recollect.stats.bounded_means import bounded_mean, exponential_mean
from recollect.stats.classification_rates import accuracy, balanced_accuracy, false_positive_rate, precision, recall
from recollect.stats.epsilon import (
    epsilon_from_counts,
    epsilon_from_guesses,
    epsilon_from_one_run,
    epsilon_from_rates,
    epsilon_from_scores,
    one_run_p,
)
from recollect.stats.groups import HasOwners, OwnedValues, ValuesLike
from recollect.stats.intervals import Estimate, Interval, clopper_pearson, mean, proportion, weighted_sum
from recollect.stats.requirements import require_count, required_controls, required_non_members
from recollect.stats.roc import Roc, best_threshold, roc_curve, threshold_at, tpr_at_fpr
from recollect.stats.significance import (
    Alternative,
    benjamini_hochberg,
    binomial_p,
    bonferroni,
    conformal_p,
    holm,
    superuniformity_p,
)
from recollect.stats.two_sample_tests import Comparison, kolmogorov_smirnov, mann_whitney, permutation

__all__ = [
    "Alternative",
    "Comparison",
    "Estimate",
    "HasOwners",
    "Interval",
    "OwnedValues",
    "Roc",
    "ValuesLike",
    "accuracy",
    "auc",
    "balanced_accuracy",
    "benjamini_hochberg",
    "best_threshold",
    "binomial_p",
    "bonferroni",
    "bootstrap",
    "bounded_mean",
    "clopper_pearson",
    "conformal_p",
    "epsilon_from_counts",
    "epsilon_from_guesses",
    "epsilon_from_one_run",
    "epsilon_from_rates",
    "epsilon_from_scores",
    "exponential_mean",
    "false_positive_rate",
    "holm",
    "kolmogorov_smirnov",
    "mann_whitney",
    "mean",
    "one_run_p",
    "permutation",
    "placements",
    "precision",
    "proportion",
    "recall",
    "require_count",
    "required_controls",
    "required_non_members",
    "roc_curve",
    "superuniformity_p",
    "threshold_at",
    "tpr_at_fpr",
    "weighted_sum",
]
