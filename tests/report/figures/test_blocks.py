"""ROC curves and histograms are drawn where their numbers are."""

from __future__ import annotations

import itertools
import re
from xml.etree import ElementTree

import numpy as np
import pyarrow as pa
import pytest

from recollect.audits.common.roc_table import build_roc_table
from recollect.report.figures.blocks import MAX_POINTS, RocCurve, compute_bins, draw_histograms, draw_roc
from recollect.report.figures.columns import read_column
from recollect.report.figures.panel import RIGHT, TOP, Panel
from recollect.report.figures.scale import Scale
from recollect.stats import auc, roc_curve, threshold_at


def shapes(panel, tag, name):
    tree = ElementTree.fromstring(panel.render_svg("told"))  # noqa: S314 - our own markup
    return [shape for shape in tree.iter(tag) if name in shape.get("class", "").split()]


def curve_of(panel):
    """The drawn curve, in units of the axes: linear shares, or places along logarithmic ones."""
    (line,) = shapes(panel, "polyline", "found")
    points = np.array([point.split(",") for point in line.get("points").split()], dtype=float)
    bottom = panel.height - 46
    return (points[:, 0] - panel.left) / (panel.width - panel.left - RIGHT), (bottom - points[:, 1]) / (bottom - TOP)


def test_the_area_under_the_drawn_curve_is_the_auc():
    rng = np.random.default_rng(1)
    members, others = rng.normal(1, 1, 400).round(1), rng.normal(0, 1, 5000).round(1)
    linear, _ = draw_roc(build_roc_table(members, others)).panels
    x, y = curve_of(linear)
    assert np.trapezoid(y, x) == pytest.approx(auc(members, others).value, abs=0.002)


def test_a_drawn_curve_is_read_as_the_statistics_read_it():
    rng = np.random.default_rng(2)
    curve, rates = roc_curve(rng.normal(1, 1, 50).round(1), rng.normal(0, 1, 70).round(1)), np.geomspace(1e-3, 1, 99)
    assert np.array_equal(RocCurve(curve.fpr, curve.tpr).tpr_at(rates), curve.tpr_at(rates))


@pytest.mark.parametrize("kind", [pa.float32(), pa.float64(), pa.int8(), pa.uint32(), pa.int64()], ids=str)
def test_a_column_is_read_as_arrow_reads_it(kind):
    whole = pa.chunked_array([pa.array([1, 2, 3, 4], kind), pa.array([5, None], kind), pa.array([], kind)])
    for column in (whole, whole.slice(1, 2), whole.slice(1), whole.slice(0, 0)):
        expected = np.asarray(column.cast(pa.float64()).to_numpy(), dtype=np.float64)
        assert np.array_equal(read_column(pa.table({"x": column}), "x"), expected, equal_nan=True)


def test_the_logarithmic_panel_shows_what_is_found_without_exceeding_a_rate():
    rng = np.random.default_rng(2)
    members, others = rng.normal(2, 1, 500), rng.normal(0, 1, 1000)
    _, logarithmic = draw_roc(build_roc_table(members, others)).panels
    assert logarithmic.x.low == pytest.approx(0.001)
    x, y = curve_of(logarithmic)
    for rate in (0.01, 0.1):
        drawn = y[np.searchsorted(x, logarithmic.x.to_unit(rate) + 1e-4) - 1]
        found = (members > threshold_at(others, rate)).mean()
        assert drawn == pytest.approx(float(logarithmic.y.to_unit(found)), abs=0.02)


def test_the_curve_is_reported_in_words_as_far_as_there_are_non_members():
    figure = draw_roc(build_roc_table([3.0, 2.0, 0.0, 5.0], np.arange(100) / 100))
    assert "75 % of members are found where 1 % of non-members are flagged" in figure.description
    assert "0.1 %" not in figure.description
    assert "75 %" in figure.svgs[0]


def test_a_constant_score_is_drawn_as_random_guessing():
    linear, _ = draw_roc(build_roc_table(np.ones(50), np.ones(70))).panels
    x, y = curve_of(linear)
    assert x.tolist() == y.tolist() == [0.0, 1.0]


def test_a_million_scores_make_a_small_figure():
    rng = np.random.default_rng(3)
    figure = draw_roc(build_roc_table(rng.normal(size=500_000), rng.normal(size=500_000)))
    assert sum(map(len, figure.svgs)) < 60_000
    x, y = curve_of(figure.panels[0])
    assert len(x) <= MAX_POINTS
    assert (x[0], y[0], x[-1], y[-1]) == (0, 0, 1, 1)
    assert (np.diff(x) >= 0).all()


def test_histograms_show_shares_of_each_group_and_the_threshold_between_them():
    members, others = np.array([4.0, 5.0, 6.0, np.inf]), np.repeat([1.0, 2.0, 3.0], 100)
    figure = draw_histograms(members, others, label="loss", threshold=3.5)
    (panel,) = figure.panels
    for kind in ("found", "null"):
        heights = [float(bar.get("height")) for bar in shapes(panel, "rect", kind)]
        scale = (panel.height - 46 - TOP) / panel.y.high
        assert sum(heights) / scale == pytest.approx(1, abs=0.02)
    (rule,) = shapes(panel, "line", "rule")
    across = (float(rule.get("x1")) - panel.left) / (panel.width - panel.left - RIGHT)
    assert across == pytest.approx(float(panel.x.to_unit(3.5)), abs=1e-3)
    assert "100.0% of members at or beyond the threshold, 0.0% of non-members" in figure.description
    assert figure.legend == (("found", "members (3)"), ("null", "non-members (300)"))


def test_bins_cover_the_axis_and_count_what_a_slow_twin_counts():
    values = np.random.default_rng(4).normal(size=2000)
    scale = Scale.over(values, label="x")
    edges = compute_bins(values, scale)
    assert (edges[0], edges[-1]) == (scale.low, scale.high)
    assert 10 <= len(edges) - 1 <= 60
    slow = [sum(a <= v < b for v in values) for a, b in itertools.pairwise(edges)]
    assert np.histogram(values, edges)[0].tolist() == slow


def test_a_panel_escapes_whatever_it_is_given():
    panel = Panel(Scale(low=0, high=1, label="<script>x</script>"), Scale(low=0, high=1))
    panel.draw_dots([0.5], [0.5], "found", ['"><img onerror=x>'])
    panel.draw_threshold(0.5, "</svg><b>")
    markup = panel.render_svg('a "quote" <b>')
    assert not re.search(r"<(script|img|b)\b", markup)
    assert markup.count("</svg>") == 1
