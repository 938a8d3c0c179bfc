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

from recollect.report.figures.scale import Floats, Scale

Colour = Literal["null", "found", "control"]
"""What is drawn: the null distribution, what the audit is after, what is known to be held out."""
Dot = Literal[Colour, "apart"]
"""A dot may also be somebody too unlike those to be compared with them,"""
Line = Literal[Colour, "guide"]
"""and a line may be there to compare with."""
Kind = Dot | Line
"""Whatever a legend explains."""
MOST_TIPS = 300
"""More dots than this nobody points at one by one; they stay nameless, and the page small."""
LEFT, RIGHT, TOP, BOTTOM = 70, 26, 12, 46


class Panel:
    """Draws between two axes; what comes later lies on top."""

    def __init__(self, x: Scale, y: Scale, *, width: int = 680, height: int = 300, left: int = LEFT) -> None:
        """An empty panel, with so much room for the names at its left; without a label, it has no lower axis."""
        self.x, self.y, self.width, self.height, self.left = x, y, width, height, left
        self._bottom = height - (BOTTOM if x.label else 6)
        self._svg = Element("svg", {"viewBox": f"0 0 {width} {height}", "role": "img"})
        self._axes()

    def svg(self, description: str) -> Markup:
        """The panel as markup, with what it shows in words for those who cannot see it."""
        self._svg.set("aria-label", description)
        # Every value went through the serialiser, which escapes it.
        return Markup(tostring(self._svg, encoding="unicode"))  # noqa: S704

    def bars(self, edges: ArrayLike, heights: ArrayLike, kind: Colour, *, of: str = "") -> None:
        """A histogram; `of` names what is counted, for whoever points at a bar."""
        left, tops = self._across(edges), self._down(heights)
        shown = np.asarray(edges, dtype=np.float64)
        for i, top in enumerate(tops):
            box = {"x": left[i], "y": top, "width": max(left[i + 1] - left[i] - 0.5, 0.2), "height": self._bottom - top}
            bar = self._add("rect", f"fill {kind}", **box)
            value = self.y.words(float(np.asarray(heights)[i]))
            _tip(bar, f"{shown[i]:.4g} to {shown[i + 1]:.4g}: {value}{' ' * bool(of)}{of}")

    def line(self, x: ArrayLike, y: ArrayLike, kind: Line, *, name: str = "") -> None:
        """A line through points, with its name at the end; what is no number is passed over."""
        places = [(a, b) for a, b in zip(self._across(x), self._down(y), strict=True) if np.isfinite(a + b)]
        self._add("polyline", f"line {kind}", points=" ".join(f"{a:.1f},{b:.1f}" for a, b in places))
        if name and places:
            self._words(places[-1][0] - 6, _beside(places[-1][1], 8), name, "end")

    def dots(self, x: ArrayLike, y: ArrayLike, kind: Dot, tips: Sequence[str] = ()) -> None:
        """A dot for each point; the tips are what pointing at one tells."""
        for i, (a, b) in enumerate(zip(self._across(x), self._down(y), strict=True)):
            dot = self._add("circle", f"dot {kind}", cx=a, cy=b, r=4.0)
            _tip(dot, tips[i] if len(tips) <= MOST_TIPS and tips else "")

    def spans(self, x: ArrayLike, low: ArrayLike, high: ArrayLike, kind: Colour) -> None:
        """An upright line from low to high at each x: an interval."""
        for a, b, c in zip(self._across(x), self._down(low), self._down(high), strict=True):
            self._add("line", f"span {kind}", x1=a, x2=a, y1=b, y2=c)

    def means(self, x: ArrayLike, y: ArrayLike, *, width: float) -> None:
        """A short thick line at each point, so wide in units of the axis."""
        left, right = (self._across(np.asarray(x, dtype=np.float64) + side * width / 2) for side in (-1, 1))
        for a, b, height in zip(left, right, self._down(y), strict=True):
            self._add("line", "mean", x1=a, x2=b, y1=height, y2=height)

    def upright(self, x: float, words: str) -> None:
        """A threshold: an upright dashed line across the panel, and what it is."""
        (at,) = self._across([x])
        self._add("line", "rule", x1=at, x2=at, y1=TOP, y2=self._bottom)
        near_the_end = at > self.width * 0.6
        self._words(at + (-6 if near_the_end else 6), TOP + 11, words, "end" if near_the_end else "start")

    def level(self, y: float, words: str) -> None:
        """A level: a dashed line from side to side, and what it is."""
        (at,) = self._down([y])
        self._add("line", "rule", x1=self.left, x2=self.width - RIGHT, y1=at, y2=at)
        self._words(self.width - RIGHT - 4, _beside(at, 5), words, "end")

    def _axes(self) -> None:
        """Lines, ticks and labels of both axes."""
        for value, words in self.y.ticks:
            (at,) = self._down([value])
            self._add("line", "grid", x1=self.left, x2=self.width - RIGHT, y1=at, y2=at)
            self._words(self.left - 8, at + 4, words, "end")
        self._add("line", "axis", x1=self.left, x2=self.width - RIGHT, y1=self._bottom, y2=self._bottom)
        if self.y.label:
            middle = (TOP + self._bottom) / 2
            turned = self._words(14, middle, self.y.label, "middle")
            turned.set("transform", f"rotate(-90 14 {middle:.1f})")
        if self.x.label:
            for value, words in self.x.ticks:
                (at,) = self._across([value])
                self._add("line", "axis", x1=at, x2=at, y1=self._bottom, y2=self._bottom + 5)
                self._words(at, self._bottom + 19, words, "middle")
            self._words((self.left + self.width - RIGHT) / 2, self.height - 6, self.x.label, "middle")

    def _across(self, values: ArrayLike) -> Floats:
        """Where values of the lower axis stand."""
        return self.left + self.x.at(values) * (self.width - self.left - RIGHT)

    def _down(self, values: ArrayLike) -> Floats:
        """Where values of the upright axis stand."""
        return self._bottom - self.y.at(values) * (self._bottom - TOP)

    def _words(self, x: float, y: float, words: str, anchor: str) -> Element:
        """A few words."""
        text = self._add("text", "words", x=x, y=y)
        text.set("text-anchor", anchor)
        text.text = words
        return text

    def _add(self, tag: str, classes: str, **at: float | str) -> Element:
        """A shape."""
        places = {name: value if isinstance(value, str) else f"{value:.1f}" for name, value in at.items()}
        return SubElement(self._svg, tag, {"class": classes, **places})


def _beside(line: float, gap: float) -> float:
    """Where words stand that belong to a line: above it, or beneath it if it lies too high."""
    return line - gap if line > TOP + 14 else line + gap + 9


def _tip(shape: Element, words: str) -> None:
    """What pointing at a shape tells."""
    if words:
        SubElement(shape, "title").text = words
