"""Who is who stays in files: views show pseudonyms, the same in all views of a run folder and unlike elsewhere."""

from __future__ import annotations

import json
import shutil
import stat

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import typer
from click.testing import CliRunner

from recollect.cli.app import app
from recollect.pipeline.run import FinishedRun
from recollect.report import write_report
from recollect.results import Finding, Note, Provenance, Result, RunFolder
from recollect.results.pseudonyms import KEY_FILE, load_pseudonyms
from recollect.results.result import Mention
from recollect.session import AuditResult

ANN, BOB = "ann.private@example.org", "bob.private@example.org"
COMMAND = typer.main.get_command(app)


def found():
    """A result in which two people are mentioned, in a sentence and in a table."""
    finding = Finding(
        name="identified", value=2, why_no_interval="Counted.", unit="users", n={"users": 2}, method="m", reading="r"
    )
    result = Result(
        audit="membership",
        question="Who?",
        verdict=("Found: ", Mention(kind="user", id=ANN), "."),
        outcome="found",
        findings=(finding,),
        notes=(Note(code="both", text=("Also ", Mention(kind="user", id=BOB), ".")),),
    )
    table = pa.table({"record": [f"{ANN}/1", f"{BOB}/1"], "user": [ANN, BOB], "score": [2.0, 1.0]})
    result = result.with_tables(candidates=table)
    return result.with_provenance(Provenance(recollect="0.2.0", seed=0, queries=1, seconds=0.1))


@pytest.fixture
def folder(tmp_path):
    """A run folder with that result."""
    RunFolder(tmp_path / "run").write_result(found())
    return tmp_path / "run"


def name(folder, user, **options):
    """What a user is called."""
    return load_pseudonyms(folder, **options)(Mention(kind="user", id=user))


def test_pages_and_notes_show_pseudonyms_that_are_stable_within_a_run_folder(folder, tmp_path):
    write_report(folder)
    pages = [(folder / "report.html").read_text(), (folder / "report.md").read_text()]
    for page in pages:
        assert "private@" not in page
        for user in (ANN, BOB):
            assert name(folder, user) in page.replace("\\", "")
    write_report(folder)
    assert (folder / "report.html").read_text() == pages[0]
    RunFolder(tmp_path / "other").write_result(found())
    write_report(tmp_path / "other")
    assert name(folder, ANN) not in (tmp_path / "other" / "report.html").read_text()


def test_two_run_folders_with_the_same_key_call_people_alike(folder, tmp_path):
    write_report(folder)
    RunFolder(tmp_path / "other").write_result(found())
    write_report(tmp_path / "other")
    shutil.copy(folder / KEY_FILE, tmp_path / "other" / KEY_FILE)
    write_report(tmp_path / "other")
    assert name(folder, ANN) in (tmp_path / "other" / "report.html").read_text()


def test_the_key_is_for_its_owner_only(folder):
    write_report(folder)
    assert stat.S_IMODE((folder / KEY_FILE).stat().st_mode) == 0o600


def test_those_who_are_named_stay_named_and_all_do_where_that_is_wanted(folder):
    page = write_report(folder, named=[ANN]).read_text()
    assert ANN in page
    assert BOB not in page
    page = write_report(folder, real_names=True).read_text()
    assert ANN in page
    assert BOB in page


def test_files_keep_real_ids(folder):
    write_report(folder)
    assert json.loads((folder / "results" / "membership.json").read_text())["verdict"][1]["id"] == ANN
    assert pq.read_table(folder / "tables" / "membership" / "candidates.parquet")["user"].to_pylist() == [ANN, BOB]


def test_a_report_elsewhere_leaves_the_run_folder_as_it_was(folder, tmp_path):
    before = sorted(folder.rglob("*"))
    assert "private@" not in write_report(folder, tmp_path / "elsewhere.html").read_text()
    assert sorted(folder.rglob("*")) == before


@pytest.mark.parametrize(("options", "shown"), [([], []), (["--name", ANN], [ANN]), (["--real-names"], [ANN, BOB])])
def test_the_report_verb_takes_names(options, shown, folder):
    done = CliRunner().invoke(COMMAND, ["report", str(folder), *options], prog_name="recollect")
    assert done.exit_code == 0, done.output
    page = (folder / "report.html").read_text()
    assert [user for user in (ANN, BOB) if user in page] == shown


def test_notebooks_and_terminals_show_pseudonyms(folder, capsys):
    from recollect.cli.result_display import show_result

    result = AuditResult(finished_run=FinishedRun(plan=None, result=found(), cohorts={}), folder=folder)
    show_result(result, out=folder, as_json=False)
    told = "".join(capsys.readouterr())
    views = [repr(result), result._repr_html_(), told]
    assert all("private@" not in view and name(folder, ANN) in view for view in views)
    show_result(result, out=folder, as_json=True)
    assert ANN in capsys.readouterr().out
    named = AuditResult(finished_run=result.finished_run, folder=folder, real_names=True)
    assert ANN in repr(named)
    assert ANN in named._repr_html_()
