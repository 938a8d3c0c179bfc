"""A format in the symbols of a model: which may come next at each place, and where they lead."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from recollect.corpora.canaries.formats import Format, Unit
from recollect.corpora.canaries.walks import Place, Walk
from recollect.errors import PlanError
from recollect.models.spelling import Spelling

Numbers = NDArray[np.int64]
_HERE = ""
"""The key of a trie's node under which the moves that end there are kept; all others are characters."""


@dataclass(frozen=True, eq=False)
class Fan:
    """What may come next at one place: one entry per way to go on."""

    columns: Numbers
    """Of the symbol, in `Moves.among`."""
    moves: Numbers
    places: Numbers
    """Where it leads."""
    complete: NDArray[np.bool_]
    """Whether a secret may end there."""
    inner: NDArray[np.bool_]
    """Whether it may go on from there."""


class Moves:
    """The walk of a format, in symbols instead of characters.

    A *move* is a symbol in one of its spellings; a *place* is where the walk through the format stands, by number.
    """

    def __init__(self, format: Format, spelling: Spelling) -> None:
        """Find the symbols that can occur in the format.

        Args:
            format: The format as the user wrote it.
            spelling: How the model's symbols are spelled.
        """
        self.walk = Walk(_as_read(format, spelling))
        characters = {char for unit in self.walk.format.units for way in unit.alternatives for char in way}
        spelled = [
            (symbol, way)
            for symbol, ways in enumerate(spelling.symbols)
            for way in ways
            if way and characters.issuperset(way)
        ]
        self.among: list[int] = sorted({symbol for symbol, _ in spelled})
        """The symbols that can occur."""
        column = {symbol: i for i, symbol in enumerate(self.among)}
        self.columns = np.array([column[symbol] for symbol, _ in spelled], dtype=np.int64)
        self.ways = [way for _, way in spelled]
        """What each move writes."""
        self._trie = _trie(self.ways)
        self.unique = all(_HERE not in node or len(node) == 1 for node in _nodes(self._trie)) and len(self.ways) == len(
            set(self.ways)
        )
        """Whether a text has only one path: no spelling begins another."""
        self._places: dict[Place, int] = {}
        self._known: list[Place] = []
        self._fans: dict[int, Fan] = {}
        self.start = self._number(self.walk.start)

    @cached_property
    def symbols(self) -> Numbers:
        """The symbol of each move."""
        return np.array(self.among, dtype=np.int64)[self.columns]

    @property
    def nesting(self) -> int:
        """How many secrets can at most begin each other: 1 if none is the beginning of another."""
        last = self.walk.format.units[-1].alternatives
        known = set(last)
        return max(sum(way[:end] in known for end in range(1, len(way) + 1)) for way in last)

    def at(self, place: int) -> Fan:
        """What may come next at a place."""
        if place not in self._fans:
            found = list(self._leading(self._known[place], self._trie))
            ends = [end for _, end in found]
            moves = np.array([move for move, _ in found], dtype=np.int64)
            self._fans[place] = Fan(
                columns=self.columns[moves],
                moves=moves,
                places=np.array([self._number(end) for end in ends], dtype=np.int64),
                complete=np.array([self.walk.finished(end) for end in ends], dtype=np.bool_),
                inner=np.array([not self._ended(end) for end in ends], dtype=np.bool_),
            )
        return self._fans[place]

    def ahead(self, places: Numbers) -> NDArray[np.float64]:
        """How many secrets begin with what was written up to each place."""
        different, which = np.unique(places, return_inverse=True)
        return np.array([float(self.walk.ahead(self._known[place])) for place in different])[which]

    def is_complete(self, place: int) -> bool:
        """Whether a secret may end at a place."""
        return self.walk.finished(self._known[place])

    def are_complete(self, places: Numbers) -> NDArray[np.bool_]:
        """Whether a secret may end at each of these places."""
        different, which = np.unique(places, return_inverse=True)
        return np.array([self.is_complete(place) for place in different], dtype=np.bool_)[which]

    def are_last(self, places: Numbers) -> NDArray[np.bool_]:
        """Whether whatever follows each of these places completes a secret for good."""
        different, which = np.unique(places, return_inverse=True)
        return np.array([not self.at(place).inner.any() for place in different.tolist()], dtype=np.bool_)[which]

    def path(self, symbols: Sequence[int]) -> list[tuple[int, int]] | None:
        """The (move, place) pairs that write these symbols from the start of the format to a complete secret.

        A tokenizer may put a space before the first word, which the text does not have.
        """
        return self._path(self.start, list(symbols), first=True)

    def _path(self, place: int, symbols: list[int], *, first: bool) -> list[tuple[int, int]] | None:
        """The rest of a path."""
        if not symbols:
            return [] if self.is_complete(place) else None
        for move in np.flatnonzero(self.symbols == symbols[0]).tolist():
            ways = [self.ways[move], *([self.ways[move][1:]] if first and self.ways[move][0] == " " else [])]
            for way in ways:
                end = self.walk.after(self._known[place], way)
                if end is None:
                    continue
                there = self._number(end)
                rest = self._path(there, symbols[1:], first=False)
                if rest is not None:
                    return [(move, there), *rest]
        return None

    def _leading(self, place: Place, node: dict[str, Any]) -> Iterator[tuple[int, Place]]:
        """The moves that can be made from here, and where each ends."""
        for char, below in node.items():
            if char == _HERE:
                yield from ((move, place) for move in below)
            else:
                end = self.walk.after(place, char)
                if end is not None:
                    yield from self._leading(end, below)

    def _ended(self, place: Place) -> bool:
        """Whether nothing can follow."""
        return place.unit == len(self.walk.format.units)

    def _number(self, place: Place) -> int:
        """The number of a place."""
        if place not in self._places:
            self._places[place] = len(self._known)
            self._known.append(place)
        return self._places[place]


def _as_read(format: Format, spelling: Spelling) -> Format:
    """The format in bytes, as the tokenizer reads it."""
    units = tuple(_unit_as_read(unit, spelling, format) for unit in format.units)
    return replace(format, units=units)


def _unit_as_read(unit: Unit, spelling: Spelling, format: Format) -> Unit:
    """One unit in bytes; two ways to fill it must stay different."""
    ways = tuple(spelling.written(way) for way in unit.alternatives)
    if len(set(ways)) < len(ways):
        same = next(way for way in ways if ways.count(way) > 1)
        raise PlanError(
            f"To this model two fillings of the format {format.written!r} are the same: {same!r}.",
            do="Write only fillings that differ to it; it may read all letters as small ones.",
        )
    return replace(unit, alternatives=ways)


def _trie(ways: Sequence[str]) -> dict[str, Any]:
    """The moves by what they write, character by character."""
    root: dict[str, Any] = {}
    for move, way in enumerate(ways):
        node = root
        for char in way:
            node = node.setdefault(char, {})
        node.setdefault(_HERE, []).append(move)
    return root


def _nodes(trie: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Every node of a trie."""
    stack = [trie]
    while stack:
        node = stack.pop()
        yield node
        stack += [below for char, below in node.items() if char != _HERE]
