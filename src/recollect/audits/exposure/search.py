"""Searches for the most likely secrets of a format: shortest path with proof, brute force, beam and sampling.

Shortest path (section 7.1 of the paper, Dijkstra's algorithm): the cheapest nodes are read first. Since cost only
grows, the list is final once no node left can lead to a cheaper secret than the last one listed. Nodes are expanded in
batches, which is faster and loses nothing: the search continues until the proof is complete, not merely until a secret
is reached.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from recollect.audits.exposure.prefix_tree import SLACK, PrefixNodes, PrefixTree
from recollect.audits.exposure.rank_counting import BATCH, Progress, RankStack
from recollect.audits.exposure.token_automaton import Integers

_FIRST_BATCH = 16
"""Nodes in the first batch; each next one has twice as many, so that a secret which is easily found costs few steps."""


@dataclass(frozen=True, order=True)
class FoundSecret:
    """A complete secret."""

    cost: float
    """Bits from the root of the tree."""
    text: str


@dataclass(frozen=True, kw_only=True)
class SearchResult:
    """The most likely secrets that a search found, and what is proven about those it did not find."""

    secrets: tuple[FoundSecret, ...]
    """The most likely first."""
    floor: float
    """Every secret of the format that is not listed costs at least this much; −inf if that is not known."""
    steps: int
    """How many nodes were read."""
    completed: int
    """How many different complete secrets the search reached, at the least."""

    @property
    def proven(self) -> int:
        """How many of the list, from the top, are proven to be the most likely of all, in this order (or tied)."""
        return sum(secret.cost <= self.floor + SLACK for secret in self.secrets)


class SearchShortlist:
    """The n most likely complete secrets reached so far."""

    def __init__(self, tree: PrefixTree, n: int, *, ceiling: float = math.inf) -> None:
        self._tree, self._n = tree, n
        self.ceiling = ceiling
        """What no listed secret may cost, however few are listed."""
        self._heap: list[tuple[float, str]] = []
        self._texts: set[str] = set()
        self.completed = 0

    @property
    def limit(self) -> float:
        """What a secret must cost less than to be listed; the ceiling until the list is full."""
        return -self._heap[0][0] if len(self._heap) == self._n else self.ceiling

    def add(self, complete: PrefixNodes) -> None:
        """Add complete secrets; the same may be reached again."""
        self.completed += len(complete)
        for i in complete.cost.argsort(kind="stable").tolist():
            cost = float(complete.cost[i])
            if cost >= self.limit:
                return
            text = self._tree.spell(int(complete.parent[i]), int(complete.piece[i]))
            if text in self._texts:
                continue
            if len(self._heap) == self._n:
                self._texts.discard(heapq.heappop(self._heap)[1])
            heapq.heappush(self._heap, (-cost, text))
            self._texts.add(text)

    def build_result(self, *, floor: float, steps: int) -> SearchResult:
        """The list as it is now."""
        secrets = tuple(sorted(FoundSecret(-cost, text) for cost, text in self._heap))
        return SearchResult(secrets=secrets, floor=floor, steps=steps, completed=self.completed)


def search_exhaustively(
    tree: PrefixTree, top: int, *, max_steps: int, batch: int = BATCH, progress: Progress = lambda *_: None
) -> SearchResult:
    """Brute force: read every node; proven if the budget was enough."""
    best, began = SearchShortlist(tree, top), tree.steps
    children, complete = tree.expand_root()
    best.add(complete)
    stack = RankStack(children)
    while len(stack) and tree.steps - began < max_steps:
        children, complete = tree.expand(stack.pop(min(batch, max_steps - (tree.steps - began))))
        best.add(complete)
        stack.push(children)
        progress(tree.steps - began, max_steps)
    floor = best.limit if not len(stack) else -math.inf
    return best.build_result(floor=floor, steps=tree.steps - began)


def search_beam(
    tree: PrefixTree, top: int, *, width: int, max_steps: int, progress: Progress = lambda *_: None
) -> SearchResult:
    """Beam search: at every token keep only the `width` cheapest nodes; nothing is proven."""
    best, began = SearchShortlist(tree, top), tree.steps
    for _ in run_beam(tree, best, width=width, max_steps=max_steps):
        progress(tree.steps - began, max_steps)
    return best.build_result(floor=-math.inf, steps=tree.steps - began)


def run_beam(
    tree: PrefixTree, best: SearchShortlist, *, width: int, max_steps: int, shown_only: bool = False
) -> Iterator[None]:
    """Search the format keeping the `width` cheapest nodes of each depth; complete secrets go to the shortlist."""
    began = tree.steps
    children, complete = tree.expand_root(best.ceiling, shown_only=shown_only)
    best.add(complete)
    while len(children) and (left := max_steps - (tree.steps - began)) > 0:
        chosen = children.take(children.cost.argsort(kind="stable")[: min(width, left)])
        children, complete = tree.expand(chosen, best.ceiling, shown_only=shown_only)
        best.add(complete)
        yield


def search_by_sampling(
    tree: PrefixTree,
    top: int,
    rng: np.random.Generator,
    *,
    max_steps: int,
    batch: int = BATCH,
    progress: Progress = lambda *_: None,
) -> SearchResult:
    """Sampling: draw secrets as the model would write them, among tokens that the format allows; nothing is proven."""
    best, began, reached = SearchShortlist(tree, top), tree.steps, set[str]()
    children, complete = tree.expand_root()
    before = -1
    # where one token completes a secret no draw takes a step: as many draws as a batch has are enough then
    while before < tree.steps < began + max_steps:
        before, left = tree.steps, max_steps - (tree.steps - began)
        first = PrefixNodes.concatenate([children, complete])
        # every draw begins with the same choice, which was read once
        drawn = first.take(draw_choices(np.tile(first.cost, (min(batch, left), 1)), rng))
        while len(drawn):
            ended = tree.automaton.are_complete(drawn.state)
            best.add(drawn.take(ended))
            reached |= tree.spell_all(drawn.take(ended))
            going = drawn.take(~ended).take(slice(0, max_steps - (tree.steps - began)))
            if not len(going):
                break
            inner, last = tree.expand(going)
            drawn = _draw_children(PrefixNodes.concatenate([inner, last]), rng)
        progress(tree.steps - began, max_steps)
    best.completed = len(reached)
    return best.build_result(floor=-math.inf, steps=tree.steps - began)


def draw_choices(bits: NDArray[np.float64], rng: np.random.Generator) -> Integers:
    """One choice of a sampling search per row, with the probability that its cost implies (by Gumbel noise)."""
    chosen: Integers = np.argmax(-bits * math.log(2) + rng.gumbel(size=bits.shape), axis=1)
    return chosen


def _draw_children(children: PrefixNodes, rng: np.random.Generator) -> PrefixNodes:
    """One child of each parent in a sampling search, sampled from the model."""
    noisy = -children.cost * math.log(2) + rng.gumbel(size=len(children))
    order = np.lexsort((-noisy, children.parent))
    first = np.flatnonzero(np.diff(children.parent[order], prepend=-2))
    return children.take(order[first])


def search_shortest_paths(
    tree: PrefixTree,
    top: int,
    *,
    max_steps: int,
    ceiling: float = math.inf,
    batch: int = BATCH,
    progress: Progress = lambda *_: None,
) -> SearchResult:
    """The most likely secrets; `SearchResult.proven` says how many are proven to be so when the budget ends.

    Args:
        tree: The secrets of the format.
        top: How many are wanted.
        max_steps: How many nodes may be read.
        ceiling: Secrets that cost so many bits or more are not searched for.
        batch: How many are expanded at once; it changes no proven number.
        progress: Called with how far it is.
    """
    best, queue, began, few = SearchShortlist(tree, top, ceiling=ceiling), SearchQueue(), tree.steps, _FIRST_BATCH
    # a narrow beam first: whatever costs more than what it finds need not be kept
    for _ in run_beam(tree, best, width=max(top, _FIRST_BATCH), max_steps=max_steps // 2, shown_only=True):
        progress(tree.steps - began, max_steps)
    by_beam, best.completed = best.completed, 0  # what the beam reached is reached again
    children, complete = tree.expand_root(best.limit)
    best.add(complete)
    queue.push(children)
    while queue.cheapest < best.limit and tree.steps - began < max_steps:
        most = min(few, batch, max_steps - (tree.steps - began))
        children, complete = tree.expand(queue.pop(most, below=best.limit), best.limit)
        best.add(complete)
        queue.push(children)
        few *= 2
        progress(tree.steps - began, max_steps)
    best.completed = max(by_beam, best.completed)
    return best.build_result(floor=min(queue.cheapest, best.limit), steps=tree.steps - began)


class SearchQueue:
    """Nodes still to be read, the cheapest first. Blocks are sorted when they come in, and only heads compared."""

    def __init__(self) -> None:
        self._blocks: dict[int, PrefixNodes] = {}
        self._heads: list[tuple[float, int, int]] = []
        self._numbered = 0

    @property
    def cheapest(self) -> float:
        """What the cheapest node costs; infinite if there is none."""
        return self._heads[0][0] if self._heads else np.inf

    def push(self, nodes: PrefixNodes) -> None:
        """Add nodes."""
        if not len(nodes):
            return
        self._blocks[self._numbered] = nodes.take(nodes.cost.argsort(kind="stable"))
        heapq.heappush(self._heads, (float(self._blocks[self._numbered].cost[0]), self._numbered, 0))
        self._numbered += 1

    def pop(self, most: int, *, below: float) -> PrefixNodes:
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
        found = PrefixNodes.concatenate([self._blocks[number].take(np.array(rows)) for number, rows in taken.items()])
        for number in taken:
            if all(head[1] != number for head in self._heads):
                del self._blocks[number]
        return found
