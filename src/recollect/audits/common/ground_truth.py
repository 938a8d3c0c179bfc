"""Ground truth: whose data in the audited corpus is known to be in the training set, and whose is known not to be."""

from __future__ import annotations

from recollect.corpora.cohorts import Cohorts
from recollect.corpora.members import Members
from recollect.errors import PlanError
from recollect.signals.evidence import AUDITED, SHADOW, TARGET, Evidence


def find_members(evidence: Evidence) -> Members | None:
    """Ground truth: the known members and known non-members; None if none are declared. All others are unknown.

    Members that are given come first; else it follows from the cohorts of the audited corpus.

    Raises:
        PlanError: The cohorts describe several models, and none is called target.
    """
    cohorts = evidence.cohorts.get(AUDITED)
    if evidence.members is not None or cohorts is None:
        return evidence.members
    name = _find_target_name(cohorts)
    if name is None:
        return None
    members, others = cohorts.members(name), cohorts.non_members(name)
    return Members(unit=cohorts.unit, members=frozenset(members), non_members=frozenset(others))


def has_both(known: Members | None) -> bool:
    """Whether ground truth names members and non-members, so that the one can be compared with the other."""
    return known is not None and bool(known.members) and bool(known.non_members)


def _find_target_name(cohorts: Cohorts) -> str | None:
    """The name that the target has in cohorts that say the ground truth; None if they describe shadow models only."""
    if TARGET in cohorts.models:
        return TARGET
    named = [name for name in cohorts.models if not name.startswith(f"{SHADOW}-")]
    if len(named) > 1:
        raise PlanError(
            f"The cohorts name the models {', '.join(named)}, and none is called {TARGET!r}.",
            do=f"Rename the one that is audited to {TARGET!r}.",
            code="no_target_in_cohorts",
        )
    return named[0] if named else None
