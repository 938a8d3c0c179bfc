"""The local backend: this process, or several worker processes that are spawned, never forked."""

from __future__ import annotations

import os
import pickle  # between our own processes only, never in a file
import signal
import sys
import threading
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from functools import partial
from multiprocessing import get_context, parent_process
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import Any

from recollect.checks import check_at_least
from recollect.errors import RecollectError, show_warning
from recollect.execution.backend import Failure, Item, Outcome, Value, attempt
from recollect.execution.pool import Pool, make_outcome_portable, report_death
from recollect.execution.threads import divide_threads, set_environment, thread_variables, use_threads
from recollect.printable import PrintableStream

_READY = "ready"


class ProcessWorker:
    """One process as seen from here; it is given its first item before it has begun."""

    ready = True

    def __init__(self, work: Callable[[Any], Any], threads: int) -> None:
        context = get_context("spawn")
        self.connection, child_end = context.Pipe()
        self.number: int | None = None
        self.alive = True
        self._has_begun = False
        self._process = context.Process(target=_serve_process, args=(child_end,), daemon=True)
        # the environment is what a process has before its first import
        with set_environment(thread_variables(threads)):
            self._process.start()
        child_end.close()
        self._unsent_work: Callable[[Any], Any] | None = work

    def submit(self, number: int, item: object, finished: dict[int, Any]) -> None:
        """Let the local process work on this item; an item that cannot be sent is a failure at once."""
        try:
            if self._unsent_work is not None:
                self.connection.send(self._unsent_work)
                self._unsent_work = None
            self.connection.send(item)
            self.number = number
        except OSError:
            finished[number] = self._report_death(number)
        except Exception as error:
            finished[number] = Failure(error, f"Item {number} cannot be sent to a worker process.\n")

    def receive(self, finished: dict[int, Any]) -> None:
        """What the local process says: that it is ready, an outcome, or nothing any more."""
        assert self.number is not None  # noqa: S101 - only busy workers are heard
        try:
            message = self.connection.recv()
        except (EOFError, OSError):
            finished[self.number] = self._report_death(self.number)
            return
        if isinstance(message, str):
            self._has_begun = True
            return
        finished[self.number] = pickle.loads(message)  # noqa: S301 - of our own process
        self.number = None

    def terminate(self) -> None:
        """End the local process now, if it has not ended; what it was writing is whole or not there."""
        if not self.alive:
            return
        self._process.kill()
        self._process.join()
        self._process.close()
        self.connection.close()
        self.alive = False

    def _report_death(self, number: int) -> Failure:
        """What to say of a worker that is gone, which is also cleared away."""
        self._process.join()
        code = self._process.exitcode or 0
        how = f"was ended by signal {-code} ({signal.strsignal(-code)})" if code < 0 else f"ended with status {code}"
        self.terminate()
        if not self._has_begun:
            raise RecollectError(
                f"A worker process {how} before it could begin.",
                do="In a script of your own, start the work under `if __name__ == '__main__':`, "
                "because workers load the script anew; or use one worker.",
                code="worker_not_started",
            )
        return report_death(number, how)


def wait_for_processes(workers: Sequence[ProcessWorker]) -> list[ProcessWorker]:
    """Those local worker processes that have something to say; waits until there is one."""
    connections = {worker.connection: worker for worker in workers}
    return [connections[each] for each in wait(list(connections))]  # type: ignore[index]


def _serve_process(connection: Connection) -> None:
    """What a local worker process does: receive the work, then work on item after item."""
    # Ctrl-C reaches every process of the terminal; the parent decides, and ends its workers
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_parent, daemon=True).start()
    warnings.showwarning = show_warning
    if sys.stderr is not None:
        sys.stderr = PrintableStream(sys.stderr)
    connection.send(_READY)
    work = attempt(Connection.recv, connection)
    while True:
        item = attempt(Connection.recv, connection)
        if isinstance(item, Failure) and isinstance(item.error, EOFError):
            return
        if isinstance(work, Failure) or isinstance(item, Failure):
            outcome: Outcome[Any] = work if isinstance(work, Failure) else item
        else:
            outcome = attempt(work.value, item.value)
        try:
            connection.send(make_outcome_portable(outcome))
        except OSError:
            # nobody is there any more to hear it
            return


def _end_with_parent() -> None:
    """Let a local worker process end when its parent was killed."""
    parent = parent_process()
    if parent is not None:
        wait([parent.sentinel])
        os._exit(1)


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
            with Pool[Item, Value](start, wait_for_processes, size=self.workers) as pool:
                yield from pool.map(items)
            return
        for item in items:
            with use_threads(threads):
                outcome = attempt(work, item)
            yield outcome
