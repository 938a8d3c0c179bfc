"""A backend: the same work done on many items, in order, where a failure is a value."""

from __future__ import annotations

import traceback
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Generic, Protocol, TypeVar

from recollect.errors import RecollectError

Item = TypeVar("Item")
Value = TypeVar("Value")


@dataclass(frozen=True)
class Done(Generic[Value]):
    """The work was done."""

    value: Value


@dataclass(frozen=True)
class Failure:
    """The work could not be done on this item; the others continued."""

    error: BaseException
    traceback: str
    """Where it happened, as text, because a traceback cannot travel between processes."""
    kind: str = ""
    """The name of the error's type, where the error itself could not travel either."""
    where: str = ""
    """The machine on which it happened, if it was another."""

    def describe(self) -> str:
        """What happened, without what an error that nobody foresaw says of itself: that may be text of a corpus."""
        place = f" (on node {self.where})" if self.where else ""
        if isinstance(self.error, RecollectError):
            return f"{self.error.found}{place}"
        return f"An error occurred that nobody foresaw ({self.kind or type(self.error).__name__}){place}."


Outcome = Done[Value] | Failure


class Backend(Protocol):
    """Somewhere to work: this process, several, or a cluster."""

    @property
    def workers(self) -> int:
        """How many items are worked on at once; 0 for as many as there is room for."""

    @property
    def threads(self) -> int:
        """How many threads each worker computes with, unless `map` is given another number."""

    @property
    def in_process(self) -> bool:
        """Whether the work is done in this very process, which can then use a model that is already loaded."""

    def prepare(self) -> None:
        """Refuse, before any cost, what could not work: a cluster that lacks something, for instance."""

    def hold(self, folder: Path, *, purpose: str) -> AbstractContextManager[None]:
        """While this lasts, no other run of this backend works in the folder from another machine."""

    def map(
        self, work: Callable[[Item], Value], items: Iterable[Item], *, threads: int | None = None
    ) -> Iterator[Outcome[Value]]:
        """One outcome per item, in the order of the items, as they come.

        Items are taken from the iterable as they are needed, a few per worker ahead, so that memory does not grow
        with their number. Where there are several workers, each gets one copy of `work` and keeps it: what `work`
        holds on to (a loaded model) serves all items of that worker. `work`, items and values must then be picklable.
        An item whose worker died is tried once more by another worker, and is a failure if that one dies, too; an
        error that the work itself raises is a failure at once.

        Args:
            work: What to do with each item.
            items: What to do it with.
            threads: Threads per worker; None for the backend's own number.
        """


def attempt(work: Callable[[Item], Value], item: Item) -> Outcome[Value]:
    """The outcome of working on one item, as every backend records it: a value or a failure.

    >>> attempt(int, "7")
    Done(value=7)
    >>> attempt(int, "seven").error
    ValueError("invalid literal for int() with base 10: 'seven'")
    """
    try:
        return Done(work(item))
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # whatever it is (panics of native libraries are no Exception) becomes a value
        return Failure(error, traceback.format_exc())
