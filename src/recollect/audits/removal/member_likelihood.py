"""The likelihood of membership: learned from calibration models alone, whose training sets are known.

A logistic regression tells a record that trained a calibration model from one that did not, by the model's confidence
in it and by its difficulty: the mean confidence of models that were not trained on it. Applied to the target's scores
it gives each record a *member probability*. Nothing of it is fitted to any score of the target.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import scipy

from recollect.audits.removal.confidence_scores import (
    MEMBERS,
    CalibrationScores,
    UnitScores,
)
from recollect.errors import NotEnoughData
from recollect.signals.evidence import AUDITED, CONTROLS
from recollect.signals.scores import Scores
from recollect.stats.groups import Floats

SATURATED: Final = 0.1
"""Confidence of classifiers is cut at this quantile of members': beyond, they are certain, and how certain says nothing
of membership, but much of how long and on how much data a model was trained."""


@dataclass(frozen=True, kw_only=True)
class MemberLikelihood:
    """The fitted regression."""

    intercept: float
    confidence: float
    """The coefficient of a model's confidence in a record."""
    difficulty: float
    """The coefficient of the mean confidence of models that were not trained on it."""
    highest: float
    """Confidence is cut here; infinite if it is not."""

    def compute_probability(self, confidence: Floats, difficulty: Floats) -> Floats:
        """The probability that a model was trained on a record, if half of all records trained it.

        Where confidence is cut, as a share of what it is for a record of the same difficulty at the cut: so it is 1 for
        nearly all members, of whatever difficulty, of calibration models and of a far better target alike.

        Args:
            confidence: The model's confidence in each record.
            difficulty: The mean confidence of models that were not trained on it.
        """
        own, others = (np.minimum(values, self.highest) for values in (confidence, difficulty))
        found = scipy.special.expit(self.intercept + self.confidence * own + self.difficulty * others)
        if np.isinf(self.highest):
            return np.asarray(found)
        return np.asarray(
            found / scipy.special.expit(self.intercept + self.confidence * self.highest + self.difficulty * others)
        )


def fit_member_likelihood(known: CalibrationScores, *, saturates: bool) -> MemberLikelihood:
    """The likelihood of membership: a regression on confidence and difficulty.

    Args:
        known: Scores of calibration models, and which of them are of members.
        saturates: Whether confidence is cut, as that of classifiers is.

    Raises:
        NotEnoughData: There are no members, or no non-members.
    """
    if known.member.all() or not known.member.any():
        raise NotEnoughData(
            "Calibration models must have been trained on some of the controls and not on others; here on all or none.",
            do="Give a recipe, or calibration models of halves of the controls.",
            code="calibration_models_all_alike",
        )
    from sklearn.linear_model import LogisticRegression

    highest = float(np.quantile(known.confidence[known.member], SATURATED)) if saturates else np.inf
    features = np.minimum(np.stack([known.confidence, known.difficulty], axis=1), highest)
    centre, scale = features.mean(axis=0), np.maximum(features.std(axis=0), 1e-9)
    fitted: Any = LogisticRegression().fit((features - centre) / scale, known.member)
    slopes = fitted.coef_[0] / scale
    return MemberLikelihood(
        intercept=float(fitted.intercept_[0] - slopes @ centre),
        confidence=float(slopes[0]),
        difficulty=float(slopes[1]),
        highest=highest,
    )


def compute_member_probabilities(scores: UnitScores, *, saturates: bool) -> tuple[Scores, Scores, Scores]:
    """The member probabilities of the audited, the controls and the members of calibration models.

    Without calibration models, by how much the target is more confident than the references.

    Args:
        scores: The confidence scores.
        saturates: Whether they are of a classifier, which is certain of most records.
    """
    if scores.calibration is None:
        return scores.subtract_difficulty()
    sides = ((AUDITED, scores.audited), (CONTROLS, scores.controls), (MEMBERS, scores.members))
    likelihood = fit_member_likelihood(scores.calibration, saturates=saturates)
    one, other, inside = (
        side.with_values(likelihood.compute_probability(side.values, scores.difficulty[name])) for name, side in sides
    )
    return one, other, inside
