"""`recollect clean` and `recollect forget`: what goes, what stays, and that nothing goes unless it is wished."""

from __future__ import annotations

import json
import shutil

import numpy as np
import pytest
from typer.testing import CliRunner

import recollect
from recollect.cli.app import app
from recollect.corpora.corpus_writer import write_corpus
from recollect.files import hold_lock, write_checked_json, write_json
from recollect.models.shards import pack_digests
from recollect.models.store import AnswerStore
from recollect.signals.evidence import AUDITED, CONTROLS
from recollect.testing.refusals import refused
from recollect.testing.world import World

WORLD = World(members=8, others=8, controls=12)
USER = WORLD.member_records[0].user
LEFTOVER = ".f.json.0a0a0a0a.part"


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """Two run folders that share a work folder, and trained models of which one has the user among its members."""
    home = tmp_path_factory.mktemp("made")
    for name, model in (("one", WORLD.build_memoriser()), ("two", WORLD.build_uniform())):
        recollect.membership(
            model,
            WORLD.corpora[AUDITED],
            controls=WORLD.corpora[CONTROLS],
            by="user",
            out=home / name,
            work=home / "work",
        )
    for name, unit, members in (("with", "user", [USER, "b"]), ("without", "user", ["b"]), ("rows", "record", ["r"])):
        write_json(home / "work" / "models" / name / "card.json", {"cohort": {"unit": unit}})
        write_json(home / "work" / "models" / name / "members.json", members)
    write_checked_json(home / "work" / "audits" / "exposure-1" / "r.json", {"low": 1})
    write_corpus(WORLD.corpora[AUDITED], home / "mine.jsonl")
    return home


@pytest.fixture
def home(made, tmp_path, monkeypatch):
    """A copy, with the notes of the runs about the copied run folders."""
    copy = shutil.copytree(made, tmp_path / "copy")
    for path in (copy / "work" / "runs").glob("*.json"):
        written = json.loads(path.read_text())
        del written["checksum"]
        write_checked_json(path, {**written, "run": written["run"].replace(str(made), str(copy))})
    monkeypatch.chdir(copy)
    return copy


def list_paths(found):
    return {item.path.relative_to(found.work).as_posix() for item in found.items}


def list_stores(home):
    return {path.name: AnswerStore.open(path) for path in (home / "work" / "answers").iterdir()}


def test_clean_lists_what_no_run_folder_rests_on(home):
    before = sorted(home.rglob("*"))
    unused = {"models/with", "models/without", "models/rows", "audits/exposure-1"}
    found = recollect.clean(home / "work")
    assert list_paths(found) == unused
    assert found.kept == 2
    assert found.size == sum(path.stat().st_size for name in unused for path in (home / "work" / name).iterdir())
    assert sorted(home.rglob("*")) == before


def test_clean_deletes_what_a_deleted_run_needed_and_nothing_that_another_needs(home):
    shutil.rmtree(home / "two")
    (home / "work" / "fleets").mkdir()
    (home / "work" / "fleets" / LEFTOVER).touch()
    done = CliRunner().invoke(app, ["clean", "--work", "work", "--delete", "--json"])
    assert done.exit_code == 0, done.output
    gone = {item["path"] for item in json.loads(done.stdout)["items"]}
    assert f"work/fleets/{LEFTOVER}" in gone
    assert [store.manifest.name for store in list_stores(home).values()] == [WORLD.build_memoriser().name]
    assert len(list((home / "work" / "runs").iterdir())) == 1
    assert recollect.clean(home / "work").items == ()
    assert recollect.verify(home / "work").is_whole
    again = recollect.membership(
        WORLD.build_memoriser(), WORLD.corpora[AUDITED], controls=WORLD.corpora[CONTROLS], by="user", work=home / "work"
    )
    assert again.verdict == json.loads((home / "one" / "results" / "membership.json").read_text())["verdict"]


def test_clean_leaves_alone_what_a_run_works_in(home):
    with hold_lock(home / "work" / "models" / "without"):
        found = recollect.clean(home / "work", delete=True)
    assert {item.path.name for item in found.items if item.in_use} == {"without"}
    assert [path.name for path in (home / "work" / "models").iterdir()] == ["without"]


def test_forget_lists_without_deleting(home):
    before = sorted(home.rglob("*"))
    found = recollect.forget(USER, work="work", corpus="mine.jsonl")
    assert {"models/with", "audits/exposure-1"} < list_paths(found)
    assert not {"models/without", "models/rows"} & list_paths(found)
    assert sorted(home.rglob("*")) == before


def test_forget_takes_a_users_answers_and_models_and_nothing_of_others(home):
    mine = [record for record in WORLD.corpora[AUDITED] if record.user == USER]
    others = [record for record in WORLD.corpora[AUDITED] if record.user != USER]
    before = {name: store.get_answers(others).logprob for name, store in list_stores(home).items()}
    assert all(store.contains(pack_digests([mine[0].digest])).all() for store in list_stores(home).values())
    words = ["forget", USER, "--work", "work", "--corpus", "mine.jsonl", "--delete", "--json"]
    done = CliRunner().invoke(app, words)
    assert done.exit_code == 0, done.output
    assert json.loads(done.stdout)["deleted"] is True
    for name, store in list_stores(home).items():
        assert not store.contains(pack_digests([record.digest for record in mine])).any()
        np.testing.assert_array_equal(store.get_answers(others).logprob, before[name])
    assert sorted(path.name for path in (home / "work" / "models").iterdir()) == ["rows", "without"]
    assert recollect.verify(home / "work").faults == ()


def test_forget_without_a_corpus_takes_all_that_may_hold_the_users_data(home):
    recollect.forget(USER, work="work", delete=True)
    assert list((home / "work" / "answers").iterdir()) == []
    assert [path.name for path in (home / "work" / "models").iterdir()] == ["without"]


def test_forget_names_the_tables_that_still_name_the_user(home):
    found = recollect.forget(USER, work="work", corpus="mine.jsonl")
    assert any(path.is_relative_to(home / "one") for path in found.still_named)
    assert recollect.forget("nobody-of-this-name", work="work").still_named == ()


def test_nothing_is_deleted_of_another_folder_or_for_an_unknown_user(home):
    with refused("no_work_folder"):
        recollect.clean(home / "one", delete=True)
    with refused("no_work_folder"):
        recollect.forget(USER, work=home / "one", delete=True)
    with refused("unknown_user"):
        recollect.forget("nobody", work="work", corpus="mine.jsonl", delete=True)
    with hold_lock(home / "work" / "models" / "with"), refused("work_in_use"):
        recollect.forget(USER, work="work", delete=True)
