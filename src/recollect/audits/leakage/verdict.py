"""The verdict of the leakage audit."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping

from recollect.audits.leakage.decisions import Decisions
from recollect.audits.leakage.epsilon import Leak


def state_leakage(leaks: Mapping[int, Leak], decisions: Decisions) -> str:
    """One or two sentences.

    Args:
        leaks: The sequences of one user that the model predicts.
        decisions: What their comparison amounts to.
    """
    comparison, flagged = decisions.comparison, decisions.flagged
    counted = _count(leaks, with_epsilon=not flagged)
    if not leaks:
        return f"{counted}."
    if decisions.refusal is not None:
        return f"{counted}; whether its training on them explains it could not be tested."
    if not decisions.found:
        return f"{counted}; no more leaks of them than of users whom the model has not seen."
    if not flagged:
        return f"More leaks of its users than chance explains, though no single user can be named. {counted}."
    theirs = _describe_largest(leak for leak in leaks.values() if leak.user in flagged)
    null = _describe_largest(comparison.null_leaks.values())
    beside = f" (ε_l up to {theirs}{f'; up to {null} without such training' if null else ''})" if theirs else ""
    return (
        f"{len(flagged):,} of {len(comparison.users):,} users have sequences that only the model's training on them "
        f"explains{beside}. {counted}."
    )


def _count(leaks: Mapping[int, Leak], *, with_epsilon: bool) -> str:
    """How many sequences come out, and of how many users."""
    count, people = len(leaks), len({leak.user for leak in leaks.values()})
    if not count:
        return "No sequence that only one user wrote comes out of the model"
    largest = _describe_largest(leaks.values()) if with_epsilon else ""
    come = "sequences that only one user wrote come" if count > 1 else "sequence that only one user wrote comes"
    beside = f" (ε_l up to {largest})" if largest else ""
    return f"{count:,} {come} out of the model, of {people:,} user{'s' * (people > 1)}{beside}"


def _describe_largest(leaks: Iterable[Leak]) -> str:
    """The largest epsilon; empty if there is none."""
    epsilons = [leak.epsilon for leak in leaks if not math.isnan(leak.epsilon)]
    return f"{max(epsilons):.1f}" if epsilons else ""
