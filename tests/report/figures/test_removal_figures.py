"""Figures of the removal audit."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from recollect.report.figures.removal import draw_removal_figures
from recollect.results.result import Result

RESULT = Result(audit="removal", question="Gone?", verdict="Gone.", outcome="not_found")


def table(probabilities, **more):
    return pa.table({"member_probability": np.asarray(probabilities, dtype=float), **more})


def test_the_query_set_and_members_are_drawn_beside_the_controls_that_are_compared():
    rng = np.random.default_rng(0)
    compared = np.arange(50) < 40
    tables = {"audited": table(rng.random(50)), "controls": table(rng.random(50), compared=compared)}
    assert draw_removal_figures(RESULT, tables) == []
    tables["members"] = table(rng.random(50))
    figures = draw_removal_figures(RESULT, tables)
    assert [figure.title for figure in figures] == [
        "The query set among records never seen",
        "How members would be scored",
    ]
    assert "query set" in figures[0].description
    everyone = {**tables, "controls": table(tables["controls"]["member_probability"].to_numpy())}
    assert draw_removal_figures(RESULT, everyone)[0].svgs != figures[0].svgs


def test_without_calibration_models_only_the_query_set_is_drawn():
    tables = {"audited": table([0.1, 0.2]), "controls": table([0.0, 0.3]), "members": table([])}
    assert [figure.title for figure in draw_removal_figures(RESULT, tables)] == [
        "The query set among records never seen"
    ]


def test_power_is_drawn_by_the_size_of_the_set():
    power = pa.table({"size": [5.0, 50.0, 500.0], "still_there": [0.0, 0.72, 1.0], "gone": [0.0, 0.1, 0.8]})
    (figure,) = draw_removal_figures(RESULT, {"power": power})
    assert "50 records: 72% and 10%" in figure.description
    assert figure.svgs[0].count("<circle") == 6
    assert figure.svgs[0].count("<polyline") == 2
    assert draw_removal_figures(RESULT, {"power": pa.table({})}) == []


def test_votes_of_each_metric_are_drawn_and_whether_any_passed():
    votes = pa.table(
        {
            "record": ["a", "b", "c", "d"],
            "correctness": [1.0, 1.0, 0.0, 0.0],
            "correctness_passed": [True, True, False, False],
            "confidence_passed": [False, False, True, False],
            "memorised": [True, True, True, False],
        }
    )
    (figure,) = draw_removal_figures(RESULT, {"votes": votes})
    assert "4 records" in figure.description
    assert "correctness 50.0%, confidence 25.0%, any of them 75.0%" in figure.description
    assert figure.svgs[0].count("<rect") == 3
