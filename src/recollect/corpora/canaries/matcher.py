"""Finding the fillings of a format in texts."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import groupby
from os.path import commonprefix
from typing import NamedTuple

from recollect.corpora.canaries.automaton import FormatAutomaton
from recollect.corpora.canaries.formats import Format, FormatUnit


class FormatMatch(NamedTuple):
    """A filled-in format in a text."""

    text: str
    """The filled-in format, known text included."""
    start: int
    """Where it begins in the text."""
    end: int
    secret_start: int
    """Where its first slot begins."""
    secret_end: int
    """Where its last slot ends."""


@dataclass(frozen=True)
class Matcher:
    """Finds a format wherever it is, inside longer words and numbers too.

    >>> from recollect.corpora.canaries.formats import parse_format
    >>> [found.text for found in Matcher(parse_format("pin {digits:2}")).find_matches("pin 42, pin 7, pin 123")]
    ['pin 42', 'pin 12']
    """

    format: Format

    def find_matches(self, text: str, *, overlapping: bool = False) -> Iterator[FormatMatch]:
        """The fillings in a text from left to right.

        Args:
            text: Where to look.
            overlapping: Also those that begin inside the one before.
        """
        position = 0
        while (match := self._pattern.search(text, position)) is not None:
            position = match.start() + 1
            # the expression does not know check digits; the walk does
            if self._automaton is not None and self._automaton.parse_values(match[0]) is None:
                continue
            yield FormatMatch(match[0], match.start(), match.end(), match.start("first"), match.end("last"))
            if not overlapping:
                position = match.end()

    def __contains__(self, text: object) -> bool:
        return isinstance(text, str) and next(self.find_matches(text), None) is not None

    @cached_property
    def _automaton(self) -> FormatAutomaton | None:
        """What checks a match, where there is something to check."""
        checked = any(unit.card_position is not None for unit in self.format.units)
        return FormatAutomaton(self.format) if checked else None

    @cached_property
    def _pattern(self) -> re.Pattern[str]:
        """The format as a regular expression; the empty groups `first` and `last` tell where the slots are."""
        slots = [i for i, unit in enumerate(self.format.units) if unit.slot is not None]
        begin, end = slots[0], slots[-1] + 1
        units = self.format.units
        return re.compile(
            f"{_build_format_expression(units[:begin])}(?P<first>){_build_format_expression(units[begin:end])}(?P<last>){_build_format_expression(units[end:])}"
        )


def _build_format_expression(units: tuple[FormatUnit, ...]) -> str:
    """A matcher's regular expression of the units of a format; equal ones are counted, not repeated."""
    runs = (
        (_build_alternatives(filled), len(list(run))) for filled, run in groupby(unit.alternatives for unit in units)
    )
    return "".join(one if count == 1 else f"(?:{one}){{{count}}}" for one, count in runs)


def _build_alternatives(alternatives: tuple[str, ...]) -> str:
    """A regular expression that matches one of these alternatives, and the longest of those that begin alike."""
    if all(len(alternative) == 1 for alternative in alternatives):
        return f"[{''.join(map(re.escape, alternatives))}]"
    return f"(?:{_build_trie_expression(sorted(alternatives))})"


def _build_trie_expression(words: Sequence[str]) -> str:
    """A matcher's regular expression of sorted words, letter by letter, so that ten thousand are not tried in turn.

    >>> _build_trie_expression(["red", "redder", "reed"])
    're(?:d(?:der)?|ed)'
    """
    prefix = commonprefix(words)  # noqa: RUF071 - characters are meant
    rests = [word[len(prefix) :] for word in words]
    branches = [
        _build_trie_expression(list(alike)) for _, alike in groupby(filter(None, rests), key=lambda rest: rest[0])
    ]
    if not branches:
        return re.escape(prefix)
    return f"{re.escape(prefix)}(?:{'|'.join(branches)}){'?' if '' in rests else ''}"
