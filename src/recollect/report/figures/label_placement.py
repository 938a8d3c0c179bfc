"""Where the labels of a panel go: beside the line that each explains, and not over what is drawn."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from recollect.report.figures.scale import Floats

Anchor = Literal["start", "end"]
LETTER, ASCENT, DESCENT = 6.6, 11.0, 3.0
"""Width, and height above and below the baseline, of the words in a panel; wider than most letters are."""
_PIECE = 4.0
"""Lines are seen as points at most this far apart."""


@dataclass(frozen=True, kw_only=True)
class Place:
    """A place where a label of a panel may go."""

    x: float
    y: float
    """The baseline."""
    anchor: Anchor

    def compute_box(self, words: str) -> Floats:
        """Left, top, right and bottom of the words in this place."""
        width = LETTER * len(words)
        left = self.x if self.anchor == "start" else self.x - width
        return np.array([left, self.y - ASCENT, left + width, self.y + DESCENT])


@dataclass
class DrawnShapes:
    """What is drawn in a panel, as boxes that no label should cover."""

    _boxes: list[Floats] = field(default_factory=list)

    def add_boxes(self, left: ArrayLike, top: ArrayLike, right: ArrayLike, bottom: ArrayLike) -> None:
        """Add rectangles, given by their sides."""
        sides = np.broadcast_arrays(*(np.atleast_1d(side) for side in (left, top, right, bottom)))
        self._boxes.append(np.column_stack(sides).astype(float))

    def add_points(self, x: ArrayLike, y: ArrayLike, radius: float) -> None:
        """Add dots."""
        a, b = np.atleast_1d(x), np.atleast_1d(y)
        self.add_boxes(a - radius, b - radius, a + radius, b + radius)

    def add_line(self, points: ArrayLike) -> None:
        """Add a line through points [points, 2]."""
        corners = np.asarray(points, dtype=np.float64).reshape(-1, 2)
        begin, way = corners[:-1], np.diff(corners, axis=0)
        steps = 1 + (np.abs(way).max(axis=1, initial=0) // _PIECE).astype(np.int64)
        of = np.repeat(np.arange(len(steps)), steps + 1)  # the piece of the line that each point is on
        number = np.arange(len(of)) - np.repeat(np.cumsum(steps + 1) - steps - 1, steps + 1)
        share = np.where(number == steps[of], 1.0, number * (1 / steps[of]))
        between = begin[of] + share[:, None] * way[of]
        self.add_points(between[:, 0], between[:, 1], 1.0)

    def choose_place(self, words: str, places: Iterable[Place]) -> Place:
        """The first place in which the label covers nothing, or the one in which it covers least; it is taken then."""
        candidates = list(places)
        boxes = np.concatenate([np.zeros((0, 4)), *self._boxes])
        covered = [_count_covered(place.compute_box(words), boxes) for place in candidates]
        chosen = candidates[int(np.argmin(covered))]
        self.add_boxes(*chosen.compute_box(words))
        return chosen


def iter_places_beside_threshold(
    x: float, *, left: float, right: float, top: float, bottom: float, width: float
) -> Iterator[Place]:
    """Places for the label of an upright line: at its top on the roomier side, on the other side, then further down."""
    sides: list[tuple[float, Anchor]] = [(6.0, "start"), (-6.0, "end")]
    if x > (left + right) / 2:
        sides.reverse()
    fitting = [side for side in sides if (x + width + 6 <= right if side[0] > 0 else x - width - 6 >= left)]
    for y in np.arange(top + 11, bottom - 4, 14):
        yield from (Place(x=x + gap, y=float(y), anchor=anchor) for gap, anchor in fitting or sides[:1])


def iter_places_along_level(
    y: float, *, left: float, right: float, top: float, bottom: float, width: float
) -> Iterator[Place]:
    """Places for the label of a level line: above or beneath it at its right end, and then further to the left."""
    heights = [height for height in (y - 5, y + 14) if top <= height - ASCENT and height + DESCENT <= bottom]
    for x in [right - 4, *np.arange(right - 24, left + width, -20).tolist()]:
        yield from (Place(x=x, y=height, anchor="end") for height in heights or [y - 5])


def _count_covered(box: Floats, boxes: Floats) -> int:
    """How many of the boxes a label would cover."""
    apart = (boxes[:, 2] <= box[0]) | (boxes[:, 0] >= box[2]) | (boxes[:, 3] <= box[1]) | (boxes[:, 1] >= box[3])
    return int((~apart).sum())
