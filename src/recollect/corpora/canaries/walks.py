"""Walking a format character by character: which may come next, and how many secrets lie ahead."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

from recollect.corpora.canaries.formats import CARD_DIGITS, Format, Unit, luhn_term


class Place(NamedTuple):
    """Where a walk stands: in which unit, what of it is written, and the card number's Luhn sum so far."""

    unit: int
    written: str
    luhn: int


@dataclass(frozen=True)
class Walk:
    """A format as an automaton over characters. It is deterministic: the parser refuses ambiguous formats.

    >>> from recollect.corpora.canaries.formats import parse_format
    >>> walk = Walk(parse_format("pin {digits:2}"))
    >>> walk.ahead(walk.after(walk.start, "pin 4"))
    10
    """

    format: Format

    @property
    def start(self) -> Place:
        """Before the first character."""
        return Place(0, "", 0)

    def after(self, place: Place | None, text: str) -> Place | None:
        """Where the walk stands once this text was written too; None if no secret goes on like this."""
        for character in text:
            if place is None:
                return None
            place = self._step(place, character)
        return place

    def finished(self, place: Place) -> bool:
        """Whether a secret is complete here (a longer one may still go on)."""
        return place.unit == len(self._units) or (place.unit == len(self._units) - 1 and self._complete(place))

    def ahead(self, place: Place) -> int:
        """How many secrets begin with what was written so far."""
        if place.unit == len(self._units):
            return 1
        unit = self._units[place.unit]
        here = unit.size if not place.written else unit.beginnings[place.written]
        return here * self._sizes_after[place.unit]

    def values(self, text: str) -> tuple[str, ...] | None:
        """What the slots are filled with in this text; None if it is not of this format."""
        filled = self._read(text)
        if filled is None:
            return None
        parts = [""] * self.format.slots
        for unit, part in zip(self._units, filled, strict=True):
            if unit.slot is not None:
                parts[unit.slot] += part
        return tuple(parts)

    def _read(self, text: str) -> list[str] | None:
        """What each unit is filled with in this text; None if it is not of this format."""
        filled = [""] * len(self._units)
        place: Place | None = self.start
        for character in text:
            if place is None:
                return None
            following = self._step(place, character)
            if following is not None:
                unit = place.unit if self._goes_on(place, character) else place.unit + 1
                filled[unit] += character
            place = following
        return filled if place is not None and self.finished(place) else None

    def _step(self, place: Place, character: str) -> Place | None:
        """One character further."""
        if place.unit == len(self._units):
            return None
        if not self._goes_on(place, character):
            return self._step(Place(place.unit + 1, "", place.luhn), character) if self._complete(place) else None
        unit = self._units[place.unit]
        written, luhn = place.written + character, place.luhn
        if unit.card_place is not None:
            luhn = (0 if unit.card_place == 0 else luhn) + luhn_term(int(character), unit.card_place)
            if unit.card_place == CARD_DIGITS - 1 and luhn % 10:
                return None
            luhn %= 10
        if unit.beginnings[written] == 1 and written in self._alternatives[place.unit]:
            return Place(place.unit + 1, "", luhn)
        return Place(place.unit, written, luhn)

    def _goes_on(self, place: Place, character: str) -> bool:
        """Whether the character belongs to the unit that was begun."""
        return place.written + character in self._units[place.unit].beginnings

    def _complete(self, place: Place) -> bool:
        """Whether what was written of the unit is one of its alternatives."""
        return place.written in self._alternatives[place.unit]

    @property
    def _units(self) -> tuple[Unit, ...]:
        return self.format.units

    @cached_property
    def _alternatives(self) -> list[frozenset[str]]:
        """The alternatives of each unit, to look one up."""
        return [frozenset(unit.alternatives) for unit in self._units]

    @cached_property
    def _sizes_after(self) -> list[int]:
        """In how many ways the units after each one can be filled."""
        sizes = [unit.size for unit in self._units]
        return [math.prod(sizes[i + 1 :]) for i in range(len(sizes))]
