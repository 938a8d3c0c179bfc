"""A panel: bars, lines and dots between two axes, as SVG that is the page's own, in its colours and fonts.

A panel is given numbers and our own words, never text from a corpus; whatever it is given is escaped.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal
from xml.etree.ElementTree import Element, SubElement, tostring

import numpy as np
from markupsafe import Markup
from numpy.typing import ArrayLike

from recollect.report.figures.label_placement import (
    LETTER,
    DrawnShapes,
    Place,
    iter_places_along_level,
    iter_places_beside_threshold,
)
from recollect.report.figures.scale import Floats, Scale

Colour = Literal["null", "found", "control"]
"""What is drawn: the null distribution, what the audit is after, what is known to be held out."""
Dot = Literal[Colour, "apart"]
"""A dot may also be somebody too unlike those to be compared with them,"""
Line = Literal[Colour, "guide"]
"""and a line may be there to compare with."""
Kind = Dot | Line
"""Whatever a legend explains."""
MAX_TIPS = 300
"""More dots than this nobody points at one by one; they stay nameless, and the page small."""
MAX_DOTS = 2_000
"""From so many dots on, those that share a pixel are drawn once, so that a page about many people stays small."""
LEFT, RIGHT, TOP, BOTTOM = 70, 26, 12, 46


class Panel:
    """Draws between two axes; what comes later is on top."""

    def __init__(self, x: Scale, y: Scale, *, width: int = 1000, height: int = 320, left: int = LEFT) -> None:
        """An empty panel, with so much room for the names at its left; without a label, it has no lower axis."""
        self.x, self.y, self.width, self.height, self.left = x, y, width, height, left
        self._bottom = height - (BOTTOM if x.label else 6)
        self._svg = Element("svg", {"viewBox": f"0 0 {width} {height}", "role": "img"})
        self._shapes = DrawnShapes()
        self._labels: list[tuple[str, list[Place]]] = []
        self._draw_axes()

    def render_svg(self, description: str) -> Markup:
        """The panel as markup, with what it shows in words for those who cannot see it."""
        self._svg.set("aria-label", description)
        for words, places in self._labels:  # last, because all that they must not cover is drawn by now
            place = self._shapes.choose_place(words, places)
            self._draw_text(place.x, place.y, words, place.anchor).set("class", "words label")
        self._labels.clear()
        # Every value went through the serialiser, which escapes it.
        return Markup(tostring(self._svg, encoding="unicode"))  # noqa: S704

    def draw_bars(self, edges: ArrayLike, heights: ArrayLike, kind: Colour, *, of: str = "") -> None:
        """A histogram; `of` names what is counted, for whoever points at a bar."""
        sides, tops = self._to_x(edges), self._to_y(heights)
        ends, values = (np.asarray(each, dtype=np.float64).tolist() for each in (edges, heights))
        boxes = zip(sides[:-1].tolist(), np.diff(sides).tolist(), tops.tolist(), strict=True)
        for i, (x, width, top) in enumerate(boxes):
            box = {"x": x, "y": top, "width": max(width - 0.5, 0.2), "height": self._bottom - top}
            bar = self._add("rect", f"fill {kind}", **box)
            value = self.y.format_value(values[i])
            _build_panel_tip(bar, f"{ends[i]:.4g} to {ends[i + 1]:.4g}: {value}{' ' * bool(of)}{of}")
        self._shapes.add_boxes(sides[:-1], tops, sides[1:], self._bottom)

    def draw_line(self, x: ArrayLike, y: ArrayLike, kind: Line, *, name: str = "") -> None:
        """A line through points, with its name at the end; what is no number is passed over."""
        places = np.column_stack([self._to_x(x), self._to_y(y)])
        points = places[np.isfinite(places).all(axis=1)].tolist()
        self._add("polyline", f"line {kind}", points=" ".join(f"{a:.1f},{b:.1f}" for a, b in points))
        self._shapes.add_line(points)
        if name and points:
            self._label_level(points[-1][1], name, right=points[-1][0])

    def draw_dots(self, x: ArrayLike, y: ArrayLike, kind: Dot, tips: Sequence[str] = ()) -> None:
        """A dot for each point; the tips are what pointing at one tells. Of many in one place, one is drawn."""
        places = np.column_stack([self._to_x(x), self._to_y(y)])
        if len(places) > MAX_DOTS:
            places = np.unique(np.round(places), axis=0)  # what lies on one pixel looks like one dot
        for i, (a, b) in enumerate(places.tolist()):
            dot = self._add("circle", f"dot {kind}", cx=a, cy=b, r=4.0)
            _build_panel_tip(dot, tips[i] if len(tips) <= MAX_TIPS and tips else "")
        self._shapes.add_points(places[:, 0], places[:, 1], 4.0)

    def draw_intervals(self, x: ArrayLike, low: ArrayLike, high: ArrayLike, kind: Colour) -> None:
        """An upright line from low to high at each x: an interval."""
        across, below, above = self._to_x(x), self._to_y(low), self._to_y(high)
        for a, b, c in zip(across.tolist(), below.tolist(), above.tolist(), strict=True):
            self._add("line", f"span {kind}", x1=a, x2=a, y1=b, y2=c)
        self._shapes.add_boxes(across, np.minimum(below, above), across, np.maximum(below, above))

    def draw_means(self, x: ArrayLike, y: ArrayLike, *, width: float) -> None:
        """A short thick line at each point, so wide in units of the axis."""
        left, right = (self._to_x(np.asarray(x, dtype=np.float64) + side * width / 2) for side in (-1, 1))
        heights = self._to_y(y)
        for a, b, height in zip(left.tolist(), right.tolist(), heights.tolist(), strict=True):
            self._add("line", "mean", x1=a, x2=b, y1=height, y2=height)
        self._shapes.add_boxes(left, heights - 1.5, right, heights + 1.5)

    def draw_threshold(self, x: float, words: str) -> None:
        """A threshold: an upright dashed line across the panel, and what it is."""
        (at,) = self._to_x([x])
        self._add("line", "rule", x1=at, x2=at, y1=TOP, y2=self._bottom)
        self._shapes.add_boxes(at, TOP, at, self._bottom)
        self._labels.append((words, list(iter_places_beside_threshold(at, **self._get_room(words)))))

    def draw_level(self, y: float, words: str) -> None:
        """A level: a dashed line from side to side, and what it is."""
        (at,) = self._to_y([y])
        self._add("line", "rule", x1=self.left, x2=self.width - RIGHT, y1=at, y2=at)
        self._shapes.add_boxes(self.left, at, self.width - RIGHT, at)
        self._label_level(at, words, right=self.width - RIGHT)

    def _label_level(self, y: float, words: str, *, right: float) -> None:
        """Name what is at this height, left of this place."""
        self._labels.append((words, list(iter_places_along_level(y, **{**self._get_room(words), "right": right}))))

    def _get_room(self, words: str) -> dict[str, float]:
        """The sides of the panel between its axes, and how wide a label is."""
        sides = {"left": self.left, "right": self.width - RIGHT, "top": TOP, "bottom": self._bottom}
        return {**sides, "width": LETTER * len(words)}

    def _draw_axes(self) -> None:
        """Lines, ticks and labels of both axes."""
        for value, words in self.y.ticks:
            (at,) = self._to_y([value])
            self._add("line", "grid", x1=self.left, x2=self.width - RIGHT, y1=at, y2=at)
            self._draw_text(self.left - 8, at + 4, words, "end")
        self._add("line", "axis", x1=self.left, x2=self.width - RIGHT, y1=self._bottom, y2=self._bottom)
        if self.y.label:
            middle = (TOP + self._bottom) / 2
            turned = self._draw_text(14, middle, self.y.label, "middle")
            turned.set("transform", f"rotate(-90 14 {middle:.1f})")
        if self.x.label:
            for value, words in self.x.ticks:
                (at,) = self._to_x([value])
                self._add("line", "axis", x1=at, x2=at, y1=self._bottom, y2=self._bottom + 5)
                self._draw_text(at, self._bottom + 19, words, "middle")
            self._draw_text((self.left + self.width - RIGHT) / 2, self.height - 6, self.x.label, "middle")

    def _to_x(self, values: ArrayLike) -> Floats:
        """Where values of the lower axis are."""
        return self.left + self.x.to_unit(values) * (self.width - self.left - RIGHT)

    def _to_y(self, values: ArrayLike) -> Floats:
        """Where values of the upright axis are."""
        return self._bottom - self.y.to_unit(values) * (self._bottom - TOP)

    def _draw_text(self, x: float, y: float, words: str, anchor: str) -> Element:
        """A few words."""
        text = self._add("text", "words", x=x, y=y)
        text.set("text-anchor", anchor)
        text.text = words
        return text

    def _add(self, tag: str, classes: str, **at: float | str) -> Element:
        """A shape."""
        attributes = {name: value if isinstance(value, str) else f"{value:.1f}" for name, value in at.items()}
        return SubElement(self._svg, tag, {"class": classes, **attributes})


def _build_panel_tip(shape: Element, words: str) -> None:
    """What pointing at a shape of a panel tells."""
    if words:
        SubElement(shape, "title").text = words
