"""The check of given references: a model is never its own reference."""

from __future__ import annotations

from recollect.errors import PlanError
from recollect.signals.evidence import REFERENCE, TARGET, Evidence


def refuse_target_as_reference(evidence: Evidence) -> None:
    """Refuse a given reference that is the target itself: every difference would be 0, and nothing could be found.

    Raises:
        PlanError: It is.
    """
    same = [
        name
        for name in evidence.models_of_role(REFERENCE)
        if evidence.models[name].digest == evidence.models[TARGET].digest
    ]
    if same:
        raise PlanError(
            f"The {same[0]} is the target itself: compared with it, nothing could be found.",
            do="Give a model that was trained on none of the audited records.",
            code="reference_is_target",
        )
