"""Figures of the exposure audit: dots are where the tables say, and nothing is drawn that is not there."""

from __future__ import annotations

from xml.etree import ElementTree

import numpy as np
import pyarrow as pa
import pytest

from recollect.report.figures.exposure import draw_exposure_figures
from recollect.report.figures.panel import RIGHT


def dots(panel, kind):
    """Where the dots of a kind are along the lower axis, from 0 to 1."""
    tree = ElementTree.fromstring(panel.render_svg("told"))  # noqa: S314 - our own markup
    found = [dot for dot in tree.iter("circle") if kind in dot.get("class").split()]
    return sorted((float(dot.get("cx")) - panel.left) / (panel.width - panel.left - RIGHT) for dot in found)


def test_secrets_stand_beneath_the_random_ones_by_their_log_perplexity(exposed, exposures):
    tables = exposures()
    among, *_ = draw_exposure_figures(exposed(), tables)
    hill, strips = among.panels
    assert (hill.x.low, hill.x.high) == (strips.x.low, strips.x.high)
    planted = tables["secrets"].filter(pa.compute.greater(tables["secrets"]["planted"], 0))
    expected = sorted(strips.x.to_unit(planted["log_perplexity_bits"].to_numpy()))
    assert dots(strips, "found") == pytest.approx(expected, abs=1e-3)
    assert len(dots(strips, "control")) == 30
    assert [name for _, name in strips.y.ticks] == ["controls", "planted 1×", "planted 9×"]
    assert "499 random secrets" in among.description
    assert "4 of 4 (planted 9×)" in among.description


def test_secrets_of_several_formats_are_compared_with_draws_of_their_own(exposed, exposures):
    tables = exposures(formats=2)
    far = np.where(tables["draws"]["format"].to_numpy() == 1, 1000.0, 0.0)
    shifted = pa.array(tables["draws"]["log_perplexity_bits"].to_numpy() + far)
    near = np.where(tables["secrets"]["format"].to_numpy() == 1, 1000.0, 0.0)
    moved = pa.array(tables["secrets"]["log_perplexity_bits"].to_numpy() + near)
    tables = {
        "draws": tables["draws"].set_column(1, "log_perplexity_bits", shifted),
        "secrets": tables["secrets"].set_column(9, "log_perplexity_bits", moved),
    }
    among, *_ = draw_exposure_figures(exposed(), tables)
    assert among.panels[0].x.high - among.panels[0].x.low < 50
    assert "of the same format" in among.panels[1].x.label


def test_exposure_is_shown_by_repetitions_with_its_mean(exposed, exposures):
    _, by, _ = draw_exposure_figures(exposed(), exposures())
    (panel,) = by.panels
    assert [name for _, name in panel.x.ticks] == ["controls (30)", "planted 1× (4)", "planted 9× (4)"]
    assert "planted 9×: mean 12.0 bits" in by.description
    assert "19.9 bits" in by.description
    assert panel.render_svg("").count('class="mean"') == 3


def test_secrets_of_which_nobody_knows_how_often_they_were_trained_on_have_a_group(exposed, exposures):
    secrets = exposures()["secrets"].slice(30)
    unknown = secrets.set_column(3, "planted", pa.array([None] * 8, pa.int64()))
    by, _ = draw_exposure_figures(exposed(), {"secrets": unknown})
    assert [name for _, name in by.panels[0].x.ticks] == ["given (8)"]


def test_many_numbers_of_repetitions_are_one_group(exposed, exposures):
    secrets = exposures()["secrets"]
    many = secrets.set_column(3, "planted", pa.array(range(38), pa.int64()))
    by, _ = draw_exposure_figures(exposed(), {"secrets": many})
    assert [name for _, name in by.panels[0].x.ticks] == ["controls (1)", "planted 1–37× (37)"]


def test_the_curve_of_the_paper_is_not_compared_with_itself(exposed, exposures):
    titles = [
        figure.title for figure in draw_exposure_figures(exposed(settings={"method": "skew-normal"}), exposures())
    ]
    assert not any("curve" in title for title in titles)
    none = pa.array([None] * 38, pa.float64())
    without = exposures()["secrets"].set_column(14, "skew_normal_bits", none)
    assert len(draw_exposure_figures(exposed(), {"secrets": without})) == 1


@pytest.mark.parametrize(
    "tables", [{}, {"secrets": pa.table({"secret_id": ["a"]})}, {"draws": pa.table({"format": [0]})}]
)
def test_without_the_columns_nothing_is_drawn(exposed, tables):
    assert draw_exposure_figures(exposed(), tables) == []


def test_no_text_of_a_table_is_in_a_figure(exposed, exposures):
    tables = exposures()
    marked = pa.array(["SECRETTEXT"] * 38)
    secrets = tables["secrets"].set_column(1, "secret", marked).set_column(0, "secret_id", marked)
    for figure in draw_exposure_figures(exposed(), tables | {"secrets": secrets}):
        assert "SECRETTEXT" not in "".join([*figure.svgs, figure.description, figure.reading, str(figure.legend)])
