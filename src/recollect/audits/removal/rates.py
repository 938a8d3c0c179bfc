"""How often a model has low confidence: in its members, in non-members, and in the audited records.

All that `calibrated` infers is based on one kind of event: a model has *low confidence* in a record if its score is
below a threshold that the members of calibration models hardly ever fall below. That is rare for members whatever their
difficulty, and as frequent for unseen records as the target's own scores of the controls show.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from scipy import stats

from recollect.audits.removal.neighbours import Neighbours
from recollect.audits.removal.scores import Flags, UnitScores
from recollect.stats.groups import Floats
from recollect.stats.intervals import Estimate, Interval, clopper_pearson


@dataclass(frozen=True, kw_only=True)
class Rate:
    """A rate of low confidence, and its effective number of independent records."""

    value: float
    size: float
    """Records, or fewer where some have more weight than others."""
    models: tuple[float, ...] = ()
    """The rate of each model, where there are several: another model's may differ as much."""

    @property
    def hits(self) -> float:
        """In how many of them confidence was low."""
        return self.value * self.size

    def estimate(self, confidence: float) -> Estimate:
        """The rate with its exact interval."""
        return _estimate(self, confidence)


@lru_cache(maxsize=256)
def _estimate(rate: Rate, confidence: float) -> Estimate:
    """The rate with its exact interval; needed anew for every share still in that is tried, so it is cached."""
    interval = clopper_pearson(rate.hits, rate.size, confidence=confidence)
    # the rate itself may be outside by a rounding error
    limits, method = [interval.low, interval.high, rate.value], "Clopper–Pearson"
    if len(rate.models) > 1:
        limits += predict_another_model(rate.models, confidence)
        method += ", widened by how much models differ"
    widened = Interval(min(limits), max(limits), confidence)
    return Estimate(value=rate.value, interval=widened, n={"records": int(rate.size)}, method=method)


def predict_another_model(rates: tuple[float, ...], confidence: float) -> tuple[float, float]:
    """The limits for the rate of one more model, if it was trained as these were.

    The prediction interval of a normal variable, on the arcsine scale.
    """
    found = transform_arcsine(np.array(rates))
    reach = stats.t.ppf((1 + confidence) / 2, len(found) - 1) * found.std(ddof=1) * np.sqrt(1 + 1 / len(found))
    low, high = np.sin(np.clip([found.mean() - reach, found.mean() + reach], 0, np.pi) / 2) ** 2
    return float(low), float(high)


def transform_arcsine(rate: Floats) -> Floats:
    """The variance-stabilising scale of rates."""
    return np.asarray(2 * np.arcsin(np.sqrt(rate)))


def measure_member_rate(scores: UnitScores, threshold: float) -> Rate:
    """How often calibration models have low confidence in members; a unit counts once, however many it trained."""
    low = scores.members.values < threshold
    model = np.array([name.split("/", 1)[0] for name in scores.members.records])
    each = tuple(float(low[model == name].mean()) for name in np.unique(model))
    return Rate(value=float(low.mean()), size=float(len(set(scores.members.users))), models=each)


def estimate_unseen_rate(low: Flags, neighbours: Neighbours | None, *, corrected: bool = True) -> Rate:
    """How often the target would have low confidence in the audited records, had it not been trained on them.

    Without neighbours, as often as in the controls. With them, as often as in the controls that are nearest to each
    audited record, so that controls of another kind (noisy, rotated) are not used. Nearest ones are easier than the
    record itself. By how much is estimated from those controls that are as far from their own neighbours as the
    audited records are, and the rate is bias-corrected for it.

    Args:
        low: Whether the target has low confidence in each control.
        neighbours: The neighbours; None to weight all controls equally.
        corrected: Whether it is bias-corrected for easier neighbours; without, it is too low rather than too high,
            where controls cannot show how much easier they are.
    """
    if neighbours is None or neighbours.far.all():
        return Rate(value=float(low.mean()), size=float(len(low)))
    nearest = neighbours.nearest_weights
    # weights add up to 1 but for rounding, and no power can be computed for a rate above it
    rate = min(1.0, float(nearest @ low))
    size = float(1 / np.square(nearest).sum())
    beyond = neighbours.move_to_neighbours(neighbours.peer_weights)
    own, theirs = float(neighbours.peer_weights @ low), float(beyond @ low)
    if not corrected or theirs == 0 or own <= theirs:
        return Rate(value=rate, size=size)
    ratio = own / theirs
    # to first order the product is a weighted sum of the controls, which gives the number of independent ones
    slope = ratio * (nearest + rate / own * neighbours.peer_weights - rate / theirs * beyond)
    return Rate(value=min(1.0, rate * ratio), size=min(size, float(1 / np.square(slope).sum())))
