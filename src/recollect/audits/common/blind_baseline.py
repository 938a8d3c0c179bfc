"""The blind baseline: how well a classifier that never saw the model separates the audited from the controls.

Where it does as well as the model's scores do, these may measure the difference between the texts and not membership
(Duan et al. 2024, "Do Membership Inference Attacks Work on Large Language Models?"; Das et al. 2024, "Blind Baselines
Beat Membership Inference Attacks for Foundation Models").
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy
from numpy.typing import NDArray

from recollect.audits.common.covariates import Covariates, Unit, standardise
from recollect.errors import NotEnoughData
from recollect.signals.scores import Floats
from recollect.stats.auc import auc, placements
from recollect.stats.groups import OwnedValues
from recollect.stats.intervals import Estimate, Interval
from recollect.stats.midranks import midranks
from recollect.stats.requirements import require_count

FOLDS = 5
MIN_BLIND = 5
"""So many units of each side at least, or a classifier has nothing to learn from."""
RIDGE = 1.0
"""The penalty, in units of the kernel's diagonal."""
_INTERCEPT = 10.0
"""What is added to the kernel, so that the penalty hardly touches the mean of the labels."""
_SEEN = ("vocabulary", "style", "content", "labels")
"""Covariates that are in the content."""
Labels = NDArray[Any]


def cross_fit(kernel: Floats, labels: Labels, folds: NDArray[np.int64]) -> Floats:
    """The held-out scores of the blind baseline, a kernel ridge classifier, for each row of labels [rows, units].

    No unit is scored by a classifier that was fitted to it: the closed form of leaving a fold out, so that thousands of
    labellings cost one inversion. Scores compare within a fold only.

    Args:
        kernel: How alike every two units are.
        labels: 1 for the audited and 0 for controls, one row for each labelling.
        folds: The fold of each unit.
    """
    size = len(kernel)
    ridge = RIDGE * float(np.mean(np.diag(kernel)) or 1.0)
    lifted = kernel + _INTERCEPT
    hat = lifted @ np.linalg.inv(lifted + ridge * np.eye(size))
    centred = labels - labels.mean(axis=1, keepdims=True)
    fitted, scores = centred @ hat.T, np.zeros(labels.shape)
    for fold in np.unique(folds):
        held = np.flatnonzero(folds == fold)
        own = hat[np.ix_(held, held)]
        left = fitted[:, held] - centred[:, held] @ own.T
        scores[:, held] = np.linalg.solve(np.eye(len(held)) - own, left.T).T
    return scores


def compute_auc_within_folds(scores: Floats, labels: Labels, folds: NDArray[np.int64]) -> Floats:
    """The AUC of the blind baseline over pairs of one fold only: 0.5 on average if labels mean nothing [rows]."""
    above, pairs = np.zeros(len(labels)), np.zeros(len(labels))
    for fold in np.unique(folds):
        held = folds == fold
        ranks = midranks(np.round(scores[:, held], 12))
        audited = labels[:, held]
        k, n = audited.sum(axis=1), (1 - audited).sum(axis=1)
        above += (ranks * audited).sum(axis=1) - k * (k + 1) / 2
        pairs += k * n
    return np.where(pairs > 0, above / np.maximum(pairs, 1), 0.5)


def centre_within_folds(scores: Floats, labels: Labels, folds: NDArray[np.int64]) -> Floats:
    """The scores of the blind baseline, made comparable between folds by each fold's held-out controls [units]."""
    centred = np.zeros(len(scores))
    for fold in np.unique(folds):
        held, controls = folds == fold, (folds == fold) & (labels == 0)
        if controls.any():
            scatter = scores[controls].std()
            centred[held] = (scores[held] - scores[controls].mean()) / (scatter or 1.0)
    return centred


def compare_aucs(scores: Floats, blind: Floats, labels: Sequence[bool] | Labels) -> float:
    """The p-value of "the scores separate the two sides no better than the blind baseline does".

    DeLong et al. 1988 for two AUCs of the same units, with Student's t of the smaller side.

    >>> rng, labels = np.random.default_rng(0), np.arange(60) < 30
    >>> compare_aucs(labels + rng.normal(0, 0.3, 60), rng.normal(0, 1, 60), labels) < 0.001
    True

    Args:
        scores: Of the model, one per unit.
        blind: Of the blind baseline, of the same units.
        labels: Which units are audited.
    """
    audited = np.asarray(labels, dtype=bool)
    smaller = int(min(audited.sum(), (~audited).sum()))
    if smaller < 2:
        return 1.0
    sides = [(each[audited], each[~audited]) for each in (scores, blind)]
    gains = placements(*sides[0]) - placements(*sides[1])
    losses = placements(sides[0][1], sides[0][0]) - placements(sides[1][1], sides[1][0])
    error = float(np.sqrt(gains.var(ddof=1) / len(gains) + losses.var(ddof=1) / len(losses)))
    difference = float(gains.mean())
    if error == 0:
        return 1.0 if difference <= 0 else 0.0
    return float(scipy.special.stdtr(smaller - 1, -difference / error))


@dataclass(frozen=True, kw_only=True, eq=False)
class BlindBaseline:
    """What a classifier that never saw the model can tell."""

    scores: Mapping[tuple[bool, str], float]
    aucs: Floats
    """Of each labelling; all alike where there are too few units to learn from."""
    auc: Estimate | NotEnoughData


def fit_blind(covariates: Covariates, units: Sequence[Unit], labelled: Floats) -> BlindBaseline:
    """The blind baseline for the units as they are and for all other labellings.

    Args:
        covariates: What is seen of the units without the model.
        units: The audited and the controls.
        labelled: Who is audited, in the first row as it is and then dealt out anew [rows, units].
    """
    audited = labelled[0] > 0
    try:
        fewest = int(min(audited.sum(), (~audited).sum()))
        purpose = "The blind baseline"
        require_count(fewest, MIN_BLIND, of="users on each side", purpose=purpose, code="too_few_users")
        folds = _assign_blind_folds(units)
        scores = cross_fit(_combine_kernels(covariates), labelled, folds)
        values = centre_within_folds(scores[0], labelled[0], folds)
        sides = [
            OwnedValues(values[side], [unit.name for unit in units if unit.audited is flag])
            for side, flag in ((audited, True), (~audited, False))
        ]
        aucs = compute_auc_within_folds(scores, labelled, folds)
        counts = {"audited_users": int(audited.sum()), "control_users": int((~audited).sum())}
        estimate = replace(_widen_blind_interval(auc(*sides), aucs), n=counts)
    except NotEnoughData as refusal:
        return BlindBaseline(scores={}, aucs=np.full(len(labelled), 0.5), auc=refusal)
    named = {(unit.audited, unit.name): float(value) for unit, value in zip(units, values, strict=True)}
    return BlindBaseline(scores=named, aucs=aucs, auc=estimate)


def _widen_blind_interval(estimate: Estimate, aucs: Floats) -> Estimate:
    """The AUC of the blind baseline with an interval at least as wide as other labellings scatter.

    Held-out scores of units that share their training sets depend on each other, which DeLong's interval does not know.
    """
    interval = estimate.interval
    if interval is None:
        return estimate
    half = float(scipy.special.ndtri((1 + interval.confidence) / 2) * aucs.std())
    low, high = max(0.0, estimate.value - half), min(1.0, estimate.value + half)
    wider = Interval(min(interval.low, low), max(interval.high, high), interval.confidence)
    return replace(estimate, interval=wider, method=f"{estimate.method}, at least as wide as other labellings scatter")


def _combine_kernels(covariates: Covariates) -> Floats:
    """What a blind classifier sees: all that is in the content, and lengths."""
    pieces = [kernel for name, kernel in covariates.kernels.items() if name in _SEEN]
    for name in ("length", "unknown_words"):
        if name in covariates.scalars:
            values = standardise(covariates.scalars[name], covariates.scalars[name])
            pieces.append(np.outer(values, values))
    return np.asarray(np.mean(pieces, axis=0))


def _assign_blind_folds(units: Sequence[Unit]) -> NDArray[np.int64]:
    """The fold of each unit in the blind baseline, whatever side it is on: by the rank of its name, in turn."""
    order = np.argsort([unit.name for unit in units], kind="stable")
    folds = np.empty(len(units), dtype=np.int64)
    folds[order] = np.arange(len(units)) % FOLDS
    return folds
