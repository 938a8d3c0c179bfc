"""Labels lie beside what they explain, within the panel, and over nothing that is drawn where there is room."""

from __future__ import annotations

from itertools import pairwise
from xml.etree import ElementTree

import numpy as np
import pytest

from recollect.report.figures.label_placement import _PIECE, ASCENT, DESCENT, LETTER, DrawnShapes
from recollect.report.figures.panel import Panel
from recollect.report.figures.scale import Scale


def make_panel():
    return Panel(Scale(low=0.0, high=1.0, label="x"), Scale(low=0.0, high=1.0, label="y"))


def find_label(panel):
    """Left, top, right and bottom of the one label."""
    tree = ElementTree.fromstring(panel.render_svg("told"))  # noqa: S314 - our own markup
    (text,) = [each for each in tree.iter("text") if "label" in each.get("class").split()]
    x, y, width = float(text.get("x")), float(text.get("y")), LETTER * len(text.text)
    left = x if text.get("text-anchor") == "start" else x - width
    return tree, (left, y - ASCENT, left + width, y + DESCENT)


def count_covered(tree, box):
    """How many dots, bars and corners of lines the label covers, the slow way."""
    left, top, right, bottom = box
    found = 0
    for dot in tree.iter("circle"):
        x, y, r = (float(dot.get(name)) for name in ("cx", "cy", "r"))
        found += left < x + r and right > x - r and top < y + r and bottom > y - r
    for bar in tree.iter("rect"):
        x, y, w, h = (float(bar.get(name)) for name in ("x", "y", "width", "height"))
        found += left < x + w and right > x and top < y + h and bottom > y
    for line in tree.iter("polyline"):
        corners = np.array([point.split(",") for point in line.get("points").split()], dtype=float)
        steps = np.concatenate([a + np.linspace(0, 1, 99)[:, None] * (b - a) for a, b in pairwise(corners)])
        found += bool(((steps > [left, top]) & (steps < [right, bottom])).all(1).any())
    return found


@pytest.mark.parametrize("seed", range(12))
def test_a_label_covers_nothing_where_there_is_room(seed):
    rng = np.random.default_rng(seed)
    panel = make_panel()
    panel.draw_dots(*rng.uniform(size=(2, 40)), "found")
    panel.draw_line(np.linspace(0, 1, 9), rng.uniform(size=9), "null")
    panel.draw_bars(np.linspace(0.6, 1, 5), rng.uniform(0, 0.4, 4), "null")
    at = rng.uniform(0.05, 0.95)
    panel.draw_threshold(at, "threshold") if seed % 2 else panel.draw_level(at, "this set")
    tree, box = find_label(panel)
    assert count_covered(tree, box) == 0


@pytest.mark.parametrize("at", [0.0, 0.02, 0.5, 0.98, 1.0])
@pytest.mark.parametrize("kind", ["draw_threshold", "draw_level"])
def test_a_label_stays_between_the_axes(kind, at):
    panel = make_panel()
    getattr(panel, kind)(at, "threshold of some length: 0.123")
    _, (left, top, right, bottom) = find_label(panel)
    assert left >= panel.left
    assert right <= panel.width
    assert top >= 0
    assert bottom <= panel.height - 40


def test_a_label_of_a_full_panel_is_drawn_all_the_same_and_once():
    panel = make_panel()
    panel.draw_bars([0.0, 1.0], [1.0], "null")
    panel.draw_threshold(0.5, "threshold")
    find_label(panel)
    find_label(panel)


@pytest.mark.parametrize("corners", [0, 1, 2, 40])
def test_a_line_is_seen_as_the_points_that_walking_along_it_gives(corners):
    points = np.random.default_rng(corners).uniform(0, 300, (corners, 2)).round(1)
    points[4::7] = points[3:-1:7]  # a piece of no length
    walked = [np.zeros((0, 4))]
    for begin, end in pairwise(points):
        steps = 1 + int(np.abs(end - begin).max() // _PIECE)
        x, y = (begin + np.linspace(0, 1, steps + 1)[:, None] * (end - begin)).T
        walked.append(np.column_stack([x - 1, y - 1, x + 1, y + 1]))
    shapes = DrawnShapes()
    shapes.add_line(points)
    assert np.array_equal(np.concatenate([np.zeros((0, 4)), *shapes._boxes]), np.concatenate(walked))
