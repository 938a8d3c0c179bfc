"""Figures of the reproductions: SVG files that a browser shows without the page of the report around them."""

from __future__ import annotations

import importlib
import runpy
from pathlib import Path
from xml.etree import ElementTree

import pytest

from recollect.report.figures.panel import Panel
from recollect.report.figures.scale import Scale

REPRODUCTIONS = Path(__file__).resolve().parents[2] / "reproductions"
SVG = "{http://www.w3.org/2000/svg}"


@pytest.fixture
def beside(monkeypatch):
    """Scripts of the reproductions find what they share."""
    monkeypatch.syspath_prepend(str(REPRODUCTIONS))


@pytest.fixture
def write_panel(beside):
    return importlib.import_module("common.drawing").write_panel


def looks(drawing):
    """The kinds of things that are drawn, such as ".line.found", and the looks that the file has for them."""
    drawn = {f".{name.replace(' ', '.')}" for each in drawing.iter() if (name := each.get("class"))}
    return drawn, drawing.find(f"{SVG}style").text


def test_a_panel_stands_alone_with_its_looks_and_its_words(write_panel, tmp_path):
    panel = Panel(Scale(low=0, high=1, label="a < b"), Scale(low=0, high=1, label="share"))
    panel.draw_bars([0, 0.5, 1], [0.2, 0.7], "null")
    panel.draw_bars([0, 0.5, 1], [0.1, 0.3], "found")
    for kind in ("guide", "control", "found"):
        panel.draw_line([0, 1], [0, 1], kind)
    panel.draw_threshold(0.5, "threshold")
    write_panel(tmp_path / "panel.svg", panel, "Where a > b & 'c' < \"d\".")
    drawing = ElementTree.parse(tmp_path / "panel.svg").getroot()  # noqa: S314 - our own file
    assert drawing.tag == f"{SVG}svg"
    assert drawing.get("aria-label") == "Where a > b & 'c' < \"d\"."
    assert len(drawing.findall(f"{SVG}rect")) == 4
    drawn, style = looks(drawing)
    assert len(drawn) == 10
    assert all(f"{kind} {{" in style for kind in drawn)


def test_shares_at_or_below_end_at_all_of_each_side(beside, tmp_path):
    cumulative = runpy.run_path(str(REPRODUCTIONS / "huang2021" / "drawing.py"))["cumulative"]
    cumulative({"in": [1.0, 2.0], "out": [0.0, 4.0]}, "loss", tmp_path / "shares.svg")
    drawing = ElementTree.parse(tmp_path / "shares.svg").getroot()  # noqa: S314 - our own file
    ends = [line.get("points").split()[-1] for line in drawing.iter(f"{SVG}polyline")]
    assert len(ends) == 2
    assert len(set(ends)) == 1
    assert drawing.get("aria-label") == "Cumulative shares of loss: in orange, out grey."
