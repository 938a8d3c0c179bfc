"""The limit on the work folder's size: nothing is begun beyond it, scoring stops at it, and what is there stays."""

from __future__ import annotations

import pytest
from typer.testing import CliRunner

import recollect
from recollect.cli.app import app
from recollect.files import write_json
from recollect.pipeline.work_folder import work_entries
from recollect.pipeline.work_folder.work_entries import WorkLimit
from recollect.signals.evidence import AUDITED, CONTROLS
from recollect.testing.refusals import refused
from recollect.testing.tiny import build_tiny_model, save_tiny
from recollect.testing.world import World

WORLD = World(members=8, others=8, controls=12)


def fill(work, size):
    (work / "answers" / "a").mkdir(parents=True)
    (work / "answers" / "a" / "shard.parquet").write_bytes(b"0" * size)


def audit(work, limit):
    corpora = WORLD.corpora
    return recollect.membership(
        WORLD.build_memoriser(), corpora[AUDITED], controls=corpora[CONTROLS], by="user", work=work, work_limit_gb=limit
    )


def test_an_audit_is_refused_before_it_begins_where_the_limit_is_reached(tmp_path):
    fill(tmp_path / "work", 2_000)
    before = sorted(tmp_path.rglob("*"))
    with refused("work_limit_reached"):
        audit(tmp_path / "work", 1e-6)
    assert sorted(tmp_path.rglob("*")) == before
    assert audit(tmp_path / "work", 1).outcome


def test_an_audit_stops_where_its_own_scores_reach_the_limit(tmp_path):
    with refused("work_limit_reached"):
        audit(tmp_path / "work", 1e-6)
    assert len(list((tmp_path / "work" / "answers").iterdir())) == 1
    assert recollect.verify(tmp_path / "work").is_whole


def test_scoring_looks_now_and_then(tmp_path, monkeypatch):
    monkeypatch.setattr(work_entries, "LOOK_SECONDS", 0.0)
    said = []
    watched = WorkLimit(work=tmp_path, gigabytes=1e-6).watch(lambda done, total, note: said.append(done))
    watched(0, 2, "")
    fill(tmp_path, 2_000)
    with refused("work_limit_reached"):
        watched(1, 2, "")
    watched(2, 2, "")  # all is done: there is nothing left to stop
    assert said == [0, 1, 2]


@pytest.mark.parametrize("verb", ["score", "evaluate"])
def test_verbs_that_score_refuse_with_one_message(verb, tmp_path, monkeypatch, check_refusal):
    monkeypatch.chdir(tmp_path)
    save_tiny(build_tiny_model("gpt2", seed=0), tmp_path / "model")
    (tmp_path / "a.txt").write_text("some words\n")
    write_json(tmp_path / ".recollect" / "answers" / "a" / "x.json", ["x" * 2_000])
    check_refusal(CliRunner().invoke(app, [verb, "model", "a.txt", "--work-limit-gb", "1e-6"]), "work_limit_reached")


def test_a_plan_keeps_the_limit(tmp_path):
    session = recollect.Session(work=tmp_path, work_limit_gb=2.5)
    plan = session.plan("membership", WORLD.build_memoriser(), WORLD.corpora[AUDITED], controls=WORLD.corpora[CONTROLS])
    assert plan.work_limit_gb == 2.5
