"""Snapshots of wording notice every sentence that changes, and are written anew on request alone."""

import pytest

from recollect.errors import PlanError
from recollect.results.result import Finding, Mention, Note, Result, Skipped, Withheld
from recollect.testing.wording import UPDATE, check_wording, render_wording


@pytest.fixture(autouse=True)
def comparing(monkeypatch):
    monkeypatch.delenv(UPDATE, raising=False)


def result(**fields):
    finding = Finding(
        name="leaks", value=3, why_no_interval="A count.", unit="records", n={"records": 9}, method="counting",
        reading="Records that leak.", next_step="Remove them.",
    )  # fmt: skip
    settled = {"verdict": "Some leak.", "outcome": "found", "findings": (finding,), **fields}
    return Result(audit="leaking", question="Does it leak?", **settled)


SENTENCES = {
    "verdict": {"verdict": ("Nothing of ", Mention(kind="user", id="ann"), ".")},
    "outcome": {"outcome": "not_found"},
    "outcome_code": {"outcome": "inconclusive", "outcome_code": "no_power"},
    "note": {"notes": (Note(code="few", text="They are few."),)},
    "skipped": {"skipped": (Skipped(audit="leaking", code="none_there", reason="None is there."),)},
    "withheld": {"withheld": (Withheld(finding="auc", code="not_comparable", reason="They differ."),)},
    "untested": {"untested": ("Whether it rains.",)},
    "next_step": {"next_step": "Train anew."},
    "findings": {"findings": ()},
}


@pytest.mark.parametrize("field", SENTENCES)
def test_a_change_of_any_sentence_or_code_is_noticed(tmp_path, field):
    kept = tmp_path / "wording.txt"
    kept.write_text(render_wording({"plain": result()}), encoding="utf-8")
    check_wording({"plain": result()}, kept)
    with pytest.raises(AssertionError, match="wording has changed"):
        check_wording({"plain": result(**SENTENCES[field])}, kept)


def test_a_sentence_that_is_gone_from_a_later_case_is_noticed(tmp_path):
    kept = tmp_path / "wording.txt"
    kept.write_text(render_wording({"first": result(), "second": result()}), encoding="utf-8")
    with pytest.raises(AssertionError, match="wording has changed"):
        check_wording({"first": result(), "second": result(findings=())}, kept)


def test_a_missing_snapshot_is_no_agreement(tmp_path):
    with pytest.raises(AssertionError, match=r"\+== plain"):
        check_wording({"plain": result()}, tmp_path / "wording.txt")


def test_snapshots_are_written_anew_on_request_and_refusals_are_kept_beside_results(tmp_path, monkeypatch):
    kept, cases = tmp_path / "wording.txt", {"plain": result(), "refused": PlanError("No.", do="Yes.", code="no")}
    monkeypatch.setenv(UPDATE, "1")
    check_wording(cases, kept)
    monkeypatch.delenv(UPDATE)
    check_wording(cases, kept)
    assert "error [no]: No. Yes." in kept.read_text(encoding="utf-8").splitlines()
