"""`recollect report`, and the report that every run with --out leaves."""

from __future__ import annotations

import subprocess
import sys

import pytest
from typer.testing import CliRunner

from recollect.audits.leakage.audit import LeakageAudit
from recollect.cli.app import app
from recollect.pipeline.plans.plan import Plan
from recollect.pipeline.run import FinishedRun
from recollect.results import Provenance, Result, RunFolder
from recollect.session import AuditResult


def finished(**settings):
    made = Result(audit="fluency", question="Does it?", verdict="It does.", outcome="found", settings=settings)
    return made.with_provenance(Provenance(recollect="0.1.0", seed=0, queries=1, seconds=0.1))


@pytest.fixture
def folder(tmp_path):
    RunFolder(tmp_path / "run").write_result(finished())
    return tmp_path / "run"


def test_the_report_is_built_from_the_folder_and_its_place_is_reported(folder):
    done = CliRunner().invoke(app, ["report", str(folder)])
    assert done.exit_code == 0, done.stderr
    assert f"The report is in {folder}/report.html" in done.stderr
    assert "It does." in (folder / "report.html").read_text()
    assert "It does." in (folder / "report.md").read_text()


def test_it_can_go_elsewhere(folder, tmp_path):
    done = CliRunner().invoke(app, ["report", str(folder), "--out", str(tmp_path / "other.md")])
    assert done.exit_code == 0, done.stderr
    assert (tmp_path / "other.md").exists()


@pytest.mark.parametrize(
    "words", [["nowhere"], [".", "--out", "x.pdf"]], ids=["no results", "neither HTML nor Markdown"]
)
def test_what_cannot_be_done_ends_with_status_2_and_one_message(folder, monkeypatch, words, check_refusal):
    monkeypatch.chdir(folder)
    check_refusal(CliRunner().invoke(app, ["report", *words]))


def test_a_report_needs_no_torch(folder):
    script = (
        "import sys\n"
        "from recollect.report import write_report\n"
        "from pathlib import Path\n"
        f"write_report(Path({str(folder)!r}))\n"
        "assert not {'torch', 'transformers', 'datasets'} & sys.modules.keys()\n"
    )
    subprocess.run([sys.executable, "-c", script], check=True)  # noqa: S603


def test_a_run_that_showed_text_has_a_report_that_shows_it(tmp_path):
    import pyarrow as pa

    for show, expected in ((True, True), (False, True), (None, False)):
        settings = {} if show is None else {"show_text": show}
        result = finished(**settings).with_tables(rows=pa.table({"text": ["my pin is 4711"]}))
        AuditResult(finished_run=FinishedRun(plan=Plan(audit=LeakageAudit()), result=result, cohorts={})).save(
            tmp_path / "run"
        )
        # a run told not to show text has masked its table itself: what is there may be shown
        assert ("4711" in (tmp_path / "run/report.html").read_text()) is expected
