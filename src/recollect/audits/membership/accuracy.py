"""How well membership is told when the truth is known: AUC, TPR at low FPR, precision, recall, and the ROC curve."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from recollect.audits.common.builder import ResultBuilder
from recollect.audits.membership.deciding import Decisions, flags
from recollect.audits.membership.standing import Standing, mean_threshold
from recollect.signals.scores import Floats, Scores
from recollect.stats.auc import auc
from recollect.stats.decisions import false_positive_rate, precision, recall
from recollect.stats.roc import roc_curve, tpr_at_fpr

LOW_RATES: Final = (0.1, 0.01, 0.001)
"""The false positive rates at which the paper and its successors read the curve."""
MOST_POINTS = 2000
"""Points of the curve that are kept; a plot shows no more."""


def add_accuracy(
    builder: ResultBuilder, found: Standing, decided: Decisions, *, confidence: float, rates: Sequence[float]
) -> None:
    """AUC, TPR at low FPR, and how good the decisions at each rate were."""
    members, others = found.members, found.others
    builder.try_estimate(
        "auc",
        lambda: auc(members, others, confidence=confidence),
        unit="probability",
        reading="How often something that was trained on scores above something that was not; 0.5 is chance.",
    )
    for rate in LOW_RATES:
        builder.try_estimate(
            f"tpr_at_fpr_{rate:g}",
            lambda rate=rate: tpr_at_fpr(members, others, fpr=rate, confidence=confidence),  # type: ignore[misc]
            unit="share",
            reading=f"The share of what was trained on that is found when {rate:.1%} of all else is flagged.",
        )
    places = found.candidates.place
    for rate in rates:
        if rate in decided.flagged:
            flagged = decided.flagged[rate]
            raised = [
                side.with_values(flagged[[places[record] for record in side.records]]) for side in (members, others)
            ]
            _add_decisions(builder, raised, f"{{}}_at_fpr_{rate:g}", confidence, _BY_CONTROLS.format(rate=rate))


_BY_CONTROLS = "with the threshold that {rate:.1%} of the controls pass"
_BY_MEAN = "with the mean score of what was trained on as the threshold, which only its trainer knows"


def add_baseline(
    builder: ResultBuilder, loss: Standing, *, rates: Sequence[float], confidence: float, alone: bool
) -> None:
    """The paper's baselines: the loss with the mean-of-training threshold and, beside a better signal, all else of it.

    Args:
        builder: Where findings are kept.
        loss: The scores of the signal `loss`.
        rates: The false positive rates of the population threshold.
        confidence: How often intervals are right.
        alone: Whether the loss is the audited signal itself, which has been told already.
    """
    members, others = loss.members, loss.others
    if not alone:
        builder.try_estimate(
            "loss_auc",
            lambda: auc(members, others, confidence=confidence),
            unit="probability",
            reading="The same for the loss alone, the paper's baseline; 0.5 is chance.",
        )
        supported = [rate for rate in rates if _supported(loss, rate)]
        for rate in supported:
            raised = [side.with_values(flags(side, loss.controls, rate)) for side in (members, others)]
            said = _BY_CONTROLS.format(rate=rate)
            _add_decisions(builder, raised, f"loss_{{}}_at_fpr_{rate:g}", confidence, said)
    if len(members):
        mean = mean_threshold(members)
        raised = [side.with_values(side.values >= mean) for side in (members, others)]
        _add_decisions(builder, raised, "loss_{}_at_mean", confidence, _BY_MEAN)


def _supported(found: Standing, rate: float) -> bool:
    """Whether there are enough controls for a rate; where not, the audited signal has said so already."""
    return len(set(found.controls.users)) >= round(1 / rate) - 1


def _add_decisions(builder: ResultBuilder, raised: Sequence[Scores], name: str, confidence: float, how: str) -> None:
    """Precision, recall and false positive rate of the flags of members and of others; {} in the name is which."""
    members, others = raised
    builder.try_estimate(
        name.format("precision"),
        lambda: precision(members, others, confidence=confidence),
        unit="share",
        reading=f"Of what is flagged, the share that was trained on, {how}.",
    )
    builder.try_estimate(
        name.format("recall"),
        lambda: recall(members, confidence=confidence),
        unit="share",
        reading=f"Of what was trained on, the share that is flagged, {how}.",
    )
    builder.try_estimate(
        name.format("observed_fpr"),
        lambda: false_positive_rate(others, confidence=confidence),
        unit="share",
        reading=f"Of what was not trained on, the share that is flagged, {how}.",
    )


def roc_table(found: Standing) -> pa.Table:
    """The curve of true against false positive rates, thinned where no axis, linear or logarithmic, shows it."""
    if not len(found.members) or not len(found.others):
        return pa.table({"fpr": pa.array([], pa.float64()), "tpr": pa.array([], pa.float64())})
    curve = roc_curve(found.members, found.others)
    kept = _thinned(curve.fpr, curve.tpr)
    return pa.table({"fpr": curve.fpr[kept], "tpr": curve.tpr[kept]})


def _thinned(fpr: Floats, tpr: Floats) -> NDArray[np.int64]:
    """Which points of a curve are kept: corners all, if they are few; else evenly by either rate and by log FPR."""
    if len(fpr) <= MOST_POINTS:
        return np.arange(len(fpr), dtype=np.int64)
    each = MOST_POINTS // 3
    low = max(float(fpr[fpr > 0].min()), 1e-9)
    wanted = [np.linspace(0, 1, each), np.geomspace(low, 1, each)]
    places = [np.searchsorted(fpr, axis, side="right") - 1 for axis in wanted]
    places.append(np.searchsorted(tpr, np.linspace(0, 1, each), side="left").clip(0, len(tpr) - 1))
    return np.unique(np.concatenate([[0], *places, [len(fpr) - 1]]).astype(np.int64))
