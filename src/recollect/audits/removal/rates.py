"""How often a model is unsure of records: of its members, of records it never saw, and of those that are audited.

All that `calibrated` says comes from one kind of event: a model is *unsure* of a record if its score lies below a line
that the members of calibration models hardly ever fall under. Members are rarely unsure whatever their difficulty, and
records that were never seen are unsure as often as the target's own answers to the controls show.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Final

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from recollect.audits.common.comparability import SHIFT_ALPHA
from recollect.stats.comparisons import mann_whitney
from recollect.stats.intervals import Estimate, Interval, clopper_pearson
from recollect.stats.owners import Floats

Flags = NDArray[np.bool_]
MOST_LINES: Final = 400
"""Lines that are tried."""
TELLING: Final = 12
"""So many unsure answers are expected below the low line, if the set was never seen."""
PEERS: Final = 50
"""So many controls are as far from other controls as an audited record is."""
FAR: Final = 0.99
"""An audited record is far from all controls if it is farther than this share of them is from each other."""


@dataclass(frozen=True, kw_only=True)
class Rate:
    """A share of unsure answers, and how many independent records it is worth."""

    value: float
    size: float
    """Records, or fewer where some count more than others."""
    models: tuple[float, ...] = ()
    """The share of each model that was asked, where there are several: another model's may differ as much."""

    @property
    def hits(self) -> float:
        """How many of them were unsure."""
        return self.value * self.size

    def estimate(self, confidence: float) -> Estimate:
        """The share with its exact interval."""
        return _exact(self, confidence)


@lru_cache(maxsize=256)
def _exact(rate: Rate, confidence: float) -> Estimate:
    """The share with its exact interval; asked anew for every share still in that is tried, so it is remembered."""
    interval = clopper_pearson(rate.hits, rate.size, confidence=confidence)
    # the share itself may lie outside by a rounding error
    limits, method = [interval.low, interval.high, rate.value], "Clopper–Pearson"
    if len(rate.models) > 1:
        limits += another(rate.models, confidence)
        method += ", widened by how much models differ"
    held = Interval(min(limits), max(limits), confidence)
    return Estimate(value=rate.value, interval=held, n={"records": int(rate.size)}, method=method)


def another(shares: tuple[float, ...], confidence: float) -> tuple[float, float]:
    """Between which limits the share of one more model lies, if it was trained as these were.

    The prediction interval of a normal variable, on the arcsine scale.
    """
    found = _arcsine(np.array(shares))
    reach = stats.t.ppf((1 + confidence) / 2, len(found) - 1) * found.std(ddof=1) * np.sqrt(1 + 1 / len(found))
    low, high = np.sin(np.clip([found.mean() - reach, found.mean() + reach], 0, np.pi) / 2) ** 2
    return float(low), float(high)


def line(members: Floats, never: Floats) -> float:
    """The score below which an answer is unsure, where members and records never seen differ most.

    Largest difference of the two shares after the arcsine transformation (Cohen's h), which is what a test of two
    shares sees, too. Neither side holds an audited record, so nothing has to be paid for the choice.

    Args:
        members: Scores of records under calibration models that were trained on them.
        never: Scores of the controls under the target.
    """
    levels = np.unique(never)
    if len(levels) > MOST_LINES:
        levels = np.unique(np.quantile(never, np.linspace(0, 1, MOST_LINES), method="inverted_cdf"))
    # above the largest, so that all of `never` may be unsure
    levels = np.append(levels, np.nextafter(levels[-1], np.inf))
    unsure = np.searchsorted(np.sort(never), levels, side="left") / len(never)
    lost = (np.searchsorted(np.sort(members), levels, side="left") + 1) / (len(members) + 2)
    # rounded, so that of levels that tell equally well the lowest is taken on every machine
    return float(levels[int(np.argmax(np.round(_arcsine(unsure) - _arcsine(lost), 12)))])


def low_line(never: Floats, counted: Floats, size: int) -> float:
    """The lowest score at which a set of this size that was never seen can still be told from one that is in.

    A target that holds its members less firmly than calibration models do, though trained as they were, is about as
    unsure of them as of anything. But it seldom takes them for something else altogether, and that tells them apart
    far down.

    Args:
        never: Scores of the controls under the target.
        counted: How much each control counts, by how like the audited records it is.
        size: Audited records.
    """
    order = np.argsort(never, kind="stable")
    sums = np.cumsum(counted[order])
    place = int(np.searchsorted(sums, min(1.0, TELLING / size) * sums[-1]))
    return float(never[order[min(place, len(order) - 1)]])


def _arcsine(share: Floats) -> Floats:
    """The scale on which shares scatter alike."""
    return np.asarray(2 * np.arcsin(np.sqrt(share)))


@dataclass(frozen=True, kw_only=True, eq=False)
class Near:
    """Which controls stand for each audited record, and which other controls for each control."""

    audited: NDArray[np.int64]
    """Places of controls [audited, neighbours]."""
    controls: NDArray[np.int64]
    """Places of other controls [controls, neighbours]."""
    distances: tuple[Floats, Floats]
    """How far these are on average, of each audited record and of each control."""

    @cached_property
    def far(self) -> Flags:
        """Which audited records are like no control [audited]."""
        usual = self.distances[1][np.isfinite(self.distances[1])]
        return np.asarray(self.distances[0] > (np.quantile(usual, FAR) if len(usual) else 0.0))

    @cached_property
    def nearest(self) -> Floats:
        """How much each control counts if those nearest to the audited records stand for them [controls]."""
        chosen = self.audited[~self.far]
        return np.bincount(chosen.ravel(), minlength=len(self.controls)) / max(1, chosen.size)

    @cached_property
    def peers(self) -> Floats:
        """How much each counts if those stand for them that are as far from other controls as they are [controls]."""
        order = np.argsort(self.distances[1], kind="stable")
        ordered = self.distances[1][order]
        finite = int(np.isfinite(ordered).sum())
        count = min(PEERS, finite)
        places = np.searchsorted(ordered[:finite], self.distances[0][~self.far]) - count // 2
        # a window of the ordered controls begins at each place: added up by its two ends
        steps = np.zeros(len(order) + 1)
        starts = np.clip(places, 0, finite - count)
        np.add.at(steps, starts, 1.0)
        np.subtract.at(steps, starts + count, 1.0)
        weights = np.empty(len(order))
        weights[order] = np.cumsum(steps)[:-1] / max(1, count * len(starts))
        return weights

    def neighbours_of(self, weights: Floats) -> Floats:
        """How much each control counts if its neighbours stand for every control that counts [controls]."""
        count = self.controls.shape[1]
        shared = np.repeat(weights / count, count)
        return np.asarray(np.bincount(self.controls.ravel(), weights=shared, minlength=len(self.controls)))

    @cached_property
    def shifted(self) -> bool:
        """Whether the audited records are nearer to controls, or farther from them, than controls from each other."""
        sides = [side[np.isfinite(side)] for side in self.distances]
        return min(map(len, sides)) >= 2 and mann_whitney(*sides, alternative="two-sided").p <= SHIFT_ALPHA


def never_seen(unsure: Flags, near: Near | None, *, plain: bool = False) -> Rate:
    """How often the target would be unsure of the audited records, had it never seen them.

    Without neighbours, as often as of the controls. With them, as often as of the controls that are nearest to each
    audited record, so that controls of another kind (noisy, turned) stand for nobody. Nearest ones are plainer than the
    record itself. By how much is told by those controls that are as far from their own neighbours as the audited
    records are, and is put right.

    Args:
        unsure: Whether the target is unsure of each control.
        near: The neighbours; None to take all controls alike.
        plain: Leave the nearest as they are: too low rather than too high, where controls cannot tell how plain they
            are.
    """
    if near is None or near.far.all():
        return Rate(value=float(unsure.mean()), size=float(len(unsure)))
    nearest = near.nearest
    rate = float(nearest @ unsure)
    size = float(1 / np.square(nearest).sum())
    beyond = near.neighbours_of(near.peers)
    own, theirs = float(near.peers @ unsure), float(beyond @ unsure)
    if plain or theirs == 0 or own <= theirs:
        return Rate(value=rate, size=size)
    ratio = own / theirs
    # to first order the product is a weighted sum of the controls, which tells how many independent ones it is worth
    slope = ratio * (nearest + rate / own * near.peers - rate / theirs * beyond)
    return Rate(value=min(1.0, rate * ratio), size=min(size, float(1 / np.square(slope).sum())))
