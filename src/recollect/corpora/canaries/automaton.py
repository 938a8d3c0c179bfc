"""The automaton of a format, character by character: which may come next, and how many completions there are."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

from recollect.corpora.canaries.formats import CARD_DIGITS, Format, FormatUnit, compute_luhn_term


class AutomatonState(NamedTuple):
    """A state of the automaton: the unit, what of it is written, and the card number's Luhn sum so far."""

    unit_index: int
    text: str
    luhn_sum: int


@dataclass(frozen=True)
class FormatAutomaton:
    """A format as an automaton over characters. It is deterministic: the parser refuses ambiguous formats.

    >>> from recollect.corpora.canaries.formats import parse_format
    >>> walk = FormatAutomaton(parse_format("pin {digits:2}"))
    >>> walk.count_completions(walk.advance(walk.start, "pin 4"))
    10
    """

    format: Format

    @property
    def start(self) -> AutomatonState:
        """Before the first character."""
        return AutomatonState(0, "", 0)

    def advance(self, state: AutomatonState | None, text: str) -> AutomatonState | None:
        """The state after this text; None if no secret continues like this."""
        for character in text:
            if state is None:
                return None
            state = self._advance_one(state, character)
        return state

    def is_complete(self, state: AutomatonState) -> bool:
        """Whether a secret is complete here (a longer one may still continue)."""
        return state.unit_index == len(self._units) or (
            state.unit_index == len(self._units) - 1 and self._is_alternative(state)
        )

    def count_completions(self, state: AutomatonState) -> int:
        """How many secrets begin with what was written so far."""
        if state.unit_index == len(self._units):
            return 1
        unit = self._units[state.unit_index]
        here = unit.size if not state.text else unit.prefix_counts[state.text]
        return here * self._suffix_sizes[state.unit_index]

    def parse_values(self, text: str) -> tuple[str, ...] | None:
        """What the slots are filled with in this text; None if it is not of this format."""
        fillings = self._parse_units(text)
        if fillings is None:
            return None
        slot_values = [""] * self.format.slots
        for unit, filling in zip(self._units, fillings, strict=True):
            if unit.slot is not None:
                slot_values[unit.slot] += filling
        return tuple(slot_values)

    def _parse_units(self, text: str) -> list[str] | None:
        """What each unit is filled with in this text; None if it is not of this format."""
        fillings = [""] * len(self._units)
        state: AutomatonState | None = self.start
        for character in text:
            if state is None:
                return None
            following = self._advance_one(state, character)
            if following is not None:
                unit = state.unit_index if self._continues_unit(state, character) else state.unit_index + 1
                fillings[unit] += character
            state = following
        return fillings if state is not None and self.is_complete(state) else None

    def _advance_one(self, state: AutomatonState, character: str) -> AutomatonState | None:
        """One character further."""
        if state.unit_index == len(self._units):
            return None
        if not self._continues_unit(state, character):
            return (
                self._advance_one(AutomatonState(state.unit_index + 1, "", state.luhn_sum), character)
                if self._is_alternative(state)
                else None
            )
        unit = self._units[state.unit_index]
        text, luhn = state.text + character, state.luhn_sum
        if unit.card_position is not None:
            luhn = (0 if unit.card_position == 0 else luhn) + compute_luhn_term(int(character), unit.card_position)
            if unit.card_position == CARD_DIGITS - 1 and luhn % 10:
                return None
            luhn %= 10
        if unit.prefix_counts[text] == 1 and text in self._alternatives[state.unit_index]:
            return AutomatonState(state.unit_index + 1, "", luhn)
        return AutomatonState(state.unit_index, text, luhn)

    def _continues_unit(self, state: AutomatonState, character: str) -> bool:
        """Whether the character belongs to the unit that was begun."""
        return state.text + character in self._units[state.unit_index].prefix_counts

    def _is_alternative(self, state: AutomatonState) -> bool:
        """Whether what was written of the unit is one of its alternatives."""
        return state.text in self._alternatives[state.unit_index]

    @property
    def _units(self) -> tuple[FormatUnit, ...]:
        return self.format.units

    @cached_property
    def _alternatives(self) -> list[frozenset[str]]:
        """The alternatives of each unit, to look one up."""
        return [frozenset(unit.alternatives) for unit in self._units]

    @cached_property
    def _suffix_sizes(self) -> list[int]:
        """In how many ways the units after each one can be filled."""
        sizes = [unit.size for unit in self._units]
        return [math.prod(sizes[i + 1 :]) for i in range(len(sizes))]
