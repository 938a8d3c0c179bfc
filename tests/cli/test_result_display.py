"""What a terminal says is left to read: the same counts as the result has."""

from __future__ import annotations

from recollect.cli.result_display import _count_rest
from recollect.results import Note, Result


def test_notes_are_counted_as_the_result_has_them_and_records_left_out_apart():
    result = Result(
        audit="membership",
        question="?",
        verdict="!",
        outcome="not_found",
        notes=(Note(code="one", text="One."), Note(code="two", text="Two.")),
        dropped={"audited.near_duplicate": 12, "controls.near_duplicate": 3},
        untested=("This.", "That."),
    )
    assert _count_rest(result, 0) == "2 notes, 2 kinds of records left out, 2 untested matters"
