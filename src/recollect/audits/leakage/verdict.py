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
        decisions: The decisions about them.
    """
    comparison, flagged = decisions.comparison, decisions.flagged
    counted = _count(leaks, with_epsilon=not flagged)
    if not leaks:
        return f"{counted}."
    if decisions.refusal is not None:
        return f"{counted}; whether training on those users explains this could not be tested."
    if not decisions.found:
        return f"{counted}; that is no more than for users whom the model was not trained on."
    if not flagged:
        return (
            "The model leaks more of its users' texts than it would without training on them, but no single user can "
            f"be identified. {counted}."
        )
    theirs = _describe_largest(leak for leak in leaks.values() if leak.user in flagged)
    null = _describe_largest(comparison.null_leaks.values())
    beside = f" (ε_l up to {theirs}{f'; up to {null} without such training' if null else ''})" if theirs else ""
    return (
        f"{len(flagged):,} of {len(comparison.users):,} users have sequences that only the model's training on them "
        f"explains{beside}. {counted}."
    )


def _count(leaks: Mapping[int, Leak], *, with_epsilon: bool) -> str:
    """How many sequences are reproduced, and from how many users."""
    count, people = len(leaks), len({leak.user for leak in leaks.values()})
    if not count:
        return "The model reproduces no sequence that only one user wrote"
    largest = _describe_largest(leaks.values()) if with_epsilon else ""
    beside = f" (ε_l up to {largest})" if largest else ""
    return (
        f"The model reproduces {count:,} sequence{'s' * (count > 1)} that only one user wrote, from {people:,} "
        f"user{'s' * (people > 1)}{beside}"
    )


def _describe_largest(leaks: Iterable[Leak]) -> str:
    """The largest epsilon; empty if there is none."""
    epsilons = [leak.epsilon for leak in leaks if not math.isnan(leak.epsilon)]
    return f"{max(epsilons):.1f}" if epsilons else ""
