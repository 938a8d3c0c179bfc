"""What contract checks share: how a broken promise is reported, and what is weaker than a given access."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

from recollect.models.access import Access, Logprob


class BrokenContract(AssertionError):  # noqa: N818 - reads as a sentence
    """A signal or an audit does not keep what all of them promise."""


def promise(kept: bool, what: str) -> None:
    """What every signal or audit promises.

    Raises:
        BrokenContract: It was not kept.
    """
    if not kept:
        raise BrokenContract(what)


@contextmanager
def promise_success(what: str) -> Iterator[None]:
    """What every signal or audit promises to be able to do.

    Raises:
        BrokenContract: Something was raised in the block.
    """
    try:
        yield
    except Exception as error:
        raise BrokenContract(f"{what}, but: {error!r}") from error


def iter_weaker(needed: Access) -> Iterator[Access]:
    """Accesses that are weaker than what is promised to suffice, by one field each.

    >>> [str(access) for access in iter_weaker(Access.top(5))]
    ['the top 4, no probabilities']
    """
    if needed.k != 1:
        yield replace(needed, k=100 if needed.k is None else needed.k - 1)
    below: dict[Logprob, Logprob] = {"any": "shown", "shown": "none"}
    if needed.logprob in below:
        yield replace(needed, logprob=below[needed.logprob])
    if needed.distribution:
        yield replace(needed, distribution=False)
    if needed.steps:
        yield replace(needed, steps=False)
