"""The method `calibrated`: a set beside controls, which it should be like if removed, and members, if still in."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Final

import numpy as np

from recollect.audits.common.comparability import SHIFT_ALPHA, measure_separability, sample_records
from recollect.audits.removal.mixture import Mixture
from recollect.audits.removal.neighbours import Neighbours, find_neighbours
from recollect.audits.removal.scores import Flags, UnitScores, choose_unit, score_units
from recollect.audits.removal.thresholds import apply_thresholds, build_worst_case
from recollect.corpora.cohorts import Unit
from recollect.errors import NotEnoughData
from recollect.signals.evidence import AUDITED, CONTROLS, REFERENCE, SHADOW, TARGET, Evidence
from recollect.stats.comparisons import Comparison, mann_whitney

if TYPE_CHECKING:
    from recollect.audits.removal.audit import RemovalAudit

MIN_NEIGHBOURS, MAX_NEIGHBOURS, NEIGHBOURS_IN_ALL = 3, 10, 500
"""The nearest controls are the most similar, but few audited records have too few near ones to estimate a rate."""
NO_CALIBRATION_MODELS: Final = -np.inf
"""The threshold where nothing shows how members are scored."""


@dataclass(frozen=True, kw_only=True, eq=False)
class SetEvidence:
    """All that a decision about a set rests on."""

    scores: UnitScores
    neighbours: Neighbours | None
    """The controls that each audited record is compared with; None if all are used equally."""
    separability: Comparison | NotEnoughData | None = None
    """How well set and controls are separated without the model, or why that cannot be measured; None with
    neighbours, which measure it themselves."""
    mixture: Mixture | None
    """None if no audited record is like any control, or no calibration model shows how members are scored."""
    lower: Mixture | None
    """The mixture at the lower threshold; None if there is none."""
    worst_case: Mixture | None
    """The mixture with nothing known of unseen records: rules out shares still in whatever the set is like."""
    threshold: float
    """The score below which confidence is low."""
    p_below: float
    """How often a set of which nothing was ever in would score so far below the controls."""
    p_above: float
    """How often one would score so far above them."""
    level: float
    """The significance level."""

    @property
    def low_confidence(self) -> Flags:
        """In which audited units the target has low confidence."""
        return np.asarray(self.scores.audited.values < self.threshold)

    @property
    def shifted(self) -> bool:
        """Whether the set and the controls differ, independently of any model."""
        return is_shifted(self.separability) if self.neighbours is None else self.neighbours.shifted

    @cached_property
    def target_damaged(self) -> bool:
        """Whether the target was damaged as a whole, as far as controls like the audited records show."""
        near = self.neighbours
        return self.scores.is_target_damaged(None if near is None or near.far.all() else near.nearest_weights > 0)


def compare_set(audit: RemovalAudit, evidence: Evidence) -> SetEvidence:
    """All that a decision about the audited set rests on.

    Raises:
        NotEnoughData: There are too few records to compare.
    """
    calibrated, unit = bool(evidence.models_of_role(SHADOW)), choose_unit(evidence)
    if not calibrated and not evidence.models_of_role(REFERENCE):
        raise NotEnoughData(
            f"The calibration set has {len(evidence.corpora[CONTROLS])} records, too few to be halved.",
            do="Give more controls.",
            code="too_few_controls",
        )
    classifier = evidence.models[TARGET].kind == "classifier"
    scores = score_units(evidence, unit=unit, relative=not (classifier and calibrated))
    neighbours = _choose_neighbours(audit, evidence, scores, unit)
    separability = compare_sides(evidence, audit.confidence) if neighbours is None else None
    sides = scores.audited.values, scores.controls.values
    below, above = mann_whitney(*sides, alternative="less").p, mann_whitney(*sides, alternative="greater").p
    rule = {"alpha": audit.level, "tolerance": audit.tolerance}
    found = apply_thresholds(scores, neighbours, **rule) if calibrated else None
    return SetEvidence(
        scores=scores,
        neighbours=neighbours,
        separability=separability,
        mixture=None if found is None else found.mixture,
        lower=None if found is None else found.lower,
        worst_case=None if found is None else build_worst_case(scores, found.threshold, **rule),
        threshold=NO_CALIBRATION_MODELS if found is None else found.threshold,
        p_below=below,
        p_above=above,
        level=audit.level,
    )


def compare_sides(evidence: Evidence, confidence: float) -> Comparison | NotEnoughData:
    """How well the audited records and the controls are separated without the model, or why it cannot be measured."""
    audited, controls = (sample_records(evidence.corpora[role]) for role in (AUDITED, CONTROLS))
    try:
        return measure_separability(audited, controls, confidence=confidence)
    except NotEnoughData as refusal:
        return refusal


def is_shifted(separability: Comparison | NotEnoughData | None) -> bool:
    """Whether two sides are known to differ."""
    return isinstance(separability, Comparison) and separability.p <= SHIFT_ALPHA


def _choose_neighbours(audit: RemovalAudit, evidence: Evidence, scores: UnitScores, unit: Unit) -> Neighbours | None:
    """The controls that each audited record is compared with; None if all are used equally."""
    wanted = NEIGHBOURS_IN_ALL // len(scores.audited)
    auto = min(MAX_NEIGHBOURS, max(MIN_NEIGHBOURS, wanted))
    count = auto if audit.neighbours is None else audit.neighbours
    labelled = all(record.kind == "labelled" for record in evidence.corpora[AUDITED])
    if not count or unit != "record" or (audit.neighbours is None and not labelled):
        return None
    sides = []
    for role, scored in ((AUDITED, scores.audited), (CONTROLS, scores.controls)):
        by_id = {record.id: record for record in evidence.corpora[role]}
        sides.append([by_id[name] for name in scored.records])
    return find_neighbours(sides[0], sides[1], count)
