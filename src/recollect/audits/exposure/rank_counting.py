"""Rank counting: the exact number of secrets of a format that are at least as likely as one of them.

The tree of prefixes is searched depth first, in batches, and every branch whose cost already exceeds the secret's is
pruned: cost only grows. A memorised secret has few rivals, so few nodes are read. If the budget ends before the search
does, what is left is bounded: below a node of cost c there can be no more than 2^(L − c) secrets of cost ≤ L, because
probabilities add up to one, and no more than the format has.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from recollect.audits.exposure.prefix_tree import SLACK, PrefixNodes, PrefixTree
from recollect.errors import StoreError
from recollect.files import read_checked_json

BATCH = 1024
"""Nodes read at once."""

Progress = Callable[[int, int], None]
"""Called with how many steps were taken, and how many there may be."""


@dataclass(frozen=True, kw_only=True)
class Rank:
    """Proven bounds on the rank of a secret; equal if it was counted to the end."""

    low: int
    high: int
    steps: int
    """How many nodes were read."""

    @property
    def exact(self) -> bool:
        """Whether it was counted to the end."""
        return self.low == self.high


def count_rank(
    tree: PrefixTree, cost: float, *, max_steps: int, batch: int = BATCH, progress: Progress = lambda *_: None
) -> Rank:
    """The rank of a secret among all of its format, ties counted against the finding.

    Args:
        tree: The secrets of the format.
        cost: The secret's cost, as `PrefixTree.score` computes it.
        max_steps: How many nodes may be read.
        batch: How many are expanded at once; it changes no number.
        progress: Called with how far it is.
    """
    limit, began = cost + SLACK, tree.steps
    unread, complete = tree.expand_root(limit)
    counted, stack = len(complete), RankStack(unread)
    while len(stack) and tree.steps - began < max_steps:
        few = min(batch, max_steps - (tree.steps - began))
        children, complete = tree.expand(stack.pop(few), limit)
        counted += len(complete)
        stack.push(children)
        progress(tree.steps - began, max_steps)
    low = max(1, counted)
    high = min(tree.size, counted + _bound_unread_ranks(tree, stack.take_rest(), limit))
    return Rank(low=low, high=max(low, high), steps=tree.steps - began)


def _bound_unread_ranks(tree: PrefixTree, unread: PrefixNodes, limit: float) -> int:
    """How many secrets within the limit there can be at most below nodes that the count did not read."""
    if not len(unread):
        return 0
    likely = tree.automaton.nesting * np.exp2(np.minimum(limit - unread.cost, 1000.0))
    return int(np.minimum(np.ceil(likely), tree.automaton.count_secrets(unread.state)).sum() * (1 + 1e-9)) + 1


class RankStack:
    """Nodes still to be read, the last found first: never more than a batch's children per token of depth."""

    def __init__(self, nodes: PrefixNodes) -> None:
        self._blocks = [nodes]

    def __len__(self) -> int:
        return sum(len(block) for block in self._blocks)

    def push(self, nodes: PrefixNodes) -> None:
        """Put nodes on top."""
        if len(nodes):
            self._blocks.append(nodes)

    def pop(self, most: int) -> PrefixNodes:
        """Pop at most so many from the top."""
        taken = [self._blocks[-1].take(slice(0, 0))]
        while len(self) and most > 0:
            block = self._blocks.pop()
            cut = max(0, len(block) - most)
            if cut or not self._blocks:
                self._blocks.append(block.take(slice(0, cut)))
            taken.append(block.take(slice(cut, None)))
            most -= len(block)
        return PrefixNodes.concatenate(taken)

    def take_rest(self) -> PrefixNodes:
        """All that is left."""
        return PrefixNodes.concatenate(self._blocks)


def read_counted_rank(path: Path) -> Rank:
    """A rank that was counted before, from its file."""
    do, code = "Delete it; the rank is then counted again.", "rank_damaged"
    try:
        return Rank(**read_checked_json(path, do=do, code=code))
    except TypeError as error:
        raise StoreError(f"'{path}' is damaged: {error}.", do=do, code=code) from error
