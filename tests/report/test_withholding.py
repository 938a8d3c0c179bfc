"""What a result withholds is shown nowhere: no figure, no column, no order; the reason is in its place."""

from __future__ import annotations

import pyarrow as pa
import pytest

from recollect.report.audit_answer import build_answer
from recollect.report.html import render_html
from recollect.report.markdown import render_markdown
from recollect.report.notebook import render_notebook_html
from recollect.report.report import build_report
from recollect.report.withholding import withhold_columns
from recollect.results import Result
from recollect.results.presentation import TableView
from recollect.results.result import Withheld

WHY = "Members and non-members differ in dates."
ROC = {"fpr": [0.0, 0.0, 0.5, 1.0], "tpr": [0.0, 0.75, 1.0, 1.0]}
CANDIDATES = {
    "record": ["r1", "r2", "r3", "r4"],
    "user": ["ann", "bob", "cy", "dee"],
    "score": [1.25, 9.75, 3.5, 2.5],
    "p_value": [0.5, 0.015625, 0.125, 0.25],
    "identified": [False, True, False, False],
    "trained": [False, True, True, False],
}
TABLES = {
    "candidates": pa.table(CANDIDATES),
    "controls": pa.table({"score": [0.5, 0.75, 1.5]}),
    "roc": pa.table(ROC),
    "thresholds": pa.table({"fpr": [0.1], "threshold": [4.125]}),
}


def membership(*withheld, tables=TABLES):
    """A membership result of which these findings are withheld."""
    made = Result(
        audit="membership",
        question="Was it in?",
        verdict="Cannot be determined.",
        outcome="inconclusive",
        outcome_code="not_comparable",
        withheld=tuple(Withheld(finding=name, code="not_comparable", reason=WHY) for name in withheld),
    )
    return made.with_tables(**tables)


def headings(answer, name="candidates"):
    """The columns of a table that are shown."""
    return next(table.headings for table in answer.tables if table.name == name)


def test_nothing_is_taken_away_where_nothing_is_withheld():
    answer = build_answer(membership(), TABLES)
    assert headings(answer) == tuple(name.replace("_", " ") for name in CANDIDATES)
    assert [bool(figure.svgs) for figure in answer.figures] == [True, True]
    assert not any(figure.withheld for figure in answer.figures)


def test_a_withheld_auc_takes_roc_curve_histogram_scores_and_truth_away():
    answer = build_answer(membership("auc", "membership_p"), TABLES)
    assert [(figure.svgs, figure.description, figure.withheld) for figure in answer.figures] == [([], "", WHY)] * 2
    assert headings(answer) == ("record", "user", "p value", "identified")
    table = answer.tables[0]
    assert [row[0].words for row in table.rows] == CANDIDATES["record"], "the order reveals the scores as well"
    assert (table.caption, table.withheld) == ("Candidates", f"Withheld: score, trained. {WHY}")


def test_decisions_by_controls_that_are_withheld_leave_members_and_non_members():
    answer = build_answer(membership("identified", "training_p", "any_member_p", "auc_against_controls"), TABLES)
    assert not any(figure.withheld for figure in answer.figures)
    assert "threshold" not in " ".join(figure.description for figure in answer.figures)
    assert headings(answer) == ("record", "user", "trained")
    assert headings(answer, "thresholds") == ("fpr",)


def test_candidates_are_not_drawn_among_controls_where_that_is_withheld():
    unknown = {**TABLES, "candidates": TABLES["candidates"].drop_columns(["trained"])}
    answer = build_answer(membership("training_p", "identified", tables=unknown), unknown)
    assert [figure.withheld for figure in answer.figures] == [WHY, WHY]


@pytest.mark.parametrize("kind", ["html", "markdown", "notebook"])
def test_every_view_shows_the_reason_in_place_of_the_numbers(folder, exposed, kind):
    result = membership("auc", "membership_p", "training_p", "identified").with_provenance(exposed().provenance)
    folder.write_result(result)
    if kind == "notebook":
        page = render_notebook_html(result, TABLES)
    elif kind == "markdown":
        page = render_markdown(build_report(folder))
    else:
        page = render_html(build_report(folder))
    assert WHY in page
    assert "ROC curve" in page
    for number in ("9.75", "0.0156", "4.12", "75 % of members", "median of members"):
        assert number not in page


def test_a_column_reveals_what_its_view_declares_or_what_it_is_named_after():
    table = pa.table({"who": ["ann"], "share": [0.5], "luck": [0.25]})
    view = TableView(caption="People", columns={"who": "Person", "share": "Share"}, reveals={"share": ("auc",)})
    assert withhold_columns(membership("auc"), table, view).table.column_names == ["who", "luck"]
    assert withhold_columns(membership("auc"), table, view).note == f"Withheld: Share. {WHY}"
    assert withhold_columns(membership("luck"), table, view).table.column_names == ["who", "share"]
    assert withhold_columns(membership("auc"), table, None).note == ""
