"""Difficulty: whether the audited records are as hard, beside their nearest controls, as other controls are.

Neighbours are chosen by content. Models that were trained on neither side show how hard each record is, and so whether
the nearest controls may stand for the audited records. Nothing here depends on the target.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from recollect.audits.removal.mixture_means import MixtureMean, compare_mixture_means
from recollect.audits.removal.neighbours import Neighbours
from recollect.stats.auc import placements
from recollect.stats.groups import Floats

DIFFICULTY_ALPHA: Final = 0.05
"""At or below this p-value audited records count as easier, or harder, than the controls that represent them."""
FEW_ALPHA: Final = 0.25
"""The same where nearly all controls of a label are the nearest: such controls are seldom like the record."""


@dataclass(frozen=True, kw_only=True)
class DifficultyShift:
    """How hard the audited records are for models that were not trained on them, beside their nearest controls."""

    p_easier: float
    """How often records as hard as their nearest controls would look so easy beside them."""
    easier: bool
    """Easier, beside their nearest controls, than controls are that are as far from their own neighbours."""
    harder: bool
    """Harder than those: that the target is less confident in them would say nothing."""

    @property
    def easier_than_nearest(self) -> bool:
        """Easier than the nearest controls: that the target is more confident in them would say nothing."""
        return self.p_easier <= DIFFICULTY_ALPHA

    @property
    def perhaps_easier(self) -> bool:
        """The same by the stricter rule for records that have few controls to choose from."""
        return self.p_easier <= FEW_ALPHA

    @property
    def differs(self) -> bool:
        """Whether something cannot be decided for it."""
        return self.easier_than_nearest or self.harder


def compare_difficulty(neighbours: Neighbours, audited: Floats, controls: Floats) -> DifficultyShift:
    """Whether the audited records are easier or harder, beside their neighbours, than controls beside theirs.

    Args:
        neighbours: The controls that represent each audited record, and each control.
        audited: The mean confidence of models that were not trained on it, of each audited record.
        controls: The same of each control.
    """
    # ranks among the controls, so that no single record of extreme confidence decides
    ours, theirs = (placements(side, controls) for side in (audited, controls))
    mean = MixtureMean.of(ours[~neighbours.far])
    nearest, corrected = (
        MixtureMean.of(theirs, weights) for weights in (neighbours.nearest_weights, neighbours.corrected_weights)
    )
    return DifficultyShift(
        p_easier=compare_mixture_means(mean, nearest),
        easier=compare_mixture_means(mean, corrected) <= DIFFICULTY_ALPHA,
        harder=compare_mixture_means(corrected, mean) <= DIFFICULTY_ALPHA,
    )
