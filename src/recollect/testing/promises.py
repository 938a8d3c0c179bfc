"""What contract checks share: how a broken promise is reported, and what is weaker than a given access."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import replace

from recollect.models.access import Access, Logprob


class BrokenContract(AssertionError):  # noqa: N818 - reads as a sentence
    """A signal or an audit does not keep what all of them promise."""


def promise(kept: bool, what: str, *, found: str = "") -> None:
    """What every signal or audit promises.

    Args:
        kept: Whether it was kept.
        what: The promise, after whose it is.
        found: What was found where it was not kept.

    Raises:
        BrokenContract: It was not kept.
    """
    if not kept:
        raise report_broken(what, found)


def report_broken(what: str, found: str = "") -> BrokenContract:
    """The error that reports a broken promise: what was promised, and what was found instead.

    >>> print(report_broken("loss: what was memorised scores higher", "AUC 0.00"))
    Not kept: loss: what was memorised scores higher. Found: AUC 0.00.
    """
    return BrokenContract(f"Not kept: {what}." + (f" Found: {found.rstrip('.')}." if found else ""))


def require_attributes(component: object, noun: str, names: Collection[str]) -> None:
    """What every signal or audit has.

    Raises:
        BrokenContract: Something is missing, all of which is named, or a class was given in place of an instance.
    """
    if isinstance(component, type):
        given = component.__name__
        raise report_broken(f"what is checked is an instance of the {noun}", f"the class {given}, not {given}()")
    missing = [name for name in names if not hasattr(component, name)]
    has = f"every {noun} has {', '.join(names)}"
    promise(not missing, has, found=f"{type(component).__name__} without {', '.join(missing)}")


@contextmanager
def promise_success(what: str) -> Iterator[None]:
    """What every signal or audit promises to be able to do.

    Raises:
        BrokenContract: Something was raised in the block.
    """
    try:
        yield
    except Exception as error:
        raise report_broken(what, repr(error)) from error


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
