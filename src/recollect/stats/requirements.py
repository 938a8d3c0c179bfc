"""What the counts can support: refusals that name the count that would be needed. All of them live here."""

from __future__ import annotations

import math

from recollect.errors import NotEnoughData

ROUNDING_SLACK = 1e-9
"""Rounding slack: 0.29 × 100 is 28.999999999999996 in floating point, and means 29."""


def count_share(share: float, total: int) -> int:
    """How many of `total` a required share is, rounded down.

    >>> count_share(0.29, 100)
    29
    """
    return math.floor(share * total + ROUNDING_SLACK)


def required_controls(alpha: float, *, tests: int = 1) -> int:
    """How many controls a conformal p-value needs so that it can reach alpha / tests at all: tests / α − 1.

    >>> required_controls(0.05), required_controls(0.05, tests=10)
    (19, 199)
    """
    return math.ceil(tests / alpha - ROUNDING_SLACK) - 1


def required_non_members(fpr: float) -> int:
    """How many non-members a false positive rate needs so that at least one of them may be flagged.

    >>> required_non_members(0.001)
    1000
    """
    return math.ceil(1 / fpr - ROUNDING_SLACK)


def require_count(found: int, needed: int, *, of: str, purpose: str, code: str) -> None:
    """Refuse if there are fewer than needed.

    >>> require_count(400, 1000, of="non-members", purpose="TPR at 0.1 % FPR", code="too_few_non_members")
    Traceback (most recent call last):
        ...
    recollect.errors.NotEnoughData: TPR at 0.1 % FPR needs at least 1,000 non-members; there are 400.
      Add at least 600 more non-members.

    Args:
        found: How many there are.
        needed: How many there must be.
        of: What is counted, in words for the message.
        purpose: What they are needed for, in words for the message.
        code: Of the refusal: "too_few_controls", "too_few_users" …

    Raises:
        NotEnoughData: There are fewer; it carries the count that is needed.
    """
    if found < needed:
        raise NotEnoughData(
            f"{purpose} needs at least {needed:,} {of}; there {'is' if found == 1 else 'are'} {found:,}.",
            do=f"Add at least {needed - found:,} more {of}.",
            code=code,
            needed=needed,
        )
