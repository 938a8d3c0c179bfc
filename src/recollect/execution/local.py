"""The local backend: this process, or several that are spawned, never forked."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from recollect.checks import check_at_least
from recollect.execution.backend import Item, Outcome, Value, attempt
from recollect.execution.local_workers import ProcessWorker, wait_for_workers
from recollect.execution.pool import Pool
from recollect.execution.threads import divide_threads, use_threads


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

    @property
    def in_process(self) -> bool:
        """With one worker, this process is it."""
        return self.workers == 1

    def prepare(self) -> None:
        """Nothing: there is always this machine."""

    def hold(self, folder: Path, *, purpose: str) -> AbstractContextManager[None]:
        """Nothing more: on one machine, the locks of files are enough."""
        return nullcontext()

    def map(
        self, work: Callable[[Item], Value], items: Iterable[Item], *, threads: int | None = None
    ) -> Iterator[Outcome[Value]]:
        """One outcome per item, in order; see `Backend.map`.

        An item whose worker dies, for want of memory or by a signal, is tried once more by another.
        """
        threads = threads or self.threads
        if self.workers > 1:
            start = partial(ProcessWorker, work, threads)
            with Pool[Item, Value](start, wait_for_workers, size=self.workers) as pool:
                yield from pool.map(items)
            return
        for item in items:
            with use_threads(threads):
                outcome = attempt(work, item)
            yield outcome
