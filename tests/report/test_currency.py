"""A report is up to date only if building it again would give the same files."""

from __future__ import annotations

import pytest

from recollect.report import currency
from recollect.report.currency import is_report_current
from recollect.report.report_writer import write_report
from recollect.results import Provenance, Result, RunFolder


def write_run(folder, audit="removal", verdict="It is gone."):
    made_of = Provenance(recollect="0.2.0", seed=0, queries=1, seconds=1.0)
    result = Result(audit=audit, question="Is it gone?", verdict=verdict, outcome="not_found")
    RunFolder(folder).write_result(result.with_provenance(made_of))


@pytest.fixture
def folder(tmp_path):
    write_run(tmp_path)
    write_report(tmp_path)
    return tmp_path


def test_a_report_is_up_to_date_once_it_was_written_and_building_it_again_changes_nothing(folder):
    before = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    assert is_report_current(folder)
    write_report(folder)
    assert {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()} == before


@pytest.mark.parametrize("name", ["report.html", "report.md", "results/removal.json", "manifest.json"])
@pytest.mark.parametrize("how", ["deleted", "changed"])
def test_whatever_is_deleted_or_changed_is_noticed(folder, name, how):
    path = folder / name
    if how == "deleted":
        path.unlink()
    else:
        path.write_bytes(path.read_bytes().replace(b"0", b"1").replace(b"gone", b"here"))
    assert not is_report_current(folder)


@pytest.mark.parametrize("options", [{"show_text": True}, {"show_text": ["removal"]}, {"named": ["ann"]}], ids=str)
def test_a_report_that_shows_more_than_usual_is_built_again(folder, options):
    write_report(folder, **options)
    assert not is_report_current(folder)
    write_report(folder)
    assert is_report_current(folder)


def test_real_names_another_key_another_version_and_another_result_are_noticed(folder, monkeypatch):
    write_report(folder, real_names=True)
    assert not is_report_current(folder)
    write_report(folder)
    (folder / ".pseudonyms.key").write_text("00" * 32 + "\n")
    assert not is_report_current(folder)
    write_report(folder)
    with monkeypatch.context() as other:
        other.setattr(currency, "__version__", "0.2.1")
        assert not is_report_current(folder)
    write_run(folder, verdict="It is not gone.")
    assert not is_report_current(folder)


def test_a_file_that_was_put_there_and_the_result_of_a_plugin_are_noticed(folder):
    other = folder / "results" / "fluency.json"
    other.write_text("{}")
    assert not is_report_current(folder)
    other.unlink()
    assert is_report_current(folder)
    write_run(folder, audit="fluency")
    write_report(folder)
    assert not is_report_current(folder)


def test_a_folder_without_a_run_has_no_report_that_is_up_to_date(tmp_path):
    assert not is_report_current(tmp_path)
    assert not is_report_current(tmp_path / "missing")
