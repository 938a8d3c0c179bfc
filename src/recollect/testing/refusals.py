"""Refusals are recognised by their codes, so that their wording may improve without breaking a test."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from recollect.errors import RecollectError


@dataclass
class Refusal:
    """What was caught, once the block is over."""

    error: RecollectError | None = None


@contextmanager
def refused(code: str, kind: type[RecollectError] = RecollectError) -> Iterator[Refusal]:
    """Expect the block to raise an error of this code; hands out what was caught.

    >>> with refused("empty") as refusal:
    ...     raise RecollectError("Nothing there.", code="empty")
    >>> refusal.error.found
    'Nothing there.'

    Raises:
        AssertionError: Nothing was raised, or an error of another code or kind.
    """
    refusal = Refusal()
    try:
        yield refusal
    except RecollectError as error:
        if error.code != code or not isinstance(error, kind):
            raise AssertionError(
                f"expected {kind.__name__} {code!r}, got {type(error).__name__} {error.code!r}: {error}"
            ) from error
        refusal.error = error
    else:
        raise AssertionError(f"expected {kind.__name__} {code!r}, and nothing was raised")
