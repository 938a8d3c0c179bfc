"""A panel about many people: nobody's place is lost, and the page stays small."""

from __future__ import annotations

import re

import numpy as np

from recollect.report.figures.panel import MAX_DOTS, Panel
from recollect.report.figures.scale import Scale


def draw(x, y):
    panel = Panel(Scale(low=0.0, high=1.0, label="x"), Scale(low=0.0, high=1.0, label="y"))
    panel.draw_dots(x, y, "found")
    svg = panel.render_svg("d")
    return svg, re.findall(r'cx="([\d.]+)" cy="([\d.]+)"', svg)


def test_few_dots_are_all_drawn_even_where_they_coincide():
    assert len(draw([0.5] * 7, [0.5] * 7)[1]) == 7


def test_of_many_dots_every_place_is_drawn_once():
    rng = np.random.default_rng(0)
    x, y = rng.uniform(size=(2, 100_000))
    y = np.round(y, 2)
    svg, dots = draw(x, y)
    assert len(svg) < 8_000_000
    assert len(dots) == len(set(dots)) < 100_000
    line, thin = draw(np.linspace(0, 1, 100_000), np.linspace(0, 1, 100_000))
    assert len(thin) <= 1_200 < MAX_DOTS
    assert len(line) < 120_000
    assert {float(a) for a, _ in thin} == {float(a) for a in range(70, 975)}
