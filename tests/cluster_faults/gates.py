"""A gate between a backend and its work: on however slow a machine, what is killed is killed in the midst of work."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil

READY, KILLED = "ready", "killed"
BEGUN, ENDED = "+", "-"


def list_finished(work: Path) -> list[Path]:
    """The shards and models that are whole."""
    return sorted([*work.glob("answers/*/*.parquet"), *work.glob("models/*/card.json")])


def wait_until(holds: Callable[[], Any], seconds: float) -> bool:
    """Wait until something holds; whether it did within so many seconds."""
    deadline = time.monotonic() + seconds
    while not holds():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.05)
    return True


def is_alive(process: psutil.Process) -> bool:
    """Whether a process has not ended, though nobody may have asked yet how it ended."""
    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def find_alive(numbers: set[int]) -> list[psutil.Process]:
    """Those of these processes that have not ended."""
    found = []
    for number in sorted(numbers):
        with suppress(psutil.NoSuchProcess):
            found.append(psutil.Process(number))
    return list(filter(is_alive, found))


@dataclass(frozen=True, kw_only=True)
class Gate:
    """Holds workers before an item: once so many are finished, until somebody is ready to kill; and before the last.

    It lets everything pass when its folder is gone.
    """

    work: Path
    control: Path
    """The folder by which processes speak with each other."""
    wanted: int
    """How many items are to be finished when something is killed."""
    total: int

    def open(self, name: str) -> None:
        """Let workers pass: `READY`, or `KILLED`."""
        (self.control / name).touch()

    @contextmanager
    def pass_through(self, item: Any) -> Iterator[None]:
        """In a worker: wait while the gate is closed; while this lasts, the item is noted as being worked on."""
        key = item if isinstance(item, str) else item[0].id  # a block of records is known by its first
        self._note(BEGUN, key)
        while self.control.exists() and self._is_closed():
            time.sleep(0.05)
        yield
        self._note(ENDED, key)

    def _note(self, what: str, key: str) -> None:
        """Write down that this process begins or ends something."""
        with suppress(FileNotFoundError), (self.control / "log").open("a", encoding="utf-8") as lines:
            lines.write(f"{what} {os.getpid()} {key}\n")

    def _is_closed(self) -> bool:
        """Whether workers have to wait now."""
        finished = len(list_finished(self.work))
        if finished >= max(1, self.wanted) and not (self.control / READY).exists():
            return True
        # the last item is begun when at most one other is not finished
        return finished >= self.total - 2 and not (self.control / KILLED).exists()

    def _read_log(self) -> list[tuple[str, int, str]]:
        """What was noted: whether it is a beginning or an end, the process and the item."""
        path = self.control / "log"
        lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
        return [(what, int(process), key) for what, process, key in (line.split(" ", 2) for line in lines)]

    def list_workers(self) -> list[psutil.Process]:
        """The workers that have begun something and live."""
        return find_alive({process for _, process, _ in self._read_log()})

    def count_begun_again(self) -> int:
        """How many times items were begun that had been begun before."""
        keys = [key for what, _, key in self._read_log() if what == BEGUN]
        return len(keys) - len(set(keys))

    def find_shared(self) -> set[str]:
        """Items that several living workers work on now."""
        current = dict[int, str]()
        for what, process, key in self._read_log():
            current[process] = key if what == BEGUN else ""
        if len(set(current.values()) - {""}) == sum(map(bool, current.values())):
            return set()
        keys = [current[process.pid] for process in find_alive({number for number, key in current.items() if key})]
        return {key for key in keys if keys.count(key) > 1}


@dataclass(frozen=True)
class GatedWork:
    """Work behind a gate, as it travels to workers."""

    work: Callable[[Any], Any]
    gate: Gate

    def __call__(self, item: Any) -> Any:
        """Wait for the gate, then work."""
        with self.gate.pass_through(item):
            return self.work(item)


class GatedBackend:
    """A backend whose workers pass a gate before each item; in all else it is the one within."""

    def __init__(self, backend: Any, gate: Gate) -> None:
        self._backend, self._gate = backend, gate

    def __getattr__(self, name: str) -> Any:
        return getattr(self._backend, name)

    def map(self, work: Callable[[Any], Any], items: Iterable[Any], *, threads: int | None = None) -> Iterator[Any]:
        """See `Backend.map`."""
        yield from self._backend.map(GatedWork(work, self._gate), items, threads=threads)
