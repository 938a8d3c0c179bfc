"""The local backend: this process, or several that are spawned, never forked."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from recollect.checks import check_at_least
from recollect.execution.backend import Item, Outcome, Value, attempt
from recollect.execution.threads import divide_threads, use_threads
from recollect.execution.worker_pool import WorkerPool


@dataclass(frozen=True, kw_only=True)
class LocalBackend:
    """Works on this machine; with one worker, in this very process.

    >>> [outcome.value for outcome in LocalBackend().map(abs, [-1, 2])]
    [1, 2]
    """

    workers: int = 1
    threads: int = 0
    """Threads of each worker; 0 divides the cores among the workers."""

    def __post_init__(self) -> None:
        check_at_least(1, workers=self.workers)
        check_at_least(0, threads=self.threads)
        object.__setattr__(self, "threads", self.threads or divide_threads(self.workers))

    def map(
        self, work: Callable[[Item], Value], items: Iterable[Item], *, threads: int | None = None
    ) -> Iterator[Outcome[Value]]:
        """One outcome per item, in order; see `Backend.map`.

        A worker that dies, for want of memory or by a signal, costs the item it worked on and nothing else.
        """
        threads = threads or self.threads
        if self.workers > 1:
            with WorkerPool(work, workers=self.workers, threads=threads) as pool:
                yield from pool.map(items)
            return
        for item in items:
            with use_threads(threads):
                outcome = attempt(work, item)
            yield outcome
