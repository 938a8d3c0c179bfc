"""Shortest path: the most likely secrets of a format, with proof (section 7.1 of the paper, Dijkstra's algorithm).

The cheapest nodes are read first. Since cost only grows, the list is final once no node left can lead to a cheaper
secret than the last one listed. Nodes are expanded in batches, which is faster and loses nothing: the search continues
until the proof is complete, not merely until a secret is reached.
"""

from __future__ import annotations

import heapq

import numpy as np

from recollect.audits.exposure.prefix_tree import Nodes, PrefixTree
from recollect.audits.exposure.rank_counting import BATCH, Progress
from recollect.audits.exposure.search import SearchResult, Shortlist, run_beam

_FIRST_BATCH = 16
"""Nodes in the first batch; each next one has twice as many, so that a secret which is easily found costs few steps."""


def find_shortest_paths(
    tree: PrefixTree, top: int, *, max_steps: int, batch: int = BATCH, progress: Progress = lambda *_: None
) -> SearchResult:
    """The most likely secrets; `SearchResult.proven` says how many are proven to be so when the budget ends.

    Args:
        tree: The secrets of the format.
        top: How many are wanted.
        max_steps: How many nodes may be read.
        batch: How many are expanded at once; it changes no proven number.
        progress: Called with how far it is.
    """
    best, queue, began, few = Shortlist(tree, top), Queue(), tree.steps, _FIRST_BATCH
    # a narrow beam first: whatever costs more than what it finds need not be kept
    for _ in run_beam(tree, best, width=max(top, _FIRST_BATCH), max_steps=max_steps // 2):
        progress(tree.steps - began, max_steps)
    queue.push(tree.expand_root(best.limit)[0])
    while queue.cheapest < best.limit and tree.steps - began < max_steps:
        most = min(few, batch, max_steps - (tree.steps - began))
        children, complete = tree.expand(queue.pop(most, below=best.limit), best.limit)
        best.add(complete)
        queue.push(children)
        few *= 2
        progress(tree.steps - began, max_steps)
    return best.build_result(floor=min(queue.cheapest, best.limit), steps=tree.steps - began)


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
        self._blocks[self._numbered] = nodes.take(nodes.cost.argsort(kind="stable"))
        heapq.heappush(self._heads, (float(self._blocks[self._numbered].cost[0]), self._numbered, 0))
        self._numbered += 1

    def pop(self, most: int, *, below: float) -> Nodes:
        """Pop the cheapest, at most so many, of those that cost less."""
        taken: dict[int, list[int]] = {}
        while most > 0 and self.cheapest < below:
            _, number, row = self._heads[0]
            taken.setdefault(number, []).append(row)
            most -= 1
            block = self._blocks[number]
            if row + 1 < len(block):
                heapq.heapreplace(self._heads, (float(block.cost[row + 1]), number, row + 1))
            else:
                heapq.heappop(self._heads)
        found = Nodes.concatenate([self._blocks[number].take(np.array(rows)) for number, rows in taken.items()])
        for number in taken:
            if all(head[1] != number for head in self._heads):
                del self._blocks[number]
        return found
