"""`recollect clean` and `recollect forget`: what goes, what stays, and that nothing goes unless it is wished."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from functools import partial

import numpy as np
import pytest
from typer.testing import CliRunner

import recollect
from recollect.cli.app import app
from recollect.corpora.corpus_writer import write_corpus
from recollect.files import Journal, hold_lock, refuse_use, use_folder, write_checked_json, write_json
from recollect.models.answer_store.shards import pack_shard_digests
from recollect.models.answer_store.store import AnswerStore
from recollect.pipeline.work_folder import erasure
from recollect.pipeline.work_folder.work_entries import compute_entry_size
from recollect.signals.evidence import AUDITED, CONTROLS
from recollect.testing.refusals import refused
from recollect.testing.world import World

WORLD = World(members=8, others=8, controls=12)
USER = WORLD.member_records[0].user
LEFTOVER = ".f.json.0a0a0a0a.part"
WITH, WITHOUT, ROWS = (digit * 32 for digit in "abc")
"""Models with the user among their members, without, and of records."""
CALLS = {"clean": recollect.clean, "forget": partial(recollect.forget, USER)}
SEARCH = "exposure-" + 32 * "d"


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
    for name, unit, members in ((WITH, "user", [USER, "b"]), (WITHOUT, "user", ["b"]), (ROWS, "record", ["r"])):
        write_json(home / "work" / "models" / name / "card.json", {"cohort": {"unit": unit}})
        write_json(home / "work" / "models" / name / "members.json", members)
    write_checked_json(home / "work" / "audits" / SEARCH / "r.json", {"low": 1})
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
    unused = {f"models/{WITH}", f"models/{WITHOUT}", f"models/{ROWS}", f"audits/{SEARCH}"}
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


def test_clean_takes_notes_about_models_with_their_answers(home):
    notes = home / "work" / "digests"
    for number, store in enumerate(sorted(list_stores(home))):
        write_checked_json(notes / f"{number}.json", {"address": store, "steps": False})
    write_checked_json(notes / "9.json", {"address": "f" * 32, "steps": False})
    assert {path for path in list_paths(recollect.clean("work")) if path.startswith("digests")} == {"digests/9.json"}
    assert recollect.verify("work").is_whole
    shutil.rmtree(home / "one")
    recollect.clean("work", delete=True)
    kept = {json.loads(path.read_text())["address"] for path in notes.iterdir()}
    assert kept == set(list_stores(home))
    assert len(kept) == 1


def test_clean_takes_unfinished_answers_from_a_store_that_stays(home):
    store = next((home / "work" / "answers").iterdir())
    with Journal.open(store / "0.journal", owner="a run that was killed") as journal:
        journal.append(b"scores of somebody's records")
    with hold_lock(store, purpose="filling"):
        assert store / "0.journal" not in {item.path for item in recollect.clean(home / "work").items}
    assert store / "0.journal" in {item.path for item in recollect.clean(home / "work", delete=True).items}
    assert {path.suffix for path in store.glob("[!.]*")} == {".parquet", ".json"}


def test_clean_leaves_alone_what_a_run_works_in(home):
    with hold_lock(home / "work" / "models" / WITHOUT):
        found = recollect.clean(home / "work", delete=True)
    assert {item.path.name for item in found.items if item.in_use} == {WITHOUT}
    assert [path.name for path in (home / "work" / "models").iterdir()] == [WITHOUT]


def test_forget_lists_without_deleting(home):
    before = sorted(home.rglob("*"))
    found = recollect.forget(USER, work="work", corpus="mine.jsonl")
    assert {f"models/{WITH}", f"audits/{SEARCH}"} < list_paths(found)
    assert not {f"models/{WITHOUT}", f"models/{ROWS}"} & list_paths(found)
    assert sorted(home.rglob("*")) == before


def test_forget_takes_a_users_answers_and_models_and_nothing_of_others(home):
    mine = [record for record in WORLD.corpora[AUDITED] if record.user == USER]
    others = [record for record in WORLD.corpora[AUDITED] if record.user != USER]
    before = {name: store.get_answers(others).logprob for name, store in list_stores(home).items()}
    assert all(store.contains(pack_shard_digests([mine[0].digest])).all() for store in list_stores(home).values())
    words = ["forget", USER, "--work", "work", "--corpus", "mine.jsonl", "--delete", "--json"]
    done = CliRunner().invoke(app, words)
    assert done.exit_code == 0, done.output
    assert json.loads(done.stdout)["deleted"] is True
    for name, store in list_stores(home).items():
        assert not store.contains(pack_shard_digests([record.digest for record in mine])).any()
        np.testing.assert_array_equal(store.get_answers(others).logprob, before[name])
    assert sorted(path.name for path in (home / "work" / "models").iterdir()) == [WITHOUT, ROWS]
    assert recollect.verify(home / "work").faults == ()


def test_forget_deletes_models_last_because_they_name_the_answers_that_go(home, monkeypatch):
    order = []
    monkeypatch.setattr(erasure, "delete_entry", order.append)
    monkeypatch.setattr(erasure, "_rewrite_shard", lambda path, digests: order.append(path))
    recollect.forget(USER, work="work", corpus="mine.jsonl", delete=True)
    of_models = [path.parent.name == "models" for path in order]
    assert of_models == sorted(of_models)
    assert set(of_models) == {False, True}


def test_forget_without_a_corpus_takes_all_that_may_hold_the_users_data(home):
    recollect.forget(USER, work="work", delete=True)
    assert list((home / "work" / "answers").iterdir()) == []
    assert [path.name for path in (home / "work" / "models").iterdir()] == [WITHOUT]


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
    with hold_lock(home / "work" / "models" / WITH), refused("work_in_use"):
        recollect.forget(USER, work="work", delete=True)


@pytest.mark.parametrize("verb", ["clean", "forget"])
def test_nothing_is_deleted_while_a_run_uses_the_work_folder(home, verb):
    before = sorted(home.rglob("*"))
    with use_folder(home / "work"), use_folder(home / "work"):
        with refused("work_in_use"):
            CALLS[verb](work="work", delete=True)
        assert recollect.clean(work="work").items
    assert sorted(home.rglob("*")) == before


def test_audits_and_scoring_use_the_work_folder(home):
    asked = []

    def ask(what, done, total):
        with refused("work_in_use"):
            recollect.clean(work="work", delete=True)
        asked.append(what)

    session = recollect.Session(work="work", progress=ask)
    session.score(WORLD.build_uniform(), WORLD.corpora[AUDITED])
    scoring = len(asked)
    session.membership(WORLD.build_uniform(), WORLD.corpora[AUDITED], controls=WORLD.corpora[CONTROLS], by="user")
    assert 0 < scoring < len(asked)


def test_a_run_waits_for_a_deletion_to_end(home):
    code = "import recollect.files as f, pathlib\nwith f.use_folder(pathlib.Path('work')): print('in')"
    with refuse_use(home / "work"):
        waiting = subprocess.Popen(  # noqa: S603 - our own code
            [sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE
        )
        assert b"deleting from" in waiting.stderr.readline()
        assert waiting.poll() is None
    assert waiting.communicate(timeout=30)[0] == b"in\n"


def test_models_and_folders_of_a_project_are_none_of_ours(home):
    """A folder with a part of a work folder's name is a work folder, and what others keep in it stays."""
    for name in ("my-model", "llama-3.2", "checkpoint-500", "A" * 32):
        write_json(home / "work" / "models" / name / "config.json", {})
    recollect.clean(work="work", delete=True)
    recollect.forget(USER, work="work", delete=True)
    assert len(list((home / "work" / "models").iterdir())) == 4


@pytest.mark.parametrize("verb", ["clean", "forget"])
def test_a_part_that_leads_elsewhere_is_refused_and_an_entry_that_does_is_only_unlinked(home, verb):
    precious = home / "precious" / WITH
    write_json(precious / "f.json", {})
    (home / "work" / "models" / ("e" * 32)).symlink_to(precious)
    CALLS[verb](work="work", delete=True)
    assert not (home / "work" / "models" / ("e" * 32)).is_symlink()
    shutil.rmtree(home / "work" / "models")
    (home / "work" / "models").symlink_to(home / "precious")
    with refused("work_part_is_a_link"):
        CALLS[verb](work="work", delete=True)
    assert (precious / "f.json").exists()


def test_forget_takes_unfinished_answers_and_reads_only_the_files_of_runs(home):
    store = next((home / "work" / "answers").iterdir())
    with Journal.open(store / "batches.journal", owner="a") as journal:
        journal.append(b"x")
    assert recollect.verify(home / "work").is_whole
    os.mkfifo(home / "one" / "results" / "endless.json")  # a reader would wait for ever
    (home / "one" / "elsewhere").mkdir()
    (home / "one" / "elsewhere" / "notes.json").write_text(USER)
    found = recollect.forget(USER, work="work", corpus="mine.jsonl", delete=True)
    assert not (store / "batches.journal").exists()
    assert not any(path.name in ("notes.json", "endless.json") for path in found.still_named)


def test_a_size_is_measured_while_files_come_and_go(home, monkeypatch):
    monkeypatch.setattr(os, "walk", lambda path: [(str(path), [], ["gone.parquet", "gone-too"])])
    assert compute_entry_size(home / "work") == 0
