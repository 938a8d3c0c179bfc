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

from recollect.audits.membership.shift import SHIFTED
from recollect.stats.comparisons import mann_whitney
from recollect.stats.intervals import Estimate, Interval, clopper_pearson
from recollect.stats.owners import Floats

Flags = NDArray[np.bool_]
MOST_LINES: Final = 400
"""Lines that are tried."""
FAR: Final = 0.99
"""An audited record is far from all controls if it is farther than this share of them is from each other."""


@dataclass(frozen=True, kw_only=True)
class Rate:
    """A share of unsure answers, and how many independent records it is worth."""

    value: float
    size: float
    """Records, or fewer where some count more than others."""

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
    held = Interval(min(interval.low, rate.value), max(interval.high, rate.value), confidence)
    return Estimate(value=rate.value, interval=held, n={"records": int(rate.size)}, method="Clopper–Pearson")


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
    def shifted(self) -> bool:
        """Whether the audited records are nearer to controls, or farther from them, than controls from each other."""
        sides = [side[np.isfinite(side)] for side in self.distances]
        return min(map(len, sides)) >= 2 and mann_whitney(*sides, alternative="two-sided").p <= SHIFTED


def never_seen(unsure: Flags, near: Near | None, *, plain: bool = False) -> Rate:
    """How often the target would be unsure of the audited records, had it never seen them.

    Without neighbours, as often as of the controls. With them, as often as of the controls that are nearest to each
    audited record, so that controls of another kind (noisy, turned) stand for nobody. Nearest ones are plainer than the
    record itself; by how much is told by the controls, whose neighbours are known too, and is put right.

    Args:
        unsure: Whether the target is unsure of each control.
        near: The neighbours; None to take all controls alike.
        plain: Leave the nearest as they are: too low rather than too high, where controls cannot tell how plain they
            are.
    """
    count = len(unsure)
    if near is None or near.far.all():
        return Rate(value=float(unsure.mean()), size=float(count))
    chosen = near.audited[~near.far]
    weights = np.bincount(chosen.ravel(), minlength=count).astype(np.float64)
    nearest, own = float(unsure[chosen].mean()), float(unsure[near.controls].mean())
    size = float(weights.sum() ** 2 / np.square(weights).sum())
    putting_right = 1.0 if plain or own == 0 else max(1.0, float(unsure.mean()) / own)
    return Rate(value=min(1.0, nearest * putting_right), size=size)
