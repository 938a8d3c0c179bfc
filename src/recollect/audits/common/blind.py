"""The blind baseline: how well a classifier that never saw the model separates the audited from the controls.

Where it does as well as the model's scores do, these may measure the difference between the texts and not membership
(Duan et al. 2024, "Do Membership Inference Attacks Work on Large Language Models?"; Das et al. 2024, "Blind Baselines
Beat Membership Inference Attacks for Foundation Models").
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from recollect.signals.scores import Floats
from recollect.stats.auc import placements

FOLDS = 5
RIDGE = 1.0
"""The penalty, in units of the kernel's diagonal."""
_INTERCEPT = 10.0
"""What is added to the kernel, so that the penalty hardly touches the mean of the labels."""
Labels = NDArray[Any]


def cross_fit(kernel: Floats, labels: Labels, folds: NDArray[np.int64]) -> Floats:
    """The held-out scores of a kernel ridge classifier for each row of labels [rows, units].

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
    """The AUC of each row, over pairs of one fold only: exactly 0.5 on average if labels mean nothing [rows]."""
    above, pairs = np.zeros(len(labels)), np.zeros(len(labels))
    for fold in np.unique(folds):
        held = folds == fold
        ranks = stats.rankdata(np.round(scores[:, held], 12), axis=1)
        audited = labels[:, held]
        k, n = audited.sum(axis=1), (1 - audited).sum(axis=1)
        above += (ranks * audited).sum(axis=1) - k * (k + 1) / 2
        pairs += k * n
    return np.where(pairs > 0, above / np.maximum(pairs, 1), 0.5)


def centre_within_folds(scores: Floats, labels: Labels, folds: NDArray[np.int64]) -> Floats:
    """The scores of one labelling, made comparable between folds by each fold's held-out controls [units]."""
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
    sides = [(each[audited], each[~audited]) for each in (scores, blind)]
    gains = placements(*sides[0]) - placements(*sides[1])
    losses = placements(sides[0][1], sides[0][0]) - placements(sides[1][1], sides[1][0])
    smaller = min(len(gains), len(losses))
    if smaller < 2:
        return 1.0
    error = float(np.sqrt(gains.var(ddof=1) / len(gains) + losses.var(ddof=1) / len(losses)))
    difference = float(gains.mean())
    if error == 0:
        return 1.0 if difference <= 0 else 0.0
    return float(stats.t.sf(difference / error, smaller - 1))
