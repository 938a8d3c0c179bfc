"""What an extraction found: complete secrets, the likeliest first."""

from __future__ import annotations

import heapq
import math
from collections.abc import Iterator
from dataclasses import dataclass

from recollect.audits.exposure.space import SLACK, Nodes, Space


@dataclass(frozen=True, order=True)
class Extracted:
    """A complete secret."""

    cost: float
    """Bits from the root of the tree."""
    text: str


@dataclass(frozen=True, kw_only=True)
class Found:
    """The likeliest secrets that a search found, and what can be said of those it did not."""

    secrets: tuple[Extracted, ...]
    """The likeliest first."""
    floor: float
    """Every secret of the format that is not listed costs at least this much; −inf if that is not known."""
    steps: int
    """How many nodes were read."""
    completed: int
    """How many complete secrets were met."""

    @property
    def proven(self) -> int:
        """How many of the list, from the top, are certainly the likeliest there are, in this order (or tied)."""
        return sum(secret.cost <= self.floor + SLACK for secret in self.secrets)


class Best:
    """The n likeliest complete secrets met so far."""

    def __init__(self, space: Space, n: int) -> None:
        self._space, self._n = space, n
        self._heap: list[tuple[float, str]] = []
        self._texts: set[str] = set()
        self.completed = 0

    @property
    def worst(self) -> float:
        """What a secret must cost less than to be listed; no limit until the list is full."""
        return -self._heap[0][0] if len(self._heap) == self._n else math.inf

    def meet(self, complete: Nodes) -> None:
        """Take complete secrets into account; the same may be met again."""
        self.completed += len(complete)
        for i in complete.bits.argsort(kind="stable").tolist():
            cost = float(complete.bits[i])
            if cost >= self.worst:
                return
            text = self._space.text(int(complete.line[i]), int(complete.move[i]))
            if text in self._texts:
                continue
            if len(self._heap) == self._n:
                self._texts.discard(heapq.heappop(self._heap)[1])
            heapq.heappush(self._heap, (-cost, text))
            self._texts.add(text)

    def found(self, *, floor: float, steps: int) -> Found:
        """The list as it stands."""
        secrets = tuple(sorted(Extracted(-cost, text) for cost, text in self._heap))
        return Found(secrets=secrets, floor=floor, steps=steps, completed=self.completed)


def narrowed(space: Space, best: Best, *, width: int, max_steps: int) -> Iterator[None]:
    """Walk through the format keeping the `width` cheapest nodes of each depth; `best` meets what is complete."""
    began = space.steps
    children, complete = space.first()
    best.meet(complete)
    while len(children) and (left := max_steps - (space.steps - began)) > 0:
        chosen = children.take(children.bits.argsort(kind="stable")[: min(width, left)])
        children, complete = space.expand(chosen)
        best.meet(complete)
        yield
