"""How good decisions are: recall, precision and accuracy of flags that were raised without looking at these records.

The flags must come from a threshold that was fixed elsewhere, such as conformal p-values against controls; for a
threshold chosen on the very records that are evaluated, `tpr_at_fpr` corrects.
"""

from __future__ import annotations

import numpy as np

from recollect.errors import NotEnoughData
from recollect.stats.groups import Group, ValuesLike, count_groups, make_group, make_groups
from recollect.stats.intervals import Estimate, estimate_proportion, weighted_sum
from recollect.stats.requirements import require_count


def recall(members_flagged: ValuesLike, *, confidence: float = 0.95) -> Estimate:
    """The rate of recall: the share of members that were flagged.

    >>> recall([True, True, False, True]).value
    0.75
    """
    return estimate_proportion(make_group(members_flagged, name="members"), of="members", confidence=confidence)


def false_positive_rate(non_members_flagged: ValuesLike, *, confidence: float = 0.95) -> Estimate:
    """The false positive rate: the share of non-members that were flagged.

    >>> false_positive_rate([False, False, True, False]).value
    0.25
    """
    return estimate_proportion(make_group(non_members_flagged, name="others"), of="others", confidence=confidence)


def precision(members_flagged: ValuesLike, non_members_flagged: ValuesLike, *, confidence: float = 0.95) -> Estimate:
    """The rate of precision: the share of members among the flagged, at their proportion among these records.

    Refused if nothing was flagged: there is no such share. Refused, too, without members or without non-members: it
    would be 0 or 1 whatever the flags.

    >>> precision([True, True, False], [True, False, False]).value
    0.666...
    """
    a, b = make_groups(members_flagged, non_members_flagged)
    flagged = np.concatenate([a.values, b.values]) > 0
    require_count(len(a), 1, of="members", purpose="Precision", code="too_few_members")
    require_count(len(b), 1, of="non-members", purpose="Precision", code="too_few_non_members")
    if not flagged.any():
        raise NotEnoughData(
            "Precision is the share of members among what is flagged, and nothing is.", code="nothing_flagged", needed=1
        )
    is_member = np.arange(len(flagged)) < len(a)
    users = np.concatenate([a.users, b.users])
    group = Group(is_member[flagged].astype(np.float64), users[flagged], a.population)
    return estimate_proportion(group, of="flagged", confidence=confidence)


def accuracy(members_flagged: ValuesLike, non_members_flagged: ValuesLike, *, confidence: float = 0.95) -> Estimate:
    """The rate of right decisions (accuracy), at the proportion of members among these records.

    >>> accuracy([True, True, False], [False]).value
    0.75
    """
    a, b = make_groups(members_flagged, non_members_flagged)
    return _combine_rates(a, b, len(a) / max(1, len(a) + len(b)), confidence)


def balanced_accuracy(
    members_flagged: ValuesLike, non_members_flagged: ValuesLike, *, confidence: float = 0.95
) -> Estimate:
    """Balanced accuracy: the mean of the true positive and the true negative rate; 0.5 is random guessing.

    >>> round(balanced_accuracy([True, True, False], [False]).value, 3)
    0.833
    """
    return _combine_rates(*make_groups(members_flagged, non_members_flagged), 0.5, confidence)


def _combine_rates(a: Group, b: Group, weight: float, confidence: float) -> Estimate:
    """The rate of right decisions: flagged members and unflagged others, the former with this weight."""
    unflagged = Group((b.values <= 0).astype(np.float64), b.users, b.population)
    true_positive_rate = estimate_proportion(a, of="members", confidence=confidence)
    true_negative_rate = estimate_proportion(unflagged, of="others", confidence=confidence)
    return weighted_sum([(weight, true_positive_rate), (1 - weight, true_negative_rate)], n=count_groups(a, b))
