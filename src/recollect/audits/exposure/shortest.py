"""Shortest path: the likeliest secrets of a format, with proof (section 7.1 of the paper, Dijkstra's algorithm).

The cheapest nodes are read first. Since cost only grows, the list is final once no node left can lead to a cheaper
secret than the last one listed. Nodes are read in batches, which is faster and gives up nothing: the search goes on
until the proof is complete, not merely until a secret was met.
"""

from __future__ import annotations

import heapq

import numpy as np

from recollect.audits.exposure.exact import AT_ONCE, Progress
from recollect.audits.exposure.found import Best, Found, narrowed
from recollect.audits.exposure.space import Nodes, Space

_AT_FIRST = 16
"""Nodes in the first batch; each next one has twice as many, so that a secret which lies open costs few steps."""


def shortest_paths(
    space: Space, top: int, *, max_steps: int, at_once: int = AT_ONCE, progress: Progress = lambda *_: None
) -> Found:
    """The likeliest secrets; those not proven to be so when the budget ends are told apart by `Found.proven`.

    Args:
        space: The secrets of the format.
        top: How many are wanted.
        max_steps: How many nodes may be read.
        at_once: How many are read at once; it moves no proven number.
        progress: Told how far it is.
    """
    best, queue, began, batch = Best(space, top), Queue(), space.steps, _AT_FIRST
    # a narrow beam first: whatever costs more than what it finds need not be kept
    for _ in narrowed(space, best, width=max(top, _AT_FIRST), max_steps=max_steps // 2):
        progress(space.steps - began, max_steps)
    queue.push(space.first(best.worst)[0])
    while queue.cheapest < best.worst and space.steps - began < max_steps:
        few = min(batch, at_once, max_steps - (space.steps - began))
        children, complete = space.expand(queue.pop(few, below=best.worst), best.worst)
        best.meet(complete)
        queue.push(children)
        batch *= 2
        progress(space.steps - began, max_steps)
    return best.found(floor=min(queue.cheapest, best.worst), steps=space.steps - began)


class Queue:
    """Nodes still to be read, the cheapest first. Blocks are sorted when they come in, and only heads compared."""

    def __init__(self) -> None:
        self._blocks: dict[int, Nodes] = {}
        self._heads: list[tuple[float, int, int]] = []
        self._numbered = 0

    @property
    def cheapest(self) -> float:
        """What the cheapest node costs; infinite if there is none."""
        return self._heads[0][0] if self._heads else np.inf

    def push(self, nodes: Nodes) -> None:
        """Add nodes."""
        if not len(nodes):
            return
        self._blocks[self._numbered] = nodes.take(nodes.bits.argsort(kind="stable"))
        heapq.heappush(self._heads, (float(self._blocks[self._numbered].bits[0]), self._numbered, 0))
        self._numbered += 1

    def pop(self, most: int, *, below: float) -> Nodes:
        """Take the cheapest, at most so many, of those that cost less."""
        taken: dict[int, list[int]] = {}
        while most > 0 and self.cheapest < below:
            _, number, row = self._heads[0]
            taken.setdefault(number, []).append(row)
            most -= 1
            block = self._blocks[number]
            if row + 1 < len(block):
                heapq.heapreplace(self._heads, (float(block.bits[row + 1]), number, row + 1))
            else:
                heapq.heappop(self._heads)
        found = Nodes.joined([self._blocks[number].take(np.array(rows)) for number, rows in taken.items()])
        for number in taken:
            if all(head[1] != number for head in self._heads):
                del self._blocks[number]
        return found
