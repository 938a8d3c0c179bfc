"""The exact rank of a secret: how many secrets of its format the model finds at least as likely.

The tree of beginnings is walked depth first, in batches, and every branch whose cost already exceeds the secret's is
cut: cost only grows. A memorised secret has few rivals, so few nodes are read. If the budget ends before the walk
does, what is left is bounded: below a node of cost c there can be no more than 2^(L − c) secrets of cost ≤ L, because
probabilities add up to one, and no more than the format has.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from recollect.audits.exposure.space import SLACK, Nodes, Space

AT_ONCE = 1024
"""Nodes read at once."""

Progress = Callable[[int, int], None]
"""Told how many steps were taken, and how many there may be."""


@dataclass(frozen=True, kw_only=True)
class Rank:
    """Certain bounds on the rank of a secret; equal if it was counted to the end."""

    low: int
    high: int
    steps: int
    """How many nodes were read."""

    @property
    def exact(self) -> bool:
        """Whether it was counted to the end."""
        return self.low == self.high


def rank_of(
    space: Space, cost: float, *, max_steps: int, at_once: int = AT_ONCE, progress: Progress = lambda *_: None
) -> Rank:
    """The rank of a secret among all of its format, ties counted against the finding.

    Args:
        space: The secrets of the format.
        cost: The secret's cost, as `Space.known` tells it.
        max_steps: How many nodes may be read.
        at_once: How many are read at once; it moves no number.
        progress: Told how far it is.
    """
    limit, began = cost + SLACK, space.steps
    left, complete = space.first(limit)
    counted, stack = len(complete), Stack(left)
    while len(stack) and space.steps - began < max_steps:
        few = min(at_once, max_steps - (space.steps - began))
        children, complete = space.expand(stack.pop(few), limit)
        counted += len(complete)
        stack.push(children)
        progress(space.steps - began, max_steps)
    low = max(1, counted)
    high = min(space.size, counted + _most_below(space, stack.rest(), limit))
    return Rank(low=low, high=max(low, high), steps=space.steps - began)


def _most_below(space: Space, left: Nodes, limit: float) -> int:
    """How many secrets within the limit there can be below nodes that were not read."""
    if not len(left):
        return 0
    likely = space.moves.nesting * np.exp2(np.minimum(limit - left.bits, 1000.0))
    return int(np.minimum(np.ceil(likely), space.moves.ahead(left.place)).sum() * (1 + 1e-9)) + 1


class Stack:
    """Nodes still to be read, the last found first: never more than a batch's children per symbol of depth."""

    def __init__(self, nodes: Nodes) -> None:
        self._blocks = [nodes]

    def __len__(self) -> int:
        return sum(len(block) for block in self._blocks)

    def push(self, nodes: Nodes) -> None:
        """Put nodes on top."""
        if len(nodes):
            self._blocks.append(nodes)

    def pop(self, most: int) -> Nodes:
        """Take at most so many from the top."""
        taken = [self._blocks[-1].take(slice(0, 0))]
        while len(self) and most > 0:
            block = self._blocks.pop()
            cut = max(0, len(block) - most)
            if cut or not self._blocks:
                self._blocks.append(block.take(slice(0, cut)))
            taken.append(block.take(slice(cut, None)))
            most -= len(block)
        return Nodes.joined(taken)

    def rest(self) -> Nodes:
        """All that is left."""
        return Nodes.joined(self._blocks)
