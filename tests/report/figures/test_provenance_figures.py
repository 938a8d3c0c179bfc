"""What is drawn of people among calibration users."""

import re

import numpy as np
import pyarrow as pa

from recollect.report.figures.provenance import draw_provenance_figures, find_threshold
from recollect.report.html import read_template
from recollect.report.withholding import withhold_figure
from recollect.results.result import Result
from recollect.stats.significance import conformal_p

RESULT = Result(
    audit="provenance", question="?", verdict="!", outcome="found", settings={"alpha": 0.05, "method": "calibrated"}
)


def people(truth=True, queries=(8, 8, 8, 3)):
    return pa.table(
        {
            "user": ["<b>ann</b>", "bob", "cid", "dee"],
            "decision": ["member", "no sign", "unlike the controls", "no sign"],
            "score": [5.0, 0.2, 4.0, 0.1],
            "p_value": [0.02, 0.4, 0.02, 0.5],
            "queries": list(queries),
            "member": pa.array([True, False, None, False] if truth else [None] * 4, pa.bool_()),
        }
    )


def calibration(n=50):
    return pa.table({"score": [*np.random.default_rng(0).normal(size=n), np.nan]})


CURVE = pa.table({"fpr": [0.0, 0.5, 1.0], "tpr": [0.0, 1.0, 1.0]})


def figures(**tables):
    return draw_provenance_figures(RESULT, tables)


def test_people_stand_among_calibration_users_by_what_was_decided():
    among, curve = figures(users=people(), calibration=calibration(), roc=CURVE)
    assert among.title == "People among calibration users"
    assert "50 calibration users" in among.description
    assert "1 member, 1 no sign, 1 unlike the controls" in among.description
    assert "1 people with fewer texts are not drawn" in among.description
    assert "ROC" in curve.title


def test_people_of_whom_nothing_was_decided_are_not_drawn():
    undecided = pa.array(["too little text"] * 4)
    users = people().set_column(1, "decision", undecided)
    assert figures(users=users, calibration=calibration()) == []
    some = people(queries=(3, 3, 3, 8)).set_column(1, "decision", pa.array(["member", *undecided.to_pylist()[1:]]))
    (among,) = figures(users=some, calibration=calibration())
    assert "People: 1 member." in among.description


def test_the_curve_is_not_drawn_where_people_were_not_comparable():
    among, curve = figures(users=people(), calibration=calibration(), roc=CURVE)
    reason = "The controls are not comparable."
    for names, withheld in ((["users_found"], False), (["users_found", "lowest_p_corrected"], True)):
        result = RESULT.replace(withheld=[{"finding": name, "code": "unlike", "reason": reason} for name in names])
        assert withhold_figure(result, among).withheld == reason
        assert (withhold_figure(result, curve).withheld == reason) is withheld


def test_the_legend_shows_the_marks_that_are_drawn():
    (among,) = figures(users=people(), calibration=calibration())
    style = read_template("parts.css")
    dots = set(re.findall(r'class="dot (\w+)"', among.svgs[1]))
    assert dots == {kind for kind, words in among.legend if words.startswith("people")}
    for kind in dots:
        (dot,), (key,) = (re.findall(rf"{mark}\.{kind} {{([^}}]*)}}", style) for mark in (r"svg \.dot", r"\.key"))
        assert "height: 0" not in key, "the key of a dot is no line"
        assert ("dasharray" in dot) == ("dotted" in key)


def test_no_name_is_drawn():
    assert not any("ann" in svg for figure in figures(users=people(), calibration=calibration()) for svg in figure.svgs)


def test_without_the_truth_there_is_no_curve_and_without_calibration_users_no_hill():
    (among,) = figures(users=people(truth=False), calibration=calibration())
    assert "ROC" not in among.title
    assert figures(users=people(truth=False), calibration=calibration(0)) == figures(users=people()) == []


def test_the_line_stands_at_the_threshold_for_one_person():
    controls = np.random.default_rng(1).normal(size=59)
    end = find_threshold(controls, 0.05)
    assert conformal_p([end + 1e-9], controls)[0] <= 0.05 < conformal_p([end - 1e-9], controls)[0]


def frequency(ranks=(3.0, 40.0, None), null=(3.0, 90.0, 800.0)):
    return pa.table(
        {
            "written": [1000, 10, 1],
            "words": [50] * 3,
            "rank": pa.array(ranks, pa.float64()),
            "calibration_words": [60] * 3,
            "calibration_rank": pa.array(null, pa.float64()),
        }
    )


def test_ranks_of_rare_words_are_drawn_beside_those_of_calibration_users():
    *_, ranks = figures(users=people(), calibration=calibration(), frequency=frequency())
    assert ranks.title == "Frequent and rare words"
    assert "words of people found and of calibration users" in ranks.description
    assert "written 10 or more: 40 and 90; written 1 or more: not shown and 800" in ranks.description
    (svg,) = ranks.svgs
    assert svg.count("<circle") == 5


def test_ranks_of_a_single_band_are_no_figure():
    found = figures(users=people(), calibration=calibration(), frequency=frequency(ranks=(3.0, None, None)))
    assert "Frequent and rare words" not in [figure.title for figure in found]
