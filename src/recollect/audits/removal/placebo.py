"""The placebo of removal: controls in the place of the audited, by the same test.

With neighbours, controls that represent the audited records play them, each beside its own nearest other controls: so
it shows whether being near to controls, or of another kind than most, suffices to be accused.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from recollect import labels
from recollect.audits.common.placebo import judge_alarms
from recollect.audits.removal.mixture import Mean, compare_means
from recollect.audits.removal.neighbours import Neighbours
from recollect.audits.removal.scores import Flags
from recollect.results.result import Placebo
from recollect.signals.scores import Scores
from recollect.stats.comparisons import permutation
from recollect.stats.groups import Floats
from recollect.stats.requirements import required_controls
from recollect.streams import stream

RUNS: Final = 100
DRAWS: Final = 199
"""Permutations of each run: enough to tell whether p is at most α."""
MIN_CONTROLS: Final = 40
"""Of fewer, half of them too few remain to play a set and to be compared with."""


def play_placebo(controls: Scores, neighbours: Neighbours | None, *, size: int, seed: int, alpha: float) -> Placebo:
    """How often controls are called still there.

    Args:
        controls: Member probabilities of the controls under the target.
        neighbours: The controls that represent each audited record, and each control; None if all do alike.
        size: Audited units.
        seed: Of the draws.
        alpha: The significance level.
    """
    weights = np.ones(len(controls)) if neighbours is None else neighbours.nearest_weights
    usable = np.flatnonzero(weights > 0)
    if len(usable) < max(MIN_CONTROLS, required_controls(alpha) + 2):
        return Placebo(
            status="not_run",
            reason=f"{len(usable):,} controls can represent the audited units; a placebo needs {MIN_CONTROLS} of them.",
        )
    rng = stream(seed, *labels.STREAM_REMOVAL_PLACEBO)
    count = min(size, len(usable) // 2)
    played = np.zeros((RUNS, len(controls)), dtype=np.bool_)
    shares = weights[usable] / weights[usable].sum()
    for row in played:
        row[rng.choice(usable, size=count, replace=False, p=shares)] = True
    alarms = np.array([_is_accused(controls.values, row, neighbours, rng=rng, alpha=alpha) for row in played])
    return judge_alarms(alarms, played, seed=seed, alpha=alpha)


def _is_accused(
    values: Floats, playing: Flags, neighbours: Neighbours | None, *, rng: np.random.Generator, alpha: float
) -> bool:
    """Whether a draw of controls would be called still there."""
    if neighbours is None:
        return permutation(values[playing], values[~playing], rng=rng, draws=DRAWS).p <= alpha
    chosen = neighbours.controls[playing].ravel()
    weights = np.bincount(chosen, minlength=len(values)) * ~playing
    if not weights.any():
        return False
    ours = Mean.of(values[playing])
    return compare_means(ours, Mean.of(values, weights / weights.sum())) <= alpha
