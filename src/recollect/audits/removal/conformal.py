"""The method `calibrated` for single people: conformal p-values against controls and against members."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from recollect.audits.common.guard import Comparability
from recollect.audits.removal.calibrated import STILL_THERE_SHARE, compare_sides
from recollect.audits.removal.scores import UnitScores, score_units
from recollect.errors import NotEnoughData, PlanError
from recollect.signals.evidence import AUDITED, CONTROLS, SHADOW, Evidence
from recollect.signals.scores import Scores
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
    """By the hypothesis that each supports: "p_still_there", "p_gone", "p_over_unlearned"; one per person."""
    audited: Scores
    """By how much the target is more confident in each person than models that were not trained on them."""
    controls: Scores
    """The same of the control users."""
    comparability: Comparability | NotEnoughData
    """How the people compare with the controls in all that can be seen without the model, or why it is not known."""
    level: float
    """The significance level."""

    @property
    def comparable(self) -> bool:
        """Whether nothing that can be seen without the model tells the people and the controls apart."""
        return isinstance(self.comparability, NotEnoughData) or self.comparability.comparable

    @property
    def needed_controls(self) -> int:
        """How many control users are needed to identify anyone individually after correction."""
        return required_controls(self.level * STILL_THERE_SHARE, tests=len(self.scores.audited))


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
    scores = score_units(evidence, unit="user")
    needed = required_controls(audit.level * STILL_THERE_SHARE)
    require_count(len(scores.controls), needed, of="control users", purpose=purpose, code="too_few_controls")
    people, controls, members = scores.subtract_difficulty()
    audited = people.values
    below = conformal_p(-audited, controls.with_values(-controls.values))
    return UserEvidence(
        scores=scores,
        # the same control under several models counts once: it owns all its scores
        p_values={
            "p_still_there": np.minimum(1, conformal_p(audited, controls) / STILL_THERE_SHARE),
            "p_gone": conformal_p(-audited, members.with_values(-members.values)),
            "p_over_unlearned": np.minimum(1, below / (1 - STILL_THERE_SHARE)),
        },
        audited=people,
        controls=controls,
        comparability=compare_sides(evidence, scores, "user"),
        level=audit.level,
    )
