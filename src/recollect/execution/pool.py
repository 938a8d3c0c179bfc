"""A pool of workers that share one stream of items and hand back outcomes in order, wherever the workers are."""

from __future__ import annotations

import pickle  # between our own processes only, never in a file
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from types import TracebackType
from typing import Any, Final, Generic, Protocol

from recollect.errors import RecollectError
from recollect.execution.backend import Failure, Item, Outcome, Value

DIED: Final = "worker_died"
"""The code of the error of an item whose worker was ended while it worked on it."""
PREFETCH: Final = 4
"""Items per worker that may be out or waiting for an earlier one to end: what bounds memory."""


class PoolWorker(Protocol):
    """One worker as seen from here: the item it works on, and the line to it."""

    number: int | None
    """The number of the item that it works on; None if it has none."""
    alive: bool
    """Whether it can still be given anything."""
    ready: bool
    """Whether it may be given an item now; one that is still waiting for room on a cluster may not."""

    def submit(self, number: int, item: Any, finished: dict[int, Any]) -> None:
        """Let a worker of the pool work on this item; an item that cannot be sent is a failure at once."""

    def receive(self, finished: dict[int, Any]) -> None:
        """What a worker of the pool says: that it is ready, an outcome, or nothing any more."""

    def terminate(self) -> None:
        """End a worker of the pool now, if it has not ended; what it was writing is whole or not there."""


class Pool(Generic[Item, Value]):
    """Workers, started as they are needed and ended, all of them, when the block ends however it ends.

    Args:
        start: Starts a worker.
        wait: Waits until some of these workers have something to say, and gives those.
        size: How many workers there may be.
    """

    def __init__(
        self, start: Callable[[], PoolWorker], wait: Callable[[Sequence[Any]], Sequence[Any]], *, size: int
    ) -> None:
        self._start, self._wait, self._size = start, wait, size
        self._workers: list[PoolWorker] = []

    def __enter__(self) -> Pool[Item, Value]:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        for worker in self._workers:
            worker.terminate()

    def map(self, items: Iterable[Item]) -> Iterator[Outcome[Value]]:
        """One outcome per item, in the order of the items."""
        numbered, yielded = _PoolItems(items), 0
        while True:
            self._hand_out(numbered, limit=yielded + PREFETCH * self._size)
            if yielded in numbered.finished:
                yield numbered.finished.pop(yielded)
                yielded += 1
            elif numbered.taken > yielded:
                self._collect(numbered)
            else:
                return

    def _hand_out(self, items: _PoolItems[Item], *, limit: int) -> None:
        """Give items to idle workers, for as long as there are both; workers are started for items that wait."""
        while True:
            while items.taken < limit and len(items.queue) < self._size - self._count_busy() and items.take():
                pass
            self._start_missing(len(items.queue))
            worker = next((each for each in self._workers if each.ready and each.number is None), None)
            if worker is None or not items.queue:
                return
            number = items.queue.popleft()
            worker.submit(number, items.waiting[number], items.finished)
            items.settle()

    def _start_missing(self, wanted: int) -> None:
        """Start as many workers as items wait for one, within the size of the pool."""
        self._workers = [worker for worker in self._workers if worker.alive]
        idle = sum(worker.number is None for worker in self._workers)
        for _ in range(min(wanted - idle, self._size - len(self._workers))):
            self._workers.append(self._start())

    def _count_busy(self) -> int:
        """How many workers work on something."""
        return sum(worker.alive and worker.number is not None for worker in self._workers)

    def _collect(self, items: _PoolItems[Item]) -> None:
        """Wait until some worker has something to say."""
        for worker in self._wait([each for each in self._workers if not each.ready or each.number is not None]):
            worker.receive(items.finished)
        items.settle()


class _PoolItems(Generic[Item]):
    """The items by their numbers, kept until their outcomes are known: one that ended its worker is tried once more."""

    def __init__(self, items: Iterable[Item]) -> None:
        self.waiting: dict[int, Item] = {}
        self.queue: deque[int] = deque()
        """Numbers of items that no worker has."""
        self.finished: dict[int, Outcome[Any]] = {}
        self.taken = 0
        """How many items were taken so far."""
        self._numbered = enumerate(items)
        self._tried_again: set[int] = set()

    def take(self) -> bool:
        """Take the next item; whether there was one."""
        for number, item in self._numbered:
            self.waiting[number] = item
            self.queue.append(number)
            self.taken += 1
            return True
        return False

    def settle(self) -> None:
        """Forget the items whose outcomes are known; those whose workers died wait again, the first time."""
        for number in [number for number in self.waiting if number in self.finished]:
            outcome = self.finished[number]
            died = isinstance(outcome, Failure) and getattr(outcome.error, "code", None) == DIED
            if died and number not in self._tried_again:
                # another worker may do it: memory may have been short at that moment alone, or a machine was lost
                self._tried_again.add(number)
                del self.finished[number]
                self.queue.appendleft(number)
            else:
                self._tried_again.discard(number)
                del self.waiting[number]


def report_death(number: int, how: str, *, where: str = "") -> Failure:
    """The failure of an item whose worker in the pool died.

    Args:
        number: The number of the item.
        how: What became of the worker: "was ended by signal 9".
        where: The machine it was on, if it was another.
    """
    error = RecollectError(
        f"A worker process {how} while it worked on item {number}.",
        do="If memory ran out, use fewer workers; then run the same again.",
        code=DIED,
    )
    return Failure(error, f"{error}\n", where=where)


def make_outcome_portable(outcome: Outcome[Any]) -> bytes:
    """The outcome of a pool's worker as bytes for another process, in other words if it cannot be pickled."""
    if not isinstance(outcome, Failure):
        try:
            return pickle.dumps(outcome)
        except Exception as error:
            outcome = Failure(error, "What the work gave back cannot leave its process.\n")
    try:
        pickle.loads(pickle.dumps(outcome.error))  # noqa: S301 - our own bytes; some errors pickle but do not unpickle
    except Exception:
        kind = type(outcome.error).__name__
        outcome = Failure(RuntimeError(f"{kind}: {outcome.error}"), outcome.traceback, kind)
    return pickle.dumps(outcome)
