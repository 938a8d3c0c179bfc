"""The space of a format's secrets as a tree that a model is walked through, many nodes at a time.

A node is a beginning of a secret; its cost is the number of bits by which the model was surprised on the way there.
A child's cost is known once its parent has been read, so the last symbol of a secret costs no step.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from recollect import labels
from recollect.audits.exposure.moves import Moves, Numbers
from recollect.corpora.canaries.formats import Format
from recollect.errors import ModelError
from recollect.models.model import Frontier, Stepper
from recollect.streams import stream

SLACK = 1e-4
"""Costs that differ by fewer bits are equal: single precision tells no more, and a tie counts against the finding."""
_TRIED = 64
"""Random secrets with which it is tried whether the format can be walked in this model's symbols."""


@dataclass(frozen=True, eq=False)
class Nodes:
    """Nodes that have not been read yet: one entry each."""

    above: Numbers
    """The parent, as the stepper numbers it."""
    line: Numbers
    """The parent, as the tree numbers it."""
    move: Numbers
    """How the parent goes on to the node."""
    place: Numbers
    """Where in the format it stands."""
    bits: NDArray[np.float64]
    """Its cost."""

    def __len__(self) -> int:
        return len(self.bits)

    def take(self, rows: Numbers | slice | NDArray[np.bool_]) -> Nodes:
        """Some of them."""
        return Nodes(**{each.name: getattr(self, each.name)[rows] for each in fields(self)})

    @staticmethod
    def joined(parts: Sequence[Nodes]) -> Nodes:
        """All of several."""
        names = [each.name for each in fields(Nodes)]
        return Nodes(**{name: np.concatenate([getattr(part, name) for part in parts]) for name in names})


@dataclass(frozen=True)
class Known:
    """What the model makes of one secret."""

    bits: float
    """Its log-perplexity: from the first symbol that reaches into a slot to the end of the format."""
    cost: float
    """From the root of the tree, by which secrets are compared; more than `bits` by the same for all."""


class Space:
    """The secrets of one format in the symbols of one model.

    The root is the last symbol before the secret that all secrets share, whatever they are filled with. Where a text
    can be written in several ways, only that counts in which the tokenizer writes it.
    """

    def __init__(self, stepper: Stepper, format: Format, *, source: str | None = None) -> None:
        """Find the root and read it.

        Args:
            stepper: The model.
            format: The format of the secrets.
            source: For encoder–decoders: the source to which the secret is the target.

        Raises:
            ModelError: The model's symbols cannot spell the format.
        """
        self.format, self._stepper = format, stepper
        self.moves = Moves(format, stepper.spelling)
        self._root, self._before, self._begin = self._rooted()
        self._start = stepper.start(self._root, source=source)
        self._history = History()
        self.steps = 1
        """How many nodes were read."""

    @property
    def size(self) -> int:
        """|R|."""
        return self.format.size

    def first(self, limit: float = math.inf) -> tuple[Nodes, Nodes]:
        """The children of the root, as `expand` gives them."""
        following = self._stepper.following(self._start, among=self.moves.among)
        place, none = np.array([self._begin]), np.array([-1])
        return self._children(self._start.nodes, none, place, np.zeros(1), following, limit)

    def expand(self, nodes: Nodes, limit: float = math.inf) -> tuple[Nodes, Nodes]:
        """Read nodes: their children that cost no more than the limit, first those that go on, then complete secrets.

        One whose secret is complete but might go on is among both.
        """
        frontier, following = self._stepper.step(
            Frontier(nodes.above),
            np.arange(len(nodes)),  # type: ignore[arg-type]
            self.moves.symbols[nodes.move],  # type: ignore[arg-type]
            among=self.moves.among,
            last=self.moves.are_last(nodes.place),
        )
        self.steps += len(nodes)
        lines = self._history.grow(nodes.line, nodes.move)
        return self._children(frontier.nodes, lines, nodes.place, nodes.bits, following, limit)

    def text(self, line: int, move: int) -> str:
        """What is written on the way to a child."""
        path = [*self._history.path(line), move]
        written = self._before + "".join(self.moves.ways[step] for step in path)
        return written.encode("latin-1").decode("utf-8", "replace")

    def known(self, text: str) -> Known:
        """What the model makes of a secret; a whole text of the format.

        Raises:
            ModelError: The model's symbols cannot spell it.
        """
        path = self._path(text)[len(self._root) - self._heads :]
        place, nodes = self._begin, None
        border, cost, spelled, before = len(self.moves.walk.format.before), 0.0, len(self._before), 0.0
        for move, there in path:
            children, complete = self.first() if nodes is None else self.expand(nodes)
            every = Nodes.joined([children, complete])
            nodes = every.take(np.flatnonzero((every.move == move) & (every.place == there))[:1])
            cost, place = float(nodes.bits[0]), there
            spelled += len(self.moves.ways[move])
            if spelled <= border:
                before = cost
        assert self.moves.is_complete(place)  # noqa: S101 - `_path` ends there
        return Known(bits=cost - before, cost=cost)

    def _children(
        self,
        above: Numbers,
        lines: Numbers,
        places: Numbers,
        bits: NDArray[np.float64],
        following: NDArray[Any],
        limit: float,
    ) -> tuple[Nodes, Nodes]:
        """The children of nodes of which it is known what may follow."""
        inner, complete = [], []
        for place in np.unique(places).tolist():
            fan = self.moves.at(place)
            rows = np.flatnonzero(places == place)
            costs = bits[rows, None] - following[np.ix_(rows, fan.columns)].astype(np.float64) / math.log(2)
            row, way = np.nonzero(costs <= limit)
            found = Nodes(
                above=above[rows[row]],
                line=lines[rows[row]],
                move=fan.moves[way],
                place=fan.places[way],
                bits=costs[row, way],
            )
            inner.append(found.take(fan.inner[way]))
            complete.append(found.take(fan.complete[way]))
        return Nodes.joined(inner), self._canonical(Nodes.joined(complete))

    def _canonical(self, complete: Nodes) -> Nodes:
        """Those that are written as the tokenizer writes them."""
        if self.moves.unique or not len(complete):
            return complete
        symbols = self.moves.symbols
        kept = np.zeros(len(complete), dtype=np.bool_)
        for i, (line, move) in enumerate(zip(complete.line.tolist(), complete.move.tolist(), strict=True)):
            path = [*self._root, *symbols[[*self._history.path(line), move]].tolist()]
            kept[i] = self._stepper.symbols(self.text(line, move)) == path
        return complete.take(kept)

    def _path(self, text: str) -> list[tuple[int, int]]:
        """The moves and places that write a whole text, from its first character."""
        symbols = self._stepper.symbols(text)
        path = self.moves.path(symbols[self._heads :])
        if path is None:
            raise ModelError(
                f"The symbols of this model cannot spell secrets of the format {self.format.written!r}: "
                "some of its characters or words are unknown to it.",
                do="Use a format that its vocabulary knows, or the sampled method.",
            )
        return path

    @property
    def _heads(self) -> int:
        """How many symbols stand before every text."""
        return len(self._stepper.symbols(""))

    def _rooted(self) -> tuple[list[int], str, int]:
        """The symbols that all secrets share, what they write, and the place they lead to."""
        rng = stream(0, *labels.STREAM_EXPOSURE_ROOT, self.format.written)
        texts = [self.format.draw(rng) for _ in range(_TRIED)]
        every = [self._stepper.symbols(text) for text in texts]
        paths = [self._path(text) for text in texts]
        before = self.moves.walk.format.before
        stop = len(before) if self.moves.unique else _last_word(before)
        shared, place, spelled = 0, self.moves.start, 0
        for step, (move, there) in enumerate(paths[0]):
            # the first symbol may be spelled with a space that the text does not have
            way = self.moves.ways[move]
            width = len(way) if before.startswith(way, spelled) else len(way) - 1
            # a model that nothing is read before needs a first symbol to start from
            end = len(before) if not step and not self._heads else stop
            if spelled + width > end or any(len(path) <= step or path[step] != (move, there) for path in paths):
                break
            shared, place, spelled = step + 1, there, spelled + width
        return every[0][: self._heads + shared], before[:spelled], place


def _last_word(before: str) -> int:
    """Where the last word of a text begins, with the space before it: no symbol reaches over that border."""
    return max(before.rstrip().rfind(" "), 0)


class History:
    """How every node that was read came about: its parent and its move."""

    def __init__(self) -> None:
        self._table = np.empty((2, 1024), dtype=np.int64)
        self._size = 0

    def grow(self, parents: Numbers, moves: Numbers) -> Numbers:
        """New nodes; −1 is the root."""
        begin, self._size = self._size, self._size + len(parents)
        if self._size > self._table.shape[1]:
            self._table = np.concatenate([self._table, np.empty((2, self._size), dtype=np.int64)], axis=1)
        self._table[:, begin : self._size] = parents, moves
        return np.arange(begin, self._size)

    def path(self, node: int) -> list[int]:
        """The moves from the root to a node."""
        path = []
        while node >= 0:
            node, move = self._table[:, node].tolist()
            path.append(move)
        return path[::-1]
