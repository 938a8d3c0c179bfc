"""The thresholds below which confidence is low, and the mixture that the scores of a set make at each of them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from recollect.audits.removal.mixture import Mixture
from recollect.audits.removal.neighbours import Neighbours
from recollect.audits.removal.rates import Rate, estimate_unseen_rate, measure_member_rate, transform_arcsine
from recollect.audits.removal.scores import UnitScores
from recollect.stats.groups import Floats

MAX_THRESHOLDS: Final = 400
"""The most thresholds that are tried."""
EXPECTED_BELOW: Final = 12
"""The expected number of records below the lower threshold, if the set consists of non-members."""
LOWER_ALPHA_SHARE: Final = 0.2
"""The share of α that is spent on the lower threshold."""
UNKNOWN_RATE: Final = Rate(value=1.0, size=1e9)
"""For records unlike any control: the target may have low confidence in every non-member of this kind."""


@dataclass(frozen=True, kw_only=True)
class ThresholdedMixture:
    """The threshold below which confidence is low, and what follows from it."""

    threshold: float
    mixture: Mixture | None
    """None if no audited record is like any control."""
    lower: Mixture | None
    """What follows from the lower threshold, where there is one."""


def choose_threshold(members: Floats, controls: Floats) -> float:
    """The score below which confidence is low, where members and unseen records differ most.

    Largest difference of the two rates after the arcsine transformation (Cohen's h), which is what a test of two
    rates sees, too. Neither side contains an audited record, so no correction is needed for the choice.

    Args:
        members: Scores of records under calibration models that were trained on them.
        controls: Scores of the controls under the target.
    """
    tried = np.unique(controls)
    if len(tried) > MAX_THRESHOLDS:
        tried = np.unique(np.quantile(controls, np.linspace(0, 1, MAX_THRESHOLDS), method="inverted_cdf"))
    # above the largest, so that all controls may be below
    tried = np.append(tried, np.nextafter(tried[-1], np.inf))
    unseen = np.searchsorted(np.sort(controls), tried, side="left") / len(controls)
    lost = (np.searchsorted(np.sort(members), tried, side="left") + 1) / (len(members) + 2)
    # rounded, so that of thresholds that separate equally well every machine chooses the lowest
    return float(tried[int(np.argmax(np.round(transform_arcsine(unseen) - transform_arcsine(lost), 12)))])


def choose_lower_threshold(controls: Floats, weights: Floats, size: int) -> float:
    """The lowest score at which an unseen set of this size can still be distinguished from one that is in.

    A target that memorises its members less strongly than calibration models do, though trained as they were, has low
    confidence in them about as often as in non-members. But it seldom has very low confidence in them, which separates
    them at a lower threshold.

    Args:
        controls: Scores of the controls under the target.
        weights: The weight of each control, by how like the audited records it is.
        size: Audited records.
    """
    order = np.argsort(controls, kind="stable")
    sums = np.cumsum(weights[order])
    index = int(np.searchsorted(sums, min(1.0, EXPECTED_BELOW / size) * sums[-1]))
    return float(controls[order[min(index, len(order) - 1)]])


def apply_thresholds(
    scores: UnitScores, neighbours: Neighbours | None, *, alpha: float, tolerance: float
) -> ThresholdedMixture:
    """With neighbours there is a second threshold, for targets that memorise less strongly than calibration models.

    It is the one that counts if it is significant by itself, and more than the first. Without neighbours ranks are
    the second test.
    """
    usual = choose_threshold(scores.members.values, scores.controls.values)
    if neighbours is not None and neighbours.far.all():
        return ThresholdedMixture(threshold=usual, mixture=None, lower=None)
    mixture = _build_mixture(usual, scores, neighbours, alpha=alpha, tolerance=tolerance)
    if neighbours is None:
        return ThresholdedMixture(threshold=usual, mixture=mixture, lower=None)
    size = int((~neighbours.far).sum())
    lower = choose_lower_threshold(scores.controls.values, neighbours.nearest_weights, size)
    if lower >= usual:
        return ThresholdedMixture(threshold=usual, mixture=mixture, lower=None)
    mixture = replace(mixture, alpha_share=1 - LOWER_ALPHA_SHARE)
    below = replace(
        _build_mixture(lower, scores, neighbours, alpha=alpha, tolerance=tolerance), alpha_share=LOWER_ALPHA_SHARE
    )
    counts = below.p_still_there * LOWER_ALPHA_SHARE <= alpha and below.p_still_there < mixture.p_still_there
    return ThresholdedMixture(threshold=lower if counts else usual, mixture=below if counts else mixture, lower=below)


def build_worst_case(scores: UnitScores, threshold: float, *, alpha: float, tolerance: float) -> Mixture:
    """All audited records, with nothing known of unseen ones: rules out shares still in whatever the set is like."""
    return Mixture(
        low_confidence=int((scores.audited.values < threshold).sum()),
        size=len(scores.audited),
        members=measure_member_rate(scores, threshold),
        unseen=UNKNOWN_RATE,
        alpha=alpha,
        tolerance=tolerance,
    )


def _build_mixture(
    threshold: float, scores: UnitScores, neighbours: Neighbours | None, *, alpha: float, tolerance: float
) -> Mixture:
    """The audited records that are like some control, beside members and unseen records."""
    audited, controls = scores.audited.values < threshold, scores.controls.values < threshold
    compared = audited if neighbours is None else audited[~neighbours.far]
    shifted = neighbours is not None and neighbours.shifted
    return Mixture(
        low_confidence=int(compared.sum()),
        size=len(compared),
        members=measure_member_rate(scores, threshold),
        unseen=estimate_unseen_rate(controls, neighbours),
        unseen_lowest=estimate_unseen_rate(controls, neighbours, corrected=False) if shifted else None,
        alpha=alpha,
        tolerance=tolerance,
    )
