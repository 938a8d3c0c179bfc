"""How many requests are under way at once: more while all goes well, half as many when the server is overloaded."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import anyio

_LOOK_SECONDS = 0.25


class Limiter:
    """Slots for requests of one server, whose number adapts, and a limit on what they weigh together."""

    def __init__(self, most: int, *, heaviest: float) -> None:
        """Begin with half of the slots.

        Args:
            most: Requests at once.
            heaviest: What all that are under way may weigh together; a heavier one is sent alone.
        """
        self._most, self._heaviest = most, heaviest
        self._allowed = max(1.0, most / 2)
        self._active, self._weight = 0, 0.0
        self._resume = 0.0
        self._waiting: deque[anyio.Event] = deque()

    @asynccontextmanager
    async def slot(self, weight: float, is_over: Callable[[], bool]) -> AsyncIterator[None]:
        """Wait for a free slot, and hold it.

        Args:
            weight: What the request weighs.
            is_over: Whether it need not be sent any more, so that no pause is waited for.
        """
        # one event loop serves a server: between two awaits nobody else takes a slot, and a free one costs no await
        while not self._fits(weight):
            freed = anyio.Event()
            self._waiting.append(freed)
            await freed.wait()
        self._active += 1
        self._weight += weight
        try:
            while (pause := self._resume - time.monotonic()) > 0 and not is_over():
                await anyio.sleep(min(pause, _LOOK_SECONDS))
            yield
        finally:
            self._active -= 1
            self._weight -= weight
            self._wake_all()

    def report_success(self) -> None:
        """One more slot for every round of answers."""
        self._allowed = min(self._most, self._allowed + 1 / self._allowed)

    def report_overload(self, wait: float) -> None:
        """Half as many slots, and nothing at all for so many seconds."""
        self._allowed = max(1.0, self._allowed / 2)
        self._resume = max(self._resume, time.monotonic() + wait)

    def _fits(self, weight: float) -> bool:
        """Whether a request may go now."""
        if self._active == 0:
            return True
        return self._active < int(self._allowed) and self._weight + weight <= self._heaviest

    def _wake_all(self) -> None:
        """Let all that wait look again: what one of them weighs decides whether it fits."""
        while self._waiting:
            self._waiting.popleft().set()
