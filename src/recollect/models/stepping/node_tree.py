"""The tree of continuations: parent and token of every node, and what is remembered of it as far as memory allows."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

Nodes = NDArray[np.int64]
Rows = tuple[Tensor, ...]
"""What a model remembers of some nodes: tensors with one row per node."""


class NodeTree:
    """Parents, tokens, depths and origins of all nodes: 16 bytes each, kept for ever."""

    def __init__(self) -> None:
        self._table = np.empty((4, 1024), dtype=np.int32)
        self._size = 0

    def __len__(self) -> int:
        return self._size

    @property
    def parent(self) -> NDArray[np.int32]:
        """Where each node hangs; −1 for a root."""
        return self._column(0)

    @property
    def token(self) -> NDArray[np.int32]:
        """The token that leads from the parent to the node."""
        return self._column(1)

    @property
    def depth(self) -> NDArray[np.int32]:
        """How many tokens a node is away from its root."""
        return self._column(2)

    @property
    def origin(self) -> NDArray[np.int32]:
        """Which of the starts the node comes from."""
        return self._column(3)

    def add_root(self, token_id: int, origin: int) -> Nodes:
        """A new root."""
        return self._append(np.array([[-1], [token_id], [0], [origin]]))

    def add_children(self, parents: Nodes, token_ids: NDArray[np.int64]) -> Nodes:
        """New nodes, one below each parent."""
        return self._append(np.stack([parents, token_ids, self.depth[parents] + 1, self.origin[parents]]))

    def get_paths(self, nodes: NDArray[np.integer[Any]], count: int) -> Nodes:
        """The last so many nodes on the way to each node, itself last [nodes, count]; −1 before a root."""
        line = np.full((len(nodes), count), -1, dtype=np.int64)
        for i in range(count - 1, -1, -1):
            line[:, i] = nodes
            nodes = np.where(nodes >= 0, self.parent[nodes], -1)
        return line

    def _column(self, row: int) -> NDArray[np.int32]:
        """One number of every node."""
        column: NDArray[np.int32] = self._table[row]
        return column

    def _append(self, columns: NDArray[np.int64]) -> Nodes:
        """Write new columns at the end, which moves away as needed."""
        size = self._size + columns.shape[1]
        if size > self._table.shape[1]:
            room = np.empty((4, max(size, 2 * self._table.shape[1]) - self._table.shape[1]), dtype=np.int32)
            self._table = np.concatenate([self._table, room], axis=1)
        self._table[:, self._size : size] = columns
        self._size, begin = size, self._size
        return np.arange(begin, size)


class NodeStateCache:
    """What a model remembers of nodes, in large tensors, up to a limit: then the oldest is overwritten."""

    def __init__(self, limit: int) -> None:
        """Keep at most so many bytes."""
        self._limit = limit
        self._kept: Rows = ()
        self._next = 0
        self._slot_of = np.full(1024, -1, dtype=np.int64)
        """Where in the tensors a node's row is; −1 if it is not there."""
        self._owner = np.empty(0, dtype=np.int64)
        """Whose row is there; −1 for nobody's."""

    def clear(self) -> None:
        """Forget the states of all nodes."""
        self._slot_of[:], self._owner[:], self._next = -1, -1, 0

    def contains(self, nodes: Nodes) -> NDArray[np.bool_]:
        """Which nodes have a state here; −1 is none."""
        return (nodes >= 0) & (self._get_slots(nodes) >= 0)

    def get(self, nodes: Nodes) -> Rows:
        """The states of nodes, shaped like `nodes`; all must be remembered."""
        slots = torch.from_numpy(self._slot_of[nodes.ravel()])
        rows = (kept.index_select(0, slots.to(kept.device)) for kept in self._kept)
        return tuple(row.view(*nodes.shape, *row.shape[1:]) for row in rows)

    def put(self, nodes: Nodes, rows: Rows) -> None:
        """Remember the states of these nodes, each given once, at the cost of the oldest."""
        if not len(nodes):
            return
        if not self._kept:
            # All at once: on a processor, memory that was never written to costs nothing, and nothing is ever moved.
            capacity = self._limit // max(1, sum(row[0].nbytes for row in rows))
            self._kept = tuple(row.new_empty(capacity, *row.shape[1:]) for row in rows)
            self._owner = np.full(capacity, -1, dtype=np.int64)
        capacity = len(self._owner)
        nodes, rows = nodes[:capacity], tuple(row[:capacity] for row in rows)
        while len(nodes):
            piece = min(len(nodes), len(self._owner) - self._next)
            span = slice(self._next, self._next + piece)
            for kept, row in zip(self._kept, rows, strict=True):
                kept[span] = row[:piece]
            self._register(nodes[:piece], span)
            nodes, rows = nodes[piece:], tuple(row[piece:] for row in rows)
            self._next = span.stop % capacity

    def _register(self, nodes: Nodes, span: slice) -> None:
        """Note whose rows are here now; what was here is forgotten, and so is an older row of the same node."""
        before = self._owner[span]
        self._slot_of[before[before >= 0]] = -1
        self._get_slots(nodes)
        older = self._slot_of[nodes]
        self._owner[older[older >= 0]] = -1
        self._owner[span] = nodes
        self._slot_of[nodes] = np.arange(span.start, span.stop)

    def _get_slots(self, nodes: Nodes) -> NDArray[np.int64]:
        """Where these nodes are."""
        missing = int(nodes.max(initial=-1)) + 1 - len(self._slot_of)
        if missing > 0:
            room = np.full(max(missing, len(self._slot_of)), -1, dtype=np.int64)
            self._slot_of = np.concatenate([self._slot_of, room])
        return self._slot_of[nodes]
