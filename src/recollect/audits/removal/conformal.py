"""The method `calibrated` for single people: conformal p-values against controls and against members."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from recollect.audits.removal.calibrated import compare_sides, is_shifted
from recollect.audits.removal.scores import UnitScores, score_units
from recollect.errors import NotEnoughData, PlanError
from recollect.signals.evidence import AUDITED, CONTROLS, SHADOW, Evidence
from recollect.stats.comparisons import Comparison
from recollect.stats.groups import Floats
from recollect.stats.requirements import require_count, required_controls
from recollect.stats.significance import conformal_p

if TYPE_CHECKING:
    from recollect.audits.removal.audit import RemovalAudit


@dataclass(frozen=True, kw_only=True, eq=False)
class UserEvidence:
    """All that decisions about people rest on."""

    scores: UnitScores
    p_values: Mapping[str, Floats]
    """By the hypothesis that each supports: "p_still_there", "p_gone", "p_below"; one per person."""
    separability: Comparison | NotEnoughData
    """How well people and controls are separated without the model, or why that cannot be measured."""
    level: float
    """The significance level."""

    @property
    def shifted(self) -> bool:
        """Whether the people and the controls differ, independently of any model."""
        return is_shifted(self.separability)

    @property
    def needed_controls(self) -> int:
        """How many control users are needed to identify anyone individually after correction."""
        return required_controls(self.level, tests=len(self.scores.audited))


def compare_users(audit: RemovalAudit, evidence: Evidence) -> UserEvidence:
    """All that decisions about the audited people rest on.

    Raises:
        NotEnoughData: There are too few calibration models or control users.
        PlanError: Some records have no user.
    """
    if any(record.user is None for role in (AUDITED, CONTROLS) for record in evidence.corpora[role]):
        raise PlanError(
            "Users are to be decided about, and some records have none.",
            do="Name the user column.",
            code="records_without_user",
        )
    shadows, purpose = len(evidence.models_of_role(SHADOW)), "A decision about a person"
    require_count(shadows, 2, of="calibration models", purpose=purpose, code="too_few_shadows")
    scores = score_units(evidence, unit="user", relative=True)
    needed = required_controls(audit.level)
    require_count(len(scores.controls), needed, of="control users", purpose=purpose, code="too_few_controls")
    audited, controls, members = scores.audited.values, scores.controls, scores.members
    return UserEvidence(
        scores=scores,
        # the same control under several models counts once: it owns all its scores
        p_values={
            "p_still_there": conformal_p(audited, controls),
            "p_gone": conformal_p(-audited, members.with_values(-members.values)),
            "p_below": conformal_p(-audited, controls.with_values(-controls.values)),
        },
        separability=compare_sides(evidence, audit.confidence),
        level=audit.level,
    )
