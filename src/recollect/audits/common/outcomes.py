"""The outcome after all checks: match, guard, score, decide, state power, placebo, in the same order in every audit."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from recollect.results.result import Guard, Outcome, Placebo

NOT_COMPARABLE: Final = "not_comparable"
PLACEBO_FAILED: Final = "placebo_failed"
EXPLAINED_BY_TEXTS: Final = "explained_by_texts"
NO_POWER: Final = "no_power"


@dataclass(frozen=True, kw_only=True)
class Conclusion:
    """An outcome and, if it is inconclusive, why."""

    outcome: Outcome
    code: str | None = None


def conclude(
    outcome: Outcome,
    *,
    code: str | None = None,
    guard: Guard | None = None,
    placebo: Placebo | None = None,
    explained: bool = False,
    attainable: bool = True,
) -> Conclusion:
    """The outcome after all checks of what a test decided.

    >>> conclude("found", explained=True)
    Conclusion(outcome='inconclusive', code='explained_by_texts')
    >>> conclude("found", attainable=False).outcome, conclude("not_found", attainable=False).code
    ('found', 'no_power')

    Args:
        outcome: What the tests decided.
        code: Why that is inconclusive, if it is.
        guard: Whether the audited and the controls are comparable; if not, nothing may be said.
        placebo: What the audit says of controls in the place of the audited; if it fails, nothing may be said.
        explained: Whether a classifier that never saw the model explains what was found (`guard.explains_scores`).
        attainable: Whether any outcome of this design could have been significant.
    """
    reasons = [
        (outcome == "inconclusive", code),
        (guard is not None and not guard.comparable, NOT_COMPARABLE),
        (placebo is not None and placebo.status == "failed", PLACEBO_FAILED),
        (outcome == "found" and explained, EXPLAINED_BY_TEXTS),
        (outcome == "not_found" and not attainable, NO_POWER),
    ]
    for applies, reason in reasons:
        if applies:
            return Conclusion(outcome="inconclusive", code=reason)
    return Conclusion(outcome=outcome)
