"""A crew of worker processes that share one stream of items and hand back outcomes in order."""

from __future__ import annotations

import os
import pickle  # between our own processes only, never in a file
import signal
import sys
import threading
import warnings
from collections.abc import Callable, Iterable, Iterator
from multiprocessing import get_context, parent_process
from multiprocessing.connection import Connection, wait
from types import TracebackType
from typing import Any, Generic

from recollect.errors import RecollectError, show_warning
from recollect.execution.backend import Failure, Item, Outcome, Value, attempt
from recollect.execution.threads import set_environment, thread_variables
from recollect.printable import PrintableStream

DIED = "worker_died"
"""The code of the error of an item whose worker was ended while it worked on it."""
PREFETCH = 4
"""Items per worker that may be out or waiting for an earlier one to end: what bounds memory."""
_READY = "ready"


class WorkerPool(Generic[Item, Value]):
    """Worker processes, started as they are needed and ended, all of them, when the block ends however it ends."""

    def __init__(self, work: Callable[[Item], Value], *, workers: int, threads: int) -> None:
        self._work = work
        self._size = workers
        self._threads = threads
        self._workers: list[_Worker] = []

    def __enter__(self) -> WorkerPool[Item, Value]:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        for worker in self._workers:
            worker.terminate()

    def map(self, items: Iterable[Item]) -> Iterator[Outcome[Value]]:
        """One outcome per item, in the order of the items."""
        numbered = _Items(items)
        finished: dict[int, Outcome[Value]] = {}
        submitted = yielded = 0
        exhausted = False
        while True:
            while not exhausted and submitted < yielded + PREFETCH * self._size and (worker := self._get_idle_worker()):
                number, item = numbered.get_next()
                exhausted = number < 0
                if not exhausted:
                    submitted += 1
                    worker.submit(number, item, finished)
            if yielded in finished and numbered.is_done(yielded, finished[yielded]):
                yield finished.pop(yielded)
                yielded += 1
            elif yielded in finished:
                self._retry(yielded, numbered, finished)
            elif submitted > yielded:
                self._collect(finished)
            else:
                return

    def _retry(self, number: int, items: _Items[Item], finished: dict[int, Outcome[Value]]) -> None:
        """Let another worker try an item that ended its worker: memory may have been short at that moment alone."""
        while (worker := self._get_idle_worker()) is None:
            self._collect(finished)
        del finished[number]
        worker.submit(number, items.waiting[number], finished)

    def _get_idle_worker(self) -> _Worker | None:
        """A worker with nothing to do, started if the crew is not complete; None if all are busy."""
        self._workers = [worker for worker in self._workers if worker.alive]
        for worker in self._workers:
            if worker.number is None:
                return worker
        if len(self._workers) == self._size:
            return None
        self._workers.append(_Worker(self._work, self._threads))
        return self._workers[-1]

    def _collect(self, finished: dict[int, Outcome[Value]]) -> None:
        """Wait until some worker has something to say."""
        busy = {worker.connection: worker for worker in self._workers if worker.number is not None}
        for connection in wait(list(busy)):
            busy[connection].receive(finished)  # type: ignore[index]


class _Items(Generic[Item]):
    """The items by their numbers, kept until their outcomes are known: one that ended its worker is tried once more."""

    def __init__(self, items: Iterable[Item]) -> None:
        self.waiting: dict[int, Item] = {}
        self._numbered = enumerate(items)
        self._tried_again: set[int] = set()

    def get_next(self) -> tuple[int, Any]:
        """The next item and its number, which is negative if there is none."""
        number, item = next(self._numbered, (-1, None))
        if number >= 0:
            self.waiting[number] = item  # type: ignore[assignment]
        return number, item

    def is_done(self, number: int, outcome: Outcome[Any]) -> bool:
        """Whether this is what came of an item, or its worker died and it is to be tried again."""
        died = isinstance(outcome, Failure) and getattr(outcome.error, "code", None) == DIED
        if died and number not in self._tried_again:
            self._tried_again.add(number)
            return False
        self._tried_again.discard(number)
        self.waiting.pop(number, None)
        return True


class _Worker:
    """One process as seen from here: the item it works on, and the line to it."""

    def __init__(self, work: Callable[[Any], Any], threads: int) -> None:
        context = get_context("spawn")
        self.connection, child_end = context.Pipe()
        self.number: int | None = None
        self.alive = True
        self._ready = False
        self._process = context.Process(target=_serve, args=(child_end,), daemon=True)
        # the environment is what a process has before its first import
        with set_environment(thread_variables(threads)):
            self._process.start()
        child_end.close()
        self._unsent_work: Callable[[Any], Any] | None = work

    def submit(self, number: int, item: object, finished: dict[int, Any]) -> None:
        """Let it work on this item; an item that cannot be sent is a failure at once."""
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
        """Hear what it has to say: that it is ready, an outcome, or nothing any more."""
        assert self.number is not None  # noqa: S101 - only busy workers are heard
        try:
            message = self.connection.recv()
        except (EOFError, OSError):
            finished[self.number] = self._report_death(self.number)
            return
        if isinstance(message, str):
            self._ready = True
            return
        finished[self.number] = message
        self.number = None

    def terminate(self) -> None:
        """End it now, if it has not ended. What it was writing is whole or not there: nothing needs its goodbye."""
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
        if not self._ready:
            raise RecollectError(
                f"A worker process {how} before it could begin.",
                do="In a script of your own, start the work under `if __name__ == '__main__':`, "
                "because workers load the script anew; or use one worker.",
                code="worker_not_started",
            )
        error = RecollectError(
            f"A worker process {how} while it worked on item {number}.",
            do="If memory ran out, use fewer workers; then run the same again.",
            code=DIED,
        )
        return Failure(error, f"{error}\n")


def _serve(connection: Connection) -> None:
    """What a worker does: receive the work, then work on item after item until the line is closed."""
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
            _reply(connection, outcome)
        except OSError:
            # nobody is there any more to hear it
            return


def _reply(connection: Connection, outcome: Outcome[Any]) -> None:
    """Send the outcome, or a failure that says why it could not travel."""
    if isinstance(outcome, Failure):
        connection.send(_make_portable(outcome))
        return
    try:
        connection.send(outcome)
    except OSError:
        raise
    except Exception as error:
        connection.send(_make_portable(Failure(error, "What the work gave back cannot leave its process.\n")))


def _make_portable(failure: Failure) -> Failure:
    """The failure, in other words if its error is of a kind that does not survive the journey."""
    try:
        pickle.loads(pickle.dumps(failure.error))  # noqa: S301 - our own bytes; some errors pickle but do not unpickle
    except Exception:
        kind = type(failure.error).__name__
        return Failure(RuntimeError(f"{kind}: {failure.error}"), failure.traceback, kind)
    return failure


def _end_with_parent() -> None:
    """A parent that was killed cannot end its workers: they notice, and do not outlive it."""
    parent = parent_process()
    if parent is not None:
        wait([parent.sentinel])
        os._exit(1)
