"""The accuracy of membership inference where ground truth is known: AUC, TPR at low FPR, precision and recall."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final

import numpy as np
from numpy.typing import NDArray

from recollect.audits.common.result_builder import ResultBuilder
from recollect.audits.membership.candidate_scores import UnitScores
from recollect.audits.membership.decisions import flag_at_rate
from recollect.signals.scores import Scores
from recollect.stats.auc import auc
from recollect.stats.classification_rates import false_positive_rate, precision, recall
from recollect.stats.intervals import Estimate
from recollect.stats.roc import tpr_at_fpr

LOW_RATES: Final = (0.1, 0.01, 0.001)
"""The false positive rates at which the paper and its successors read the ROC curve."""
_AT_RATE = "at the threshold that {rate:.1%} of the controls exceed"
_AT_MEAN = "at the mean score of the members as the threshold, which is known only to the trainer of the model"


def count_candidates(estimate: Estimate) -> Estimate:
    """An AUC with what it counts: candidates, of whom it is not known whether they are members, and controls."""
    names = {"members": "candidates", "others": "controls"}
    names |= {"member_users": "candidate_users", "other_users": "control_users"}
    return replace(estimate, n={names[name]: count for name, count in estimate.n.items()})


def add_accuracy(
    builder: ResultBuilder, scores: UnitScores, flagged: Mapping[float, NDArray[np.bool_]], *, confidence: float
) -> None:
    """The findings of AUC, TPR at low FPR, and the precision and recall of flags at each rate.

    Args:
        builder: Where findings are kept.
        scores: The scores and the ground truth.
        flagged: At each false positive rate, which candidates are flagged.
        confidence: The confidence level of all intervals.
    """
    members, others = scores.members, scores.non_members
    builder.try_estimate(
        "auc",
        lambda: auc(members, others, confidence=confidence),
        unit="probability",
        reading="The probability that a member scores above a non-member; 0.5 is expected under the null hypothesis.",
    )
    for rate in LOW_RATES:
        builder.try_estimate(
            f"tpr_at_fpr_{rate:g}",
            lambda rate=rate: tpr_at_fpr(members, others, fpr=rate, confidence=confidence),  # type: ignore[misc]
            unit="share",
            reading=f"The true positive rate: the share of members found when {rate:.1%} of the non-members are "
            "flagged.",
        )
    positions = scores.candidates.positions
    for rate, flags in flagged.items():
        raised = [side.with_values(flags[[positions[name] for name in side.records]]) for side in (members, others)]
        _add_precision_and_recall(builder, raised, f"{{}}_at_fpr_{rate:g}", confidence, _AT_RATE.format(rate=rate))


def add_loss_accuracy(
    builder: ResultBuilder, loss: UnitScores, *, rates: Sequence[float], confidence: float, alone: bool
) -> None:
    """The accuracy of the paper's baseline, the loss, with the mean-of-members threshold and beside a better signal.

    Args:
        builder: Where findings are kept.
        loss: The scores of the signal `loss`.
        rates: The false positive rates at which candidates are flagged.
        confidence: The confidence level of all intervals.
        alone: Whether the loss is the audited signal itself, whose findings are there already.
    """
    members, others = loss.members, loss.non_members
    if not alone:
        builder.try_estimate(
            "loss_auc",
            lambda: auc(members, others, confidence=confidence),
            unit="probability",
            reading="The AUC of the signal loss alone, the paper's baseline.",
        )
        for rate in rates:
            _add_loss_accuracy_at_rate(builder, loss, rate, confidence)
    if len(members):
        mean = float(np.mean(members.values))
        raised = [side.with_values(side.values >= mean) for side in (members, others)]
        _add_precision_and_recall(builder, raised, "loss_{}_at_mean", confidence, _AT_MEAN)


def _add_loss_accuracy_at_rate(builder: ResultBuilder, loss: UnitScores, rate: float, confidence: float) -> None:
    """The accuracy of flags by the loss at one rate; nothing where the controls are too few."""
    controls = loss.controls
    if controls is None or len(set(controls.users)) < round(1 / rate) - 1:
        return
    raised = [side.with_values(flag_at_rate(side, controls, rate)) for side in (loss.members, loss.non_members)]
    _add_precision_and_recall(builder, raised, f"loss_{{}}_at_fpr_{rate:g}", confidence, _AT_RATE.format(rate=rate))


def _add_precision_and_recall(
    builder: ResultBuilder, raised: Sequence[Scores], name: str, confidence: float, where: str
) -> None:
    """Precision, recall and false positive rate of the flags of members and of others; {} in the name is which."""
    members, others = raised
    builder.try_estimate(
        name.format("precision"),
        lambda: precision(members, others, confidence=confidence),
        unit="share",
        reading=f"Of the flagged candidates, the share that are members, {where}.",
    )
    builder.try_estimate(
        name.format("recall"),
        lambda: recall(members, confidence=confidence),
        unit="share",
        reading=f"Of the members, the share that is flagged, {where}.",
    )
    builder.try_estimate(
        name.format("observed_fpr"),
        lambda: false_positive_rate(others, confidence=confidence),
        unit="share",
        reading=f"Of the non-members, the share that is flagged, {where}.",
    )
