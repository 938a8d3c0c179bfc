"""Figures of the leakage audit: users in order, sequences beside the null, and nothing where there is no epsilon."""

from __future__ import annotations

from xml.etree import ElementTree

import numpy as np
import pyarrow as pa
import pytest

from recollect.report.figures.leakage import draw_leakage_figures
from recollect.results.result import Result


def dots(panel, kind):
    """Where the dots of a kind are, from the left and from the top."""
    tree = ElementTree.fromstring(panel.render_svg("told"))  # noqa: S314 - our own markup
    found = [dot for dot in tree.iter("circle") if kind in dot.get("class").split()]
    return [(float(dot.get("cx")), float(dot.get("cy"))) for dot in found]


@pytest.fixture
def result():
    settings = {"deniable_at": 1.0}
    return Result(audit="leakage", question="Whose?", verdict="Theirs.", outcome="found", settings=settings)


def tables(epsilons):
    grouped = {"sequences": [2, 1], "users": [2, 1], "epsilon": [1.5, 3.0], "epsilon_median": [0.5, 3.0]}
    return {
        "sequences": pa.table({"epsilon": pa.array(epsilons, pa.float64())}),
        "users": pa.table(
            {
                "user": ["<b>ann</b>", "bob", "cid", "dee"],
                "epsilon": pa.array([epsilons[0], epsilons[1], epsilons[2], None], pa.float64()),
                "flagged": [False, True, True, False],
            }
        ),
        "null": pa.table({"epsilon": pa.array([0.1, 0.4, None], pa.float64())}),
        "by_times": pa.table({"times_up_to": [1, 4], **grouped}),
        "by_length": pa.table({"words": [1, 7], **grouped}),
    }


def test_users_are_ranked_and_the_flagged_ones_distinguished(result):
    ranked, beside, grouped = draw_leakage_figures(result, tables([0.5, 3.0, 1.5]))
    (panel,) = ranked.panels
    (first, second), (third,) = dots(panel, "found"), dots(panel, "control")
    assert first[0] < second[0] < third[0]
    assert first[1] < second[1] < third[1], "who is given away most stands highest, and first"
    assert "2 users above 1; 2 flagged; largest epsilon 3" in ranked.description
    assert "3 of 4" in panel.x.label
    assert "Beyond the null distribution: 3" in beside.description
    assert "up to 4 times: 3" in grouped.description
    assert len(grouped.panels) == 2
    assert [len(dots(each, "found")) for each in grouped.panels] == [2, 2]


def test_no_name_and_no_text_is_drawn(result):
    drawn = "".join(str(svg) for figure in draw_leakage_figures(result, tables([0.5, 3.0, 1.5])) for svg in figure.svgs)
    assert "ann" not in drawn
    assert "bob" not in drawn


def test_without_an_epsilon_nothing_is_drawn(result):
    assert draw_leakage_figures(result, tables([np.nan] * 3)) == []
    assert draw_leakage_figures(result, {}) == []


def test_where_it_is_not_told_who_was_flagged_users_are_not_ranked(result):
    untold = tables([0.5, 3.0, 1.5])
    untold["users"] = untold["users"].drop_columns("flagged")
    assert [figure.title for figure in draw_leakage_figures(result, untold)] == [
        "Sequences beside the null distribution",
        "Epsilon by repetitions and by length",
    ]
