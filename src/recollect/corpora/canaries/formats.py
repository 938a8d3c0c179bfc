r"""Formats of secrets: a small language whose space has an exact size and can be sampled, listed and searched.

A format is known text with slots: `"The random number is {digits:9}"`, `"{digits:3}-{digits:2}-{digits:4}"`. The slots:

| slot | filled with | how many ways |
|---|---|---|
| `{digits:N}` | N digits | 10^N |
| `{letters:N}` | N lowercase letters | 26^N |
| `{hex:N}` | N hexadecimal digits | 16^N |
| `{card}` | 16 digits whose last one checks the others (Luhn) | 10^15 |
| `{choice:red\|green\|blue}` | one of these | as many as given |
| `{words:N:FILE}` | N words of the file (one per line), a space between | lines^N |

`{{` and `}}` stand for braces.
"""

from __future__ import annotations

import math
import string
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from pathlib import Path

import numpy as np

from recollect.checks import suggest_name
from recollect.errors import CorpusError, PlanError

CARD_DIGITS = 16
SLOTS = ("digits", "letters", "hex", "card", "choice", "words")
_ALPHABETS = {"digits": string.digits, "letters": string.ascii_lowercase, "hex": "0123456789abcdef"}


@dataclass(frozen=True)
class FormatUnit:
    """One place of a format that is filled at a time: a character of a slot, a word, a choice, or known text."""

    alternatives: tuple[str, ...]
    slot: int | None
    """Which slot it belongs to; None for known text."""
    card_position: int | None = None
    """Which digit of a card number it is; the last one follows from the others."""

    @property
    def size(self) -> int:
        """In how many ways it can be filled, given what is before it."""
        return 1 if self.card_position == CARD_DIGITS - 1 else len(self.alternatives)

    @cached_property
    def prefix_counts(self) -> dict[str, int]:
        """How many alternatives begin with each beginning."""
        counts: dict[str, int] = {}
        for alternative in self.alternatives:
            for end in range(len(alternative) + 1):
                counts[alternative[:end]] = counts.get(alternative[:end], 0) + 1
        return counts


@dataclass(frozen=True)
class Format:
    """A format: its units in order, from the first character to the last."""

    pattern: str
    """As the user wrote it."""
    units: tuple[FormatUnit, ...]

    @cached_property
    def size(self) -> int:
        """|R|, the exact number of different secrets."""
        return math.prod(unit.size for unit in self.units)

    @cached_property
    def known_prefix(self) -> str:
        """The known text before the first slot."""
        return "" if self.units[0].slot is not None else self.units[0].alternatives[0]

    @cached_property
    def longest_ending(self) -> int:
        """Bytes of the longest filled-in text, from the last word before the first slot on."""
        units = self.units if self.units[0].slot is not None else self.units[1:]
        known = self.known_prefix.rstrip()
        word = self.known_prefix[max(known.rfind(" "), 0) :]
        return len(word.encode()) + sum(max(len(each.encode()) for each in unit.alternatives) for unit in units)

    @cached_property
    def slots(self) -> int:
        """How many slots there are."""
        return 1 + max(unit.slot for unit in self.units if unit.slot is not None)

    def draw(self, rng: np.random.Generator) -> str:
        """One filled-in text, each equally likely."""
        chosen: list[str] = []
        for unit in self.units:
            alternatives = self._get_alternatives(unit, chosen)
            chosen.append(
                alternatives[int(rng.integers(len(alternatives)))] if len(alternatives) > 1 else alternatives[0]
            )
        return "".join(chosen)

    def iter_all(self) -> Iterator[str]:
        """Every filled-in text once, in a stable order."""
        free = [unit.alternatives if unit.card_position != CARD_DIGITS - 1 else ("",) for unit in self.units]
        for choice in product(*free):
            chosen = list(choice)
            for i, unit in enumerate(self.units):
                if unit.card_position == CARD_DIGITS - 1:
                    chosen[i] = compute_check_digit("".join(chosen[i - CARD_DIGITS + 1 : i]))
            yield "".join(chosen)

    @staticmethod
    def _get_alternatives(unit: FormatUnit, chosen: list[str]) -> tuple[str, ...]:
        """The alternatives that are left once the units before are filled."""
        if unit.card_position != CARD_DIGITS - 1:
            return unit.alternatives
        return (compute_check_digit("".join(chosen[-(CARD_DIGITS - 1) :])),)


def compute_check_digit(digits: str) -> str:
    """The Luhn check digit of a card number in a format, from its first fifteen digits.

    >>> compute_check_digit("411111111111111")
    '1'
    """
    total = sum(compute_luhn_term(int(digit), position) for position, digit in enumerate(digits))
    return str(-total % 10)


def compute_luhn_term(digit: int, position: int) -> int:
    """What a digit at this position (0 = first of sixteen) of a card number format adds to the Luhn sum."""
    doubled = digit * 2 if position % 2 == 0 else digit
    return doubled - 9 if doubled > 9 else doubled


def parse_format(pattern: str) -> Format:
    """The format that was written.

    >>> parse_format("my number is {digits:3}-{digits:2}-{digits:4}").size
    1000000000

    Raises:
        PlanError: It is not a format; the message points at the character.
    """
    units: list[FormatUnit] = []
    slots = 0
    for position, kind, body in _iter_tokens(pattern):
        if kind == "text":
            units.append(FormatUnit((body,), None))
        else:
            units += _parse_slot(pattern, position, body, slots)
            slots += 1
    if not slots:
        raise _build_error(pattern, len(pattern), "has no slot", "Write at least one, such as {digits:9}.", "no_slot")
    found = Format(pattern, tuple(units))
    _refuse_ambiguity(found)
    return found


def _iter_tokens(pattern: str) -> Iterator[tuple[int, str, str]]:
    """The known text and the slots of a format in order, with the character at which each begins."""
    position, text, begin = 0, "", 0
    while position < len(pattern):
        pair, char = pattern[position : position + 2], pattern[position]
        if pair in {"{{", "}}"}:
            text, position = text + char, position + 2
        elif char == "}":
            raise _build_error(
                pattern, position, "closes a slot that was never opened", "Write }} for a brace.", "unopened_slot"
            )
        elif char == "{":
            end = pattern.find("}", position)
            if end < 0:
                raise _build_error(
                    pattern, position, "opens a slot that is never closed", "Write {{ for a brace.", "unclosed_slot"
                )
            if text:
                yield begin, "text", text
            yield position, "slot", pattern[position + 1 : end]
            position, text, begin = end + 1, "", end + 1
        else:
            text, position = text + char, position + 1
    if text:
        yield begin, "text", text


def _parse_slot(pattern: str, position: int, body: str, slot: int) -> list[FormatUnit]:
    """The units of one slot of a format."""
    name, _, rest = body.partition(":")
    if name in _ALPHABETS:
        return [FormatUnit(tuple(_ALPHABETS[name]), slot)] * _parse_length(pattern, position, rest)
    if name == "card" and not rest:
        return [FormatUnit(tuple(string.digits), slot, card_position=i) for i in range(CARD_DIGITS)]
    if name == "choice":
        return [FormatUnit(_check_choices(pattern, position, rest.split("|")), slot)]
    if name == "words":
        count, _, file = rest.partition(":")
        words = FormatUnit(_check_choices(pattern, position, _read_word_list(pattern, position, file)), slot)
        space = FormatUnit((" ",), slot)
        return [unit for _ in range(_parse_length(pattern, position, count)) for unit in (words, space)][:-1]
    known = ", ".join(SLOTS)
    raise _build_error(
        pattern, position + 1, f"has no slot {name!r}", f"{suggest_name(name, SLOTS)}Known: {known}.", "unknown_slot"
    )


def _parse_length(pattern: str, position: int, number: str) -> int:
    """How many units a slot of a format has."""
    if not number.isascii() or not number.isdigit() or not 1 <= int(number) <= 1000:
        raise _build_error(
            pattern,
            position,
            f"has a slot of length {number!r}",
            "Write a number from 1 to 1000: {digits:9}.",
            "bad_slot_length",
        )
    return int(number)


def _read_word_list(pattern: str, position: int, file: str) -> list[str]:
    """The words of a file that a format names, one per line."""
    try:
        words = Path(file).read_text(encoding="utf-8").split("\n")
    except (OSError, UnicodeDecodeError, ValueError) as error:
        raise _build_error(
            pattern, position, f"names a word list {file!r} that cannot be read", str(error), "unreadable_file"
        ) from error
    found = [word.strip() for word in words if word.strip()]
    if any(" " in word for word in found):
        raise CorpusError(
            f"The word list {file!r} has lines of several words.", do="Put one word on a line.", code="bad_word_list"
        )
    return found


def _check_choices(pattern: str, position: int, alternatives: list[str]) -> tuple[str, ...]:
    """The alternatives of a slot of a format, none empty and none twice."""
    if not alternatives or not all(alternatives):
        raise _build_error(
            pattern,
            position,
            "has a slot with an empty choice",
            "Leave no choice empty: {choice:red|green}.",
            "empty_choice",
        )
    if len(set(alternatives)) < len(alternatives):
        raise _build_error(
            pattern, position, "has a slot with the same choice twice", "Write each choice once.", "duplicate_choice"
        )
    return tuple(alternatives)


def _refuse_ambiguity(found: Format) -> None:
    """Refuse a format of which a text can be read in two ways: its size is the number of different texts.

    It is enough that whatever follows an alternative cannot be taken for more of a longer one.
    """
    for unit, following in zip(found.units, found.units[1:], strict=False):
        for alternative in unit.alternatives:
            if any(alternative + first[0] in unit.prefix_counts for first in following.alternatives):
                raise PlanError(
                    f"In the format {found.pattern!r} it is ambiguous where {alternative!r} ends.",
                    do="Put known text after it that no choice continues with.",
                    code="ambiguous_format",
                )


def _build_error(pattern: str, position: int, what: str, do: str, code: str) -> PlanError:
    """An error that points at a character of the format."""
    return PlanError(
        f"The format {what}, at character {position + 1}:\n    {pattern}\n    {' ' * position}^", do=do, code=code
    )
