"""Run folders: owner-only, whole or not at all, the same bytes each time, and clear words about damage."""

from __future__ import annotations

import json
import os
import stat
from pathlib import Path

import pyarrow as pa
import pytest

from recollect.errors import StoreError
from recollect.results import Finding, Provenance, Result, RunFolder
from recollect.results.result_schema import SCHEMA_PATH, build_result_schema
from recollect.stats import proportion

TABLE = pa.table({"user": ["ann", "bob"], "leaks": [3, 0]})
PROVENANCE = Provenance(recollect="0.1.0", torch="2.13.0", model="ab12", corpus="cd34", seed=7, queries=90, seconds=1.5)


def finished(audit="leakage", **changes):
    found = Finding.of(proportion([1, 0, 1]), name="recall", unit="share", reading="Members found.")
    made = Result(audit=audit, question="Whose?", verdict="Ann's.", outcome="found", findings=(found,))
    return made.model_copy(update=changes).with_tables(users=TABLE).with_provenance(PROVENANCE)


def test_what_is_written_is_read_back(tmp_path):
    folder = RunFolder(tmp_path / "run")
    folder.write_result(finished())
    back = folder.read_result("leakage")
    assert back.model_dump() == finished().model_dump()
    assert not back.tables_in_memory
    assert folder.read_table(back, "users") == TABLE
    assert folder.read_table(finished(), "users") is TABLE
    assert json.loads(folder.get_result_path("leakage").read_text())["schema_version"] == "2"


def test_equal_results_give_equal_bytes(tmp_path):
    bytes_of = []
    for name in ("one", "two"):
        folder = RunFolder(tmp_path / name)
        folder.write_result(finished())
        bytes_of.append({p.relative_to(folder.path): p.read_bytes() for p in folder.path.rglob("*") if p.is_file()})
    assert bytes_of[0] == bytes_of[1]
    assert set(map(str, bytes_of[0])) == {"results/leakage.json", "tables/leakage/users.parquet"}


@pytest.mark.skipif(os.name != "posix", reason="permissions are POSIX ones")
def test_everything_is_readable_by_its_owner_only(tmp_path):
    previous = os.umask(0)
    try:
        RunFolder(tmp_path / "run").write_result(finished())
    finally:
        os.umask(previous)
    modes = {stat.S_IMODE(path.stat().st_mode) for path in (tmp_path / "run").rglob("*") if path.is_file()}
    folders = {stat.S_IMODE(p.stat().st_mode) for p in [tmp_path / "run", *(tmp_path / "run").rglob("*")] if p.is_dir()}
    assert modes == {0o600}
    assert folders == {0o700}


def test_all_results_come_by_audit(tmp_path):
    folder = RunFolder(tmp_path)
    for audit in ("removal", "exposure"):
        folder.write_result(finished(audit))
    assert list(folder.read_results()) == ["exposure", "removal"]


def test_tables_of_an_earlier_result_go_away_and_those_of_other_audits_stay(tmp_path):
    folder = RunFolder(tmp_path)
    folder.write_result(finished("exposure"))
    folder.write_result(finished().with_tables(old=TABLE))
    folder.write_result(finished())
    assert sorted(str(p.relative_to(tmp_path)) for p in tmp_path.rglob("*.parquet")) == [
        "tables/exposure/users.parquet",
        "tables/leakage/users.parquet",
    ]


def test_a_result_may_be_written_again_without_its_tables_in_memory(tmp_path):
    folder = RunFolder(tmp_path)
    folder.write_result(finished())
    folder.write_result(folder.read_result("leakage"))
    assert folder.read_table(folder.read_result("leakage"), "users") == TABLE


@pytest.mark.parametrize("moment", ["write_table", "write_json"])
def test_a_run_killed_while_writing_leaves_no_result_that_speaks_of_other_tables(tmp_path, monkeypatch, moment):
    folder = RunFolder(tmp_path)
    folder.write_result(finished())

    def killed(*_args, **_options):
        raise KeyboardInterrupt

    target = "recollect.results.run_folder." + ("pq.write_table" if moment == "write_table" else "write_json")
    with monkeypatch.context() as patch:
        patch.setattr(target, killed)
        with pytest.raises(KeyboardInterrupt):
            folder.write_result(finished())
    with pytest.raises(StoreError, match="no result"):
        folder.read_result("leakage")
    assert not list(tmp_path.rglob("*.part"))
    folder.write_result(finished())
    assert folder.read_result("leakage").verdict == "Ann's."


def test_an_unfinished_result_is_not_written(tmp_path):
    folder = RunFolder(tmp_path)
    bare = Result(audit="leakage", question="Whose?", verdict="Ann's.", outcome="found")
    with pytest.raises(StoreError, match="does not say what it came from"):
        folder.write_result(bare)
    lost = bare.model_copy(update={"tables": {"users": "tables/leakage/users.parquet"}}).with_provenance(PROVENANCE)
    with pytest.raises(StoreError, match="table 'users' of the leakage result is missing"):
        folder.write_result(lost)
    assert not list(tmp_path.rglob("*.json"))


def _damaged(text):
    return lambda path: path.write_text(text)


def _changed(**changes):
    return lambda path: path.write_text(json.dumps({**json.loads(path.read_text()), **changes}))


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda path: path.unlink(), "no result at"),
        (_damaged(""), "cannot be read as JSON"),
        (_damaged('{"schema_version": "1", '), "cannot be read as JSON"),
        (lambda path: path.write_bytes(b"\xff\xfe\x00"), "cannot be read as JSON"),
        (_damaged("[]"), "is not a result: the document"),
        (_damaged("null"), "is not a result: the document"),
        (_changed(schema_version="3"), "schema version 3; this Recollect reads version 2"),
        (_changed(schema_version="1"), "was written by Recollect 0.1"),
        (_changed(schema_version=None), "is not a result: schema_version"),
        (_changed(verdict=""), "is not a result: verdict"),
        (_changed(findings=[{"name": "auc"}]), "is not a result: findings.0.value"),
        (_changed(tables={"users": "../../elsewhere.parquet"}), "is not a result: tables.users"),
        (_changed(surprise=1), "is not a result: surprise"),
        (_changed(audit="removal"), "holds a result of the removal audit"),
    ],
)
def test_damage_is_reported_in_one_sentence(tmp_path, damage, message):
    folder = RunFolder(tmp_path)
    folder.write_result(finished())
    damage(folder.get_result_path("leakage"))
    with pytest.raises(StoreError, match=message):
        folder.read_result("leakage")


def test_a_damaged_or_missing_table_is_reported(tmp_path):
    folder = RunFolder(tmp_path)
    folder.write_result(finished())
    back = folder.read_result("leakage")
    path = tmp_path / back.tables["users"]
    path.write_bytes(path.read_bytes()[:20])
    with pytest.raises(StoreError, match="cannot be read"):
        folder.read_table(back, "users")
    path.unlink()
    with pytest.raises(StoreError, match="cannot be read"):
        folder.read_table(back, "users")
    with pytest.raises(StoreError, match="no table 'people'"):
        folder.read_table(back, "people")


def test_a_folder_without_results_is_reported(tmp_path):
    with pytest.raises(StoreError, match="holds no results"):
        RunFolder(tmp_path / "nothing").read_results()


def test_the_folder_repeats_the_reading_line(tmp_path):
    folder = RunFolder(tmp_path)
    assert [p.name for p in (folder.plan, folder.cohorts, folder.results, folder.report)] == [
        "plan.yaml",
        "cohorts.json",
        "results",
        "report.html",
    ]


def test_the_published_schema_is_the_generated_one():
    published = json.loads(Path(SCHEMA_PATH).read_text(encoding="utf-8"))
    assert published == build_result_schema(), (
        "run recollect.results.result_schema.publish_result_schema() after a change of the models"
    )


def test_the_schema_describes_what_is_written(tmp_path):
    """A small checker of required and known keys, so that no package is needed for it."""
    described, folder = build_result_schema(), RunFolder(tmp_path)
    document = json.loads(folder.write_result(finished()).read_text())
    parts = described["$defs"]
    pairs = [(described, document), (parts["Finding"], document["findings"][0])]
    pairs.append((parts["Provenance"], document["provenance"]))
    for part, value in pairs:
        assert set(part["required"]) <= set(value) <= set(part["properties"])
        assert part["additionalProperties"] is False
    assert described["properties"]["schema_version"]["const"] == "2"
    assert "description" in parts["Finding"]["properties"]["reading"]
