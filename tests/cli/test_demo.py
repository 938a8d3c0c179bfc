"""The demonstration tells the truth, the same every time, and resumes."""

from __future__ import annotations

import json
import stat
from dataclasses import replace
from importlib.resources import files

import numpy as np
import pyarrow as pa
import pytest
import yaml
from typer.testing import CliRunner

from recollect.audits.registry import AUDITS
from recollect.cli.app import app
from recollect.corpora.canaries.manifest import Canaries
from recollect.corpora.cohorts import Cohorts
from recollect.corpora.corpus import Corpus
from recollect.pipeline import demo as package
from recollect.pipeline.demo.demonstration import TRUTHS, CheckedVerdict
from recollect.pipeline.demo.world import DemoWorld, describe_writing
from recollect.pipeline.plans.plan_file import read_plan
from recollect.results.result import Result


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    made = DemoWorld(folder=tmp_path_factory.mktemp("world"), seed=0)
    made.write_data()
    return made


def plan(name):
    return files(package) / f"{name}.yaml"


def test_the_truth_is_reported_of_every_audit_of_every_plan():
    planned = {name: set(yaml.safe_load(plan(name).read_text())["audits"]) for name in TRUTHS}
    assert planned == {name: set(truths) for name, truths in TRUTHS.items()}
    assert {"provenance", "exposure", "leakage", "membership", "removal"} == planned["unprotected"] <= set(AUDITS.names)


def test_groups_of_people_write_alike_by_design(world):
    for groups in (("members", "others", "controls", "elsewhere"), ("treated", "untreated", "other-patients")):
        corpora = [world.read_corpus(f"{name}.jsonl") for name in groups]
        described = describe_writing(Corpus.of([record for corpus in corpora for record in corpus]))
        people = [np.array([described[user] for user in sorted({r.owner for r in corpus})]) for corpus in corpora]
        everybody = np.concatenate(people)
        off = [
            (each.mean(axis=0) - everybody.mean(axis=0)) / everybody.std(axis=0) * len(each) ** 0.5 for each in people
        ]
        assert np.abs(off).max() < 1.6  # in standard errors; about 2.5 without a design


def test_the_truth_is_what_the_data_say(world):
    people = Cohorts.load(world.data / "people-cohorts.json")
    assert (len(people.members("target")), len(people.non_members("target"))) == (30, 30)
    patients = Cohorts.load(world.data / "patients-cohorts.json")
    assert (len(patients.members("target")), len(patients.non_members("target"))) == (20, 20)
    canaries = Canaries.load(world.data / "planted.canaries.json")
    assert sorted(canary.planted for canary in canaries.planted) == [1] * 5 + [4] * 5 + [16] * 5
    owners = {
        name: {r.owner for r in world.read_corpus(f"{name}.jsonl")} for name in ("people", "controls", "elsewhere")
    }
    assert not owners["people"] & owners["controls"]
    assert not owners["elsewhere"] & (owners["people"] | owners["controls"])
    learnt = {record.owner for record in world.read_corpus("planted.jsonl")}
    assert learnt & owners["people"] == set(people.members("target"))
    kinds = ("deleted", "rest", "other-digits")
    pictures = [{r.array.tobytes() for r in world.read_corpus(f"{name}.npz")} for name in kinds]
    assert [len(each) for each in pictures] == [200, 400, 1000]
    assert len(set().union(*pictures)) == 1600


def test_the_same_seed_makes_the_same_world_and_another_another(world, tmp_path):
    for seed, same in ((0, True), (1, False)):
        other = DemoWorld(folder=tmp_path / str(seed), seed=seed)
        other.write_data()
        for name in ("planted.jsonl", "people.jsonl", "patients.jsonl", "deleted.npz", "rest.npz"):
            assert (other.read_corpus(name).digest == world.read_corpus(name).digest) is same, name


def test_the_plans_are_plans(world):
    for name in TRUTHS:
        path = world.folder / f"{name}.yaml"
        path.write_text(plan(name).read_text())
        for planned in read_plan(path).plans:
            planned.refuse_incomplete()


def verdict(audit, table, people, outcome="found"):
    result = Result(audit=audit, question="?", verdict="!", outcome=outcome)
    return result.with_tables(**{table: pa.Table.from_pylist([{"user": name, **told} for name, told in people])})


@pytest.mark.parametrize(
    ("audit", "table", "accused", "left"),
    [
        ("provenance", "users", {"decision": "member"}, {"decision": "no sign"}),
        ("leakage", "users", {"flagged": True}, {"flagged": False}),
        ("membership", "candidates", {"identified": True}, {"identified": False}),
    ],
)
def test_a_verdict_is_right_only_if_nearly_all_whom_it_names_were_learnt_from(world, audit, table, accused, left):
    truth = TRUTHS["unprotected"][audit]
    learners = world.list_people(truth.training_corpus)
    members = sorted(learners)[:18]
    # writers and patients are different people of the same names
    held_out = "other-patients.jsonl" if audit == "membership" else "controls.jsonl"
    strangers = sorted(world.list_people(held_out))[:3]
    assert not learners & set(strangers)
    for wrong, right in ((0, True), (2, True), (3, False)):
        people = [(name, accused) for name in members + strangers[:wrong]] + [
            (name, left) for name in strangers[wrong:]
        ]
        assert truth.is_right(verdict(audit, table, people), learners) is right, wrong
        assert not truth.is_right(verdict(audit, table, people, outcome="not_found"), learners)
    assert truth.is_right(verdict(audit, table, [(name, left) for name in strangers]), learners)
    undone = Result(audit=audit, question="?", verdict="!", outcome="inconclusive", outcome_code="no_power")
    assert not truth.is_right(undone, learners)


@pytest.mark.parametrize(
    ("outcome", "code", "mark", "status"),
    [
        ("found", None, "✓ right", 0),
        ("not_found", None, "✗ WRONG", 2),
        ("inconclusive", "not_comparable", "Inconclusive", 0),
        ("inconclusive", "no_power", "✗ WRONG", 2),
        ("inconclusive", "failed", "✗ WRONG", 2),
    ],
)
def test_a_verdict_that_a_safeguard_withholds_is_neither_right_nor_wrong(
    tmp_path, monkeypatch, outcome, code, mark, status
):
    made = Result(audit="exposure", question="?", verdict="!", outcome=outcome, outcome_code=code)
    truth = TRUTHS["unprotected"]["exposure"]
    checked = CheckedVerdict(
        plan="unprotected", result=made, truth=truth, is_right=truth.is_right(made, frozenset({"ann"}))
    )
    right = replace(checked, result=made.replace(outcome="found", outcome_code=None), is_right=True)
    monkeypatch.setattr("recollect.pipeline.demo.demonstration.demonstrate", lambda *_, **__: iter([checked, right]))
    monkeypatch.setattr("recollect.cli.demo._write_demo_pages", lambda *_: None)
    done = CliRunner().invoke(app, ["demo", "--out", str(tmp_path / "demo")])
    assert done.exit_code == status, done.stderr
    assert mark in done.stdout
    assert ("1 of 1 verdicts are right, 1 inconclusive" in done.stdout) is (code == "not_comparable")
    assert ("1 in 20" in " ".join(done.stderr.split())) is (code == "not_comparable")


def test_whoever_is_a_member_by_the_cohorts_is_in_what_the_model_learnt(world):
    for audit, cohorts in (("provenance", "people"), ("membership", "patients")):
        told = Cohorts.load(world.data / f"{cohorts}-cohorts.json")
        learners = world.list_people(TRUTHS["unprotected"][audit].training_corpus)
        assert set(told.members("target")) <= learners
        assert not learners & set(told.non_members("target"))


def demo(folder):
    done = CliRunner().invoke(app, ["demo", "--out", str(folder), "--json"])
    assert done.exit_code == 0, done.stderr
    told = json.loads(done.stdout)
    for each in told:
        each["result"]["provenance"]["seconds"] = 0
    return told, done.stderr


@pytest.fixture(scope="module")
def shown(tmp_path_factory):
    """What the demonstration shows, and where."""
    folder = tmp_path_factory.mktemp("demo") / "one"
    return folder, *demo(folder)


PAGES = ("unprotected/report.html", "protected/report.html", "compared.html")


@pytest.mark.slow
@pytest.mark.xdist_group("demo")
def test_the_demo_is_right_and_the_same_every_time(shown):
    folder, first, said = shown
    assert [each["result"]["audit"] for each in first if not each["right"]] == []
    assert len(first) == 8
    for page in PAGES:
        assert (folder / page).stat().st_size < 6_000_000
        assert page in said
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert demo(folder)[0] == first


@pytest.mark.slow
@pytest.mark.browser
@pytest.mark.xdist_group("demo")
@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("page", PAGES)
def test_its_pages_shut_nobody_out_on_a_desk_and_on_a_telephone(shown, faults, page, dark):
    for width in (1280, 500):
        serious, wide = faults(shown[0] / page, width, dark=dark)
        assert serious == []
        assert wide <= width
