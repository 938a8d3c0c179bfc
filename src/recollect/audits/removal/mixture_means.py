"""The means of which a mixture is made: member probabilities of the audited, of non-members like them, of members."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
import scipy

from recollect.audits.removal.neighbours import Neighbours
from recollect.signals.scores import Scores
from recollect.stats.groups import Floats
from recollect.stats.intervals import Estimate, Interval

UNBOUNDED: Final = 1e9
"""A margin beyond any difference of probabilities."""
ROUNDING: Final = 1e-9
"""Means that differ by less are equal."""
MIN_DOUBTED: Final = 10
"""Controls that the target doubts on which a correction must rest: of fewer, no mean is nearly normal."""


@dataclass(frozen=True, kw_only=True)
class MixtureMean:
    """A mean of member probabilities, and how far it may be off."""

    value: float
    variance: float
    """Of one record."""
    size: float
    """Independent records, fewer where some have more weight than others."""
    models: tuple[float, ...] = ()
    """The mean of each calibration model, where there are several: another model's may differ as much."""

    @classmethod
    def of(cls, values: Floats, weights: Floats | None = None, models: tuple[float, ...] = ()) -> MixtureMean:
        """The mean of some values.

        Args:
            values: One per unit.
            weights: The weight of each, which add up to 1; None for equal ones. Negative ones correct a bias.
            models: The mean of each model.
        """
        shares = np.full(len(values), 1 / len(values)) if weights is None else weights
        value, size = float(shares @ values), float(1 / np.square(shares).sum())
        absolute = np.abs(shares) / np.abs(shares).sum()
        variance = float(absolute @ np.square(values - absolute @ values))
        return cls(value=value, variance=variance * size / max(size - 1, 1e-9), size=size, models=models)

    def with_variance_of(self, unseen: MixtureMean) -> MixtureMean:
        """The same with the variance of non-members, if that is larger: so it varies if it consists of them.

        A few records of which the target is certain have no variance of their own, and would exceed any mean below.
        """
        return replace(self, variance=max(self.variance, unseen.variance))

    def compute_margin(self, level: float) -> float:
        """By how much the mean may be too high, or too low, with this probability of error on either side."""
        if self.size <= 1:
            return UNBOUNDED
        own = compute_t_quantile(level, self.size - 1) * math.sqrt(self.variance / self.size)
        if len(self.models) < 2:
            return own
        freedom = len(self.models) - 1
        apart = float(np.std(self.models, ddof=1)) * math.sqrt(1 + 1 / len(self.models))
        return math.hypot(own, compute_t_quantile(level, freedom) * apart)

    def estimate(self, confidence: float, *, of: str) -> Estimate:
        """The mean with its interval; probabilities lie between 0 and 1, though rounding and corrections may not.

        Args:
            confidence: The confidence level.
            of: What the mean is over, such as "records".
        """
        margin = self.compute_margin((1 - confidence) / 2)
        low, value, high = (min(1.0, max(0.0, self.value + shift)) for shift in (-margin, 0.0, margin))
        method = "t-interval, widened by how much models differ" if len(self.models) > 1 else "t-interval"
        n = {of: int(self.size)}
        return Estimate(value=value, interval=Interval(low, high, confidence), n=n, method=method)


def compare_mixture_means(audited: MixtureMean, unseen: MixtureMean) -> float:
    """The smallest α at which the audited mean of a mixture exceeds that of non-members; up to 1 if it is below."""
    gap = audited.value - unseen.value
    if abs(gap) < ROUNDING:
        return 0.5
    low, high = 0.0, 1.0
    for _ in range(30):
        middle = (low + high) / 2
        margin = math.hypot(audited.compute_margin(middle), unseen.compute_margin(middle))
        if gap > (margin if middle <= 0.5 else -margin):
            high = middle
        else:
            low = middle
    return high


def correct_by_ratio(controls: Floats, neighbours: Neighbours) -> MixtureMean | None:
    """The mean member probability that the audited records would have, had the target not been trained on them.

    The controls nearest to each audited record are easier than the record itself. How many times as far from certainty
    a record is as its nearest controls, controls show that are as far from their own neighbours as the audited records
    are. With noisy and rotated digits among the controls the ratio is less wrong than the difference of the two
    (`Neighbours.corrected_weights`); in other designs it is not (`studies/removal`).

    Args:
        controls: Member probabilities of the controls under the target.
        neighbours: The controls that represent each audited record.

    Returns:
        None if these are no probabilities, or the target doubts too few of the controls.
    """
    peers = neighbours.peer_weights
    weights = np.stack([neighbours.nearest_weights, peers, neighbours.move_to_neighbours(peers)])
    doubt = 1 - controls
    means = weights @ doubt
    nearest, own, theirs = means.tolist()
    squares = np.square(weights * doubt).sum(axis=1)
    if doubt.min() < 0 or doubt.max() > 1 or (np.square(means) < MIN_DOUBTED * squares).any() or theirs <= 0:
        return None
    variance = float(weights[0] @ np.square(doubt - nearest))
    if own <= theirs or nearest * own >= theirs or variance <= 0:
        return MixtureMean.of(controls, weights[0])
    expected = nearest * own / theirs
    # the delta method: to first order this is a sum over controls, whose squares add up to its variance
    influence = expected * (np.array([1, 1, -1]) / means) @ (weights * (doubt - means[:, None]))
    variance *= expected * (1 - expected) / (nearest * (1 - nearest))
    size = min(variance / max(float(np.square(influence).sum()), 1e-12), float(len(controls)))
    return MixtureMean(value=1 - expected, variance=variance, size=size)


def average_members(members: Scores, weights: Mapping[str, float] | None) -> MixtureMean:
    """The mean of members in the mixture, weighted as the controls are; a unit counts once, whatever it trained.

    Args:
        members: Scores of members of calibration models; a unit's name carries the model's.
        weights: The weight of each control, by name; None for equal ones.
    """
    if weights is None or not any(weights[name] for name in members.users):
        weights = dict.fromkeys(members.users, 1.0)
    shares = np.array([weights[name] for name in members.users])
    model = np.array([name.split("/", 1)[0] for name in members.records])
    each = [_average_members_of_model(members.values, shares * (model == name)) for name in np.unique(model)]
    trained: dict[str, list[float]] = {}
    for name, value in zip(members.users, members.values.tolist(), strict=True):
        trained.setdefault(name, []).append(value)
    own = np.array([weights[name] for name in trained])
    means = np.array([np.mean(values) for values in trained.values()])
    return MixtureMean.of(means, own / own.sum(), models=tuple(value for value in each if value is not None))


def _average_members_of_model(values: Floats, weights: Floats) -> float | None:
    """The weighted mean of the members of one model in the mixture; None if nothing has weight."""
    total = float(weights.sum())
    return float(weights @ values) / total if total > 0 else None


def compute_t_quantile(level: float, freedom: float) -> float:
    """The t quantile of a mean of the mixture that is exceeded with this probability."""
    return float(scipy.special.stdtrit(max(freedom, 1e-9), 1 - level)) if level > 1e-9 else UNBOUNDED
