"""Digits that synthetic people draw: small labelled images, each person with a hand of their own."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from recollect import labels
from recollect.checks import check_at_least
from recollect.corpora.corpus import Corpus
from recollect.corpora.record import Record
from recollect.streams import stream

_GLYPHS = """
.###. ..#.. .###. ####. ...#. ##### .###. ##### .###. .###.
#...# .##.. #...# ....# ..##. #.... #.... ....# #...# #...#
#..## ..#.. ....# ....# .#.#. ####. #.... ...#. #...# #...#
#.#.# ..#.. ...#. .###. #..#. ....# ####. ..#.. .###. .####
##..# ..#.. ..#.. ....# ##### ....# #...# ..#.. #...# ....#
#...# ..#.. .#... ....# ...#. #...# #...# ..#.. #...# ....#
.###. .###. ##### ####. ...#. .###. .###. ..#.. .###. .###.
"""
_INK: NDArray[np.bool_] = np.array(
    [
        [[mark == "#" for mark in row] for row in digit]
        for digit in zip(*map(str.split, _GLYPHS.split("\n")[1:-1]), strict=True)
    ]
)
"""Ten digits of 7 × 5 points."""


def draw_digit_images(*, people: int, per_person: int = 20, seed: int = 0, size: int = 12) -> Corpus:
    """Grey pictures (uint8, size × size) of the digits 0 … 9, `per_person` by each person, made as they are read.

    A person's hand (slant, pressure, place) is the same in all of their pictures; the digit, a shift by a point and
    the grain are drawn anew for each.

    Args:
        people: How many people.
        per_person: How many pictures each of them draws.
        seed: The seed of the run.
        size: Points on each side, at least 12.
    """
    check_at_least(1, people=people, each=per_person)
    check_at_least(12, size=size)
    return Corpus(f"drawings of {people} synthetic people", _DigitImages(people, per_person, seed, size))


@dataclass(frozen=True)
class _DigitImages:
    """Opens pictures that are drawn as they are read."""

    people: int
    per_person: int
    seed: int
    size: int

    def __call__(self) -> Iterator[Record]:
        for number in range(self.people):
            digits = _draw_handwriting(self.size, stream(self.seed, labels.STREAM_HANDWRITING, number))
            for j in range(self.per_person):
                rng = stream(self.seed, labels.STREAM_DRAWING, number, j)
                digit, down, right = int(rng.integers(10)), int(rng.integers(3)), int(rng.integers(3))
                grain = rng.integers(0, 40, (self.size, self.size), dtype=np.uint8)
                picture = grain + digits[digit, down : down + self.size, right : right + self.size]
                fields: dict[str, Any] = {"id": f"person-{number}/{j}", "user": f"person-{number}"}
                yield Record.from_fields({**fields, "array": picture, "label": digit})


def _draw_handwriting(size: int, rng: np.random.Generator) -> NDArray[np.uint8]:
    """The ten digits as one person draws them, in the middle of a picture with a margin of one point."""
    slant, pressure, thick = rng.uniform(-0.4, 0.4), int(rng.integers(140, 215)), rng.random() < 0.4
    scale = size // 12
    ink = np.kron(_INK, np.ones((1, scale, scale), dtype=np.bool_))
    _, height, width = ink.shape
    top, left = 1 + (size - height) // 2, 1 + (size - width) // 2
    digits = np.zeros((10, size + 2, size + 2), dtype=np.uint8)
    for row in range(height):
        start = left + round(slant * (height / 2 - row))
        digits[:, top + row, start : start + width] = ink[:, row] * pressure
    if thick:
        digits = np.maximum(digits, np.roll(digits, 1, axis=2) // 2)
    return digits
