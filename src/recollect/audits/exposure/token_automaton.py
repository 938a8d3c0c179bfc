"""A format as an automaton over the tokens of a model: which may come next in each state, and where they lead."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from recollect.corpora.canaries.automaton import AutomatonState, FormatAutomaton
from recollect.corpora.canaries.formats import Format, FormatUnit
from recollect.errors import PlanError
from recollect.models.tokens.token_spelling import Spelling

Integers = NDArray[np.int64]
Flags = NDArray[np.bool_]
_HERE = ""
"""The key of a trie's node under which the pieces that end there are kept; all others are characters."""


@dataclass(frozen=True, eq=False)
class Transitions:
    """The continuations of one state: one entry each."""

    columns: Integers
    """Of the token, in `TokenAutomaton.tokens`."""
    pieces: Integers
    states: Integers
    """Where it leads."""
    complete: Flags
    """Whether a secret may end there."""
    inner: Flags
    """Whether it can be continued from there."""


class TokenAutomaton:
    """The automaton of a format, over tokens instead of characters.

    A *piece* is a token in one of its spellings; a *state* is how much of the format has been written, by number.
    """

    def __init__(self, format: Format, spelling: Spelling) -> None:
        """Find the tokens that can occur in the format.

        Args:
            format: The format as the user wrote it.
            spelling: How the model's tokens are spelled.

        Raises:
            PlanError: Two fillings of the format are the same to this tokenizer.
        """
        self.format_automaton = FormatAutomaton(_normalise_format(format, spelling))
        characters = {char for unit in self.format_automaton.format.units for way in unit.alternatives for char in way}
        spelled = [
            (token, way)
            for token, ways in enumerate(spelling.tokens)
            for way in ways
            if way and characters.issuperset(way)
        ]
        self.tokens: list[int] = sorted({token for token, _ in spelled})
        """The tokens that can occur."""
        column = {token: i for i, token in enumerate(self.tokens)}
        self.columns = np.array([column[token] for token, _ in spelled], dtype=np.int64)
        """The column of each piece's token in `tokens`."""
        self.spellings = [way for _, way in spelled]
        """What each piece writes."""
        self._trie = _build_token_trie(self.spellings)
        prefix_free = all(_HERE not in node or len(node) == 1 for node in _iterate_trie_nodes(self._trie))
        self.unambiguous = prefix_free and len(self.spellings) == len(set(self.spellings))
        """Whether a text has only one path: no spelling begins another."""
        self._numbers: dict[AutomatonState, int] = {}
        self._places: list[AutomatonState] = []
        self._transitions: dict[int, Transitions] = {}
        self.start = self._number(self.format_automaton.start)

    @cached_property
    def piece_tokens(self) -> Integers:
        """The token of each piece."""
        return np.array(self.tokens, dtype=np.int64)[self.columns]

    @property
    def nesting(self) -> int:
        """How many secrets can at most begin each other: 1 if none is a prefix of another."""
        last = self.format_automaton.format.units[-1].alternatives
        known = set(last)
        return max(sum(way[:end] in known for end in range(1, len(way) + 1)) for way in last)

    def expand(self, state: int) -> Transitions:
        """What may come next in a state."""
        if state not in self._transitions:
            found = list(self._follow(self._places[state], self._trie))
            ends = [end for _, end in found]
            pieces = np.array([piece for piece, _ in found], dtype=np.int64)
            self._transitions[state] = Transitions(
                columns=self.columns[pieces],
                pieces=pieces,
                states=np.array([self._number(end) for end in ends], dtype=np.int64),
                complete=np.array([self.format_automaton.is_complete(end) for end in ends], dtype=np.bool_),
                inner=np.array(
                    [end.unit_index < len(self.format_automaton.format.units) for end in ends], dtype=np.bool_
                ),
            )
        return self._transitions[state]

    def count_secrets(self, states: Integers) -> NDArray[np.float64]:
        """How many secrets begin with what was written up to each state."""
        distinct, inverse = np.unique(states, return_inverse=True)
        return np.array([float(self.format_automaton.count_completions(self._places[state])) for state in distinct])[
            inverse
        ]

    def is_complete(self, state: int) -> bool:
        """Whether a secret may end in a state."""
        return self.format_automaton.is_complete(self._places[state])

    def are_complete(self, states: Integers) -> Flags:
        """Whether a secret may end in each of these states."""
        distinct, inverse = np.unique(states, return_inverse=True)
        return np.array([self.is_complete(state) for state in distinct], dtype=np.bool_)[inverse]

    def are_last(self, states: Integers) -> Flags:
        """Whether whatever follows each of these states completes a secret for good."""
        distinct, inverse = np.unique(states, return_inverse=True)
        return np.array([not self.expand(state).inner.any() for state in distinct.tolist()], dtype=np.bool_)[inverse]

    def find_path(self, tokens: Sequence[int]) -> list[tuple[int, int]] | None:
        """The (piece, state) pairs that write these tokens from the start of the format to a complete secret.

        A tokenizer may put a space before the first word, which the text does not have.
        """
        return self._find_rest(self.start, list(tokens), first=True)

    def _find_rest(self, state: int, tokens: list[int], *, first: bool) -> list[tuple[int, int]] | None:
        """The rest of a path."""
        if not tokens:
            return [] if self.is_complete(state) else None
        for piece in np.flatnonzero(self.piece_tokens == tokens[0]).tolist():
            written = self.spellings[piece]
            for way in (written, written[1:]) if first and written[0] == " " else (written,):
                end = self.format_automaton.advance(self._places[state], way)
                if end is None:
                    continue
                following = self._number(end)
                rest = self._find_rest(following, tokens[1:], first=False)
                if rest is not None:
                    return [(piece, following), *rest]
        return None

    def _follow(self, position: AutomatonState, node: dict[str, Any]) -> Iterator[tuple[int, AutomatonState]]:
        """The pieces that can be written from here, and where each ends."""
        for char, below in node.items():
            if char == _HERE:
                yield from ((piece, position) for piece in below)
            else:
                end = self.format_automaton.advance(position, char)
                if end is not None:
                    yield from self._follow(end, below)

    def _number(self, position: AutomatonState) -> int:
        """The number of a state."""
        if position not in self._numbers:
            self._numbers[position] = len(self._places)
            self._places.append(position)
        return self._numbers[position]


def _normalise_format(format: Format, spelling: Spelling) -> Format:
    """The format in bytes, as the tokenizer reads it; two ways to fill a unit must stay different."""
    units = tuple(_normalise_format_unit(unit, spelling, format) for unit in format.units)
    return replace(format, units=units)


def _normalise_format_unit(unit: FormatUnit, spelling: Spelling, format: Format) -> FormatUnit:
    """One unit of a format in bytes, as the automaton over tokens reads it."""
    ways = tuple(spelling.encode(way) for way in unit.alternatives)
    if len(set(ways)) < len(ways):
        same = next(way for way in ways if ways.count(way) > 1)
        raise PlanError(
            f"To this model two fillings of the format {format.pattern!r} are the same: {same!r}.",
            do="Write only fillings that differ for its tokenizer, which may read all letters as lowercase.",
            code="indistinct_fillings",
        )
    return replace(unit, alternatives=ways)


def _build_token_trie(spellings: Sequence[str]) -> dict[str, Any]:
    """The tokens of a model by what they write, character by character, to follow a format."""
    root: dict[str, Any] = {}
    for piece, spelling in enumerate(spellings):
        node = root
        for char in spelling:
            node = node.setdefault(char, {})
        node.setdefault(_HERE, []).append(piece)
    return root


def _iterate_trie_nodes(trie: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Every node of a trie of tokens."""
    stack = [trie]
    while stack:
        node = stack.pop()
        yield node
        stack += [below for char, below in node.items() if char != _HERE]
