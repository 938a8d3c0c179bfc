"""The one path of every audit, with real parts: a tiny target, shadows trained by a tiny recipe, the answer store."""

from __future__ import annotations

import json
import signal
import stat
import subprocess
import sys
import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import ClassVar

import pytest
import yaml

from recollect.audits.audit import Needs
from recollect.audits.workspace import NO_WORKSPACE
from recollect.corpora import Record
from recollect.corpora.cohorts import Cohorts
from recollect.corpora.corpus_writer import write_corpus
from recollect.corpora.partitions import build_cohorts, draw_halves, list_units
from recollect.corpora.readers.corpus_reader import read_corpus
from recollect.errors import AccessError, CorpusError, ModelError, PlanError
from recollect.files import write_text
from recollect.models.access import Access
from recollect.models.answer_store.store import AnswerStore
from recollect.models.limited import limited
from recollect.models.loading.loader import load_model
from recollect.pipeline.plans.limits import Limit
from recollect.pipeline.plans.plan import Plan
from recollect.pipeline.plans.refs import CorpusRef, ModelRef
from recollect.pipeline.run import finish, run
from recollect.pipeline.sources import Sources
from recollect.recipes.recipe_file import load_recipe
from recollect.results.result import About, Finding, Result
from recollect.results.result_schema import parse_result
from recollect.results.run_folder import RunFolder
from recollect.signals.evidence import AUDITED, CONTROLS, TARGET
from recollect.signals.loss import mean_logprob
from recollect.signals.scores import Scores
from recollect.stats.auc import auc
from recollect.testing.refusals import refused
from recollect.testing.tiny import build_tiny_model, save_tiny

SHOWN = Access(k=1, logprob="any", distribution=False, steps=False)
QUICK = ["units=8", "embedding=8", "training.epochs=2", "training.batch_size=8", "tokenizer.size=50"]


@dataclass(frozen=True, kw_only=True)
class Gap:
    """How far the target's loss is from that of shadows trained on the controls; small, but all of an audit."""

    shadows: int = 2
    empty: bool = False
    """Request a shadow that nobody trains."""
    name: ClassVar[str] = "gap"
    question: ClassVar[str] = "Do members stand out against shadows?"
    paper: ClassVar[str] = "a test"

    def needs(self, evidence):
        access = {TARGET: SHOWN, "shadow": SHOWN}
        if CONTROLS not in evidence.corpora:
            given = frozenset({TARGET, AUDITED, CONTROLS})
            return Needs(access=access, given=given, fleet={"shadow": self.shadows})
        controls = evidence.corpora[CONTROLS]
        drawn = draw_halves(list_units(controls, "user"), self.shadows, seed=evidence.seed)
        if self.empty:
            drawn["shadow-1"] = ()
        asked = frozenset((model, AUDITED) for model in [TARGET, *drawn])
        return Needs(
            access=access,
            train={CONTROLS: build_cohorts(controls, drawn, unit="user", seed=evidence.seed)},
            score=asked,
        )

    def run(self, evidence, rng, workspace=NO_WORKSPACE):
        names = [TARGET, *evidence.models_of_role("shadow")]
        parts = []
        for records, answers in evidence.iter_blocks(AUDITED, names):
            target, *shadows = [mean_logprob(each) for each in answers]
            gap = {r.id: target[r.digest] - sum(s[r.digest] for s in shadows) / len(shadows) for r in records}
            parts.append(Scores.of(records, gap))
        if workspace.folder is not None:
            seen = workspace.folder / "times"
            write_text(seen, f"{seen.read_text()}+" if seen.exists() else "+")
        workspace.progress("judging", 1, 1)
        scores, truth = Scores.concatenate(parts), evidence.cohorts[AUDITED]
        found = auc(scores.select_users(truth.members(TARGET)), scores.select_users(truth.non_members(TARGET)))
        finding = Finding.of(found, name="auc", unit="AUC", reading=f"0.5 is chance; drew {rng.integers(10**6)}.")
        result = Result(
            audit=self.name, question=self.question, verdict="Said.", outcome="not_found", findings=(finding,)
        )
        return result.with_tables(scores=scores.to_table())


def prepared(folder: Path) -> Plan:
    """A plan by names alone, over files in this folder."""
    save_tiny(build_tiny_model("gpt2"), folder / "target")
    for name, first in (("audited", 0), ("controls", 10)):
        write_corpus(
            [
                Record(id=f"{u}-{i}", user=f"u{u}", text=f"user {u} says word{i} for the {u * i}th time")
                for u in range(first, first + 8)
                for i in range(6)
            ],
            folder / f"{name}.jsonl",
        )
    with (folder / "audited.jsonl").open("a") as file:
        file.write('{"id": "bad", "user": "u0", "text": 7}\n')
    truth = {TARGET: [f"u{i}" for i in range(4)]}
    corpus = CorpusRef(corpus=str(folder / "audited.jsonl"), skip_bad=True)
    build_cohorts(corpus.read(), truth, unit="user", seed=0).save(folder / "truth.json")
    return Plan(
        audit=Gap(),
        models={TARGET: str(folder / "target")},
        corpora={AUDITED: corpus, CONTROLS: str(folder / "controls.jsonl")},
        cohorts={AUDITED: folder / "truth.json"},
        recipe=load_recipe("word-lstm", QUICK),
        work=folder / "work",
        workers=1,
        threads=1,
    )


@pytest.fixture(scope="module")
def plan(tmp_path_factory):
    return prepared(tmp_path_factory.mktemp("plan"))


@pytest.fixture(scope="module")
def whole(plan):
    """The result of the plan, never disturbed, with its run folder and what was told meanwhile."""
    told = []
    out = plan.work.parent / "run"
    result = run(plan, out, progress=lambda *said: told.append(said))
    return result, out, told


def timeless(result: Result) -> dict:
    return {**result.model_dump(mode="json"), "provenance": {**dict(result.provenance), "seconds": 0}}


def test_the_result_says_what_it_came_from(plan, whole):
    result, _, _ = whole
    provenance = result.provenance
    corpus = read_corpus(plan.corpora[AUDITED].corpus, skip_bad=True)
    assert provenance.model == load_model(plan.models[TARGET]).digest
    assert provenance.corpus == corpus.digest
    assert set(provenance.digests) == {
        "controls", "shadow-0", "shadow-1", "cohorts of audited", "cohorts of controls",
    }  # fmt: skip
    assert provenance.queries == len(corpus) == 48
    assert provenance.torch
    assert result.dropped == {"audited.wrong_type": 1}
    assert result.settings == {"shadows": 2, "empty": False}


def test_the_run_folder_holds_result_plan_cohorts_and_tables_for_the_owner_only(plan, whole):
    result, out, _ = whole
    folder = RunFolder(out)
    kept = parse_result(json.loads(folder.get_result_path("gap").read_text()), source="gap")
    assert kept.model_dump() == result.model_dump()
    assert folder.read_table(folder.read_result("gap"), "scores").num_rows == 48
    assert Cohorts.load(folder.cohorts).members(TARGET) == ("u0", "u1", "u2", "u3")
    assert Cohorts.load(out / "cohorts-controls.json").models == ("shadow-0", "shadow-1")
    written = yaml.safe_load(folder.plan.read_text())
    assert written["audits"] == {"gap": {"shadows": 2, "empty": False}}
    assert written["corpora"]["audited"] == {"corpus": plan.corpora[AUDITED].corpus, "skip_bad": True}
    assert written["models"] == {TARGET: plan.models[TARGET]}
    assert written["cohorts"] == {AUDITED: str(plan.cohorts[AUDITED])}
    assert written["recipe"]["inline"] == plan.recipe.model_dump(mode="json")
    assert (written["seed"], written["out"], written["workers"]) == (0, str(out), 1)
    for path in [out, *out.rglob("*"), plan.work, *plan.work.glob("*"), *plan.work.glob("audits/**/*")]:
        assert stat.S_IMODE(path.stat().st_mode) == (0o700 if path.is_dir() else 0o600), path


def test_models_that_were_trained_for_the_audit_have_the_same_name_wherever_they_lie(plan, whole):
    result, _, _ = whole
    names = {role: facts.name for role, facts in result.provenance.models.items()}
    assert names[TARGET] == plan.models[TARGET]
    assert {names["shadow-0"], names["shadow-1"]} == {folder.name for folder in (plan.work / "models").iterdir()}


def test_limits_are_checked_into_the_result_and_kept_with_it(plan, whole, tmp_path):
    limits = tuple(map(Limit.parse, ("auc>=0", "auc>2", "acu>0")))
    about = About(system="shop-bot", who="ann")
    result = run(replace(plan, limits=limits, about=about), tmp_path)
    assert [check.status for check in result.limits] == ["exceeded", "kept", "not_checked"]
    assert result.about == about
    kept = RunFolder(tmp_path).read_result("gap")
    assert (kept.limits, kept.about) == (result.limits, about)
    written = yaml.safe_load(RunFolder(tmp_path).plan.read_text())
    assert written["limits"] == {"gap": ["auc>=0", "auc>2", "acu>0"]}
    assert written["about"] == {"system": "shop-bot", "who": "ann"}


def test_the_same_plan_again_loads_no_model(plan, whole, monkeypatch):
    monkeypatch.setattr("recollect.models.loading.local_models.load_local", lambda *_: pytest.fail("loaded"))
    assert timeless(run(plan)) == timeless(whole[0])


def test_what_one_plan_loaded_and_read_the_next_does_not_load_again(plan, whole, monkeypatch):
    sources, loaded, read = Sources(), [], []
    load, read_one = ModelRef.load, CorpusRef.read
    monkeypatch.setattr(ModelRef, "load", lambda ref, *work: loaded.append(ref.model) or load(ref, *work))
    monkeypatch.setattr(CorpusRef, "read", lambda ref: read.append(ref.corpus) or read_one(ref))
    for _ in range(2):
        finish(plan, sources=sources)
    assert loaded.count(plan.models[TARGET]) == 1
    assert sorted(read) == sorted([plan.corpora[AUDITED].corpus, plan.corpora[CONTROLS]])


def test_everything_that_takes_long_is_reported(whole):
    _, _, told = whole
    models = ("the target", "shadow-0", "shadow-1")
    assert {what.split(":")[0] for what, _, _ in told} == {
        *("training 2 models", "judging"),
        *(f"scoring with {model}" for model in models),
    }
    assert all(done <= total for _, done, total in told)


def test_the_same_plan_again_asks_and_trains_nothing_and_finds_the_same(plan, whole):
    result, out, _ = whole
    before = {path: path.stat().st_mtime_ns for path in plan.work.rglob("*.parquet")}
    assert sum(len(AnswerStore.open(folder)) for folder in (plan.work / "answers").iterdir()) == 3 * 48
    told = []
    again = run(plan, out, progress=lambda *said: told.append(said))
    assert timeless(again) == timeless(result)
    assert {path: path.stat().st_mtime_ns for path in plan.work.rglob("*.parquet")} == before
    assert all(done == total for _, done, total in told)


def test_the_desk_is_the_same_for_the_same_plan_and_another_for_another(plan, whole):
    desks = plan.work / "audits"
    (first,) = desks.iterdir()
    marks = len((first / "times").read_text())
    run(plan)
    assert len((first / "times").read_text()) == marks + 1
    run(replace(plan, seed=0, audit=Gap(shadows=1)))
    assert len(list(desks.iterdir())) == 2


def test_another_seed_draws_and_trains_other_shadows(plan, whole):
    result, _, _ = whole
    other = run(replace(plan, seed=7))
    assert other.provenance.digests["cohorts of controls"] != result.provenance.digests["cohorts of controls"]
    assert other.provenance.digests["shadow-0"] != result.provenance.digests["shadow-0"]
    assert other.findings[0].reading != result.findings[0].reading


@pytest.mark.parametrize("moment", ["training 2 models", "scoring with the target", "scoring with shadow-1", "judging"])
def test_a_run_interrupted_at_any_stage_continues_and_finds_the_same(plan, whole, tmp_path, moment):
    result, _, _ = whole
    disturbed = replace(plan, work=tmp_path / "work")

    def interrupt(what, done, total):
        if what.startswith(moment):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run(disturbed, tmp_path / "run", progress=interrupt)
    assert not (tmp_path / "run").exists()
    assert timeless(run(disturbed, tmp_path / "run")) == timeless(result)


def test_a_model_that_shows_too_little_is_refused_before_any_cost(plan, tmp_path):
    weak = limited(load_model(plan.models[TARGET]), Access.top(5))
    with refused("access_missing", AccessError):
        run(replace(plan, models={TARGET: weak}, work=tmp_path / "work"), tmp_path / "run")
    assert list(tmp_path.iterdir()) == []


def test_what_the_plan_lacks_is_refused_before_anything_is_loaded(plan, tmp_path):
    lacking = replace(plan, models={TARGET: "no/such/model"}, work=tmp_path / "work")
    with refused("missing_recipe", PlanError):
        run(replace(lacking, recipe=None), tmp_path / "run")
    with refused("missing_controls", PlanError):
        run(replace(lacking, corpora={AUDITED: plan.corpora[AUDITED]}))
    with refused("no_such_file", PlanError):
        run(replace(lacking, files={"canaries": tmp_path / "none.json"}))
    (tmp_path / "taken").touch()
    with refused("run_folder_not_writable", PlanError):
        run(lacking, tmp_path / "taken")
    assert [path.name for path in tmp_path.iterdir()] == ["taken"]


def test_the_truth_about_another_corpus_is_refused(plan, tmp_path):
    swapped = replace(plan, corpora={AUDITED: plan.corpora[CONTROLS], CONTROLS: plan.corpora[AUDITED]})
    with refused("different_corpora", CorpusError):
        run(replace(swapped, work=tmp_path))
    assert list(tmp_path.iterdir()) == []


def test_a_shadow_that_cannot_be_trained_is_named_and_the_others_are_kept(plan, tmp_path):
    broken = replace(plan, audit=Gap(empty=True), work=tmp_path)
    with refused("training_failed", ModelError) as refusal:
        run(broken)
    assert "shadow-1" in refusal.error.found
    assert "shadow-0" not in refusal.error.found
    assert len(list((tmp_path / "models").glob("*/card.json"))) == 1


def test_given_shadows_need_no_recipe(plan, whole, tmp_path):
    result, _, _ = whole
    found = {part: digest for part, digest in result.provenance.digests.items() if part.startswith("shadow")}
    folders = {load_model(str(folder)).digest: folder for folder in (plan.work / "models").iterdir()}
    models = {**plan.models, **{part: str(folders[digest]) for part, digest in found.items()}}
    again = run(replace(plan, models=models, recipe=None, work=tmp_path))
    assert again.findings == result.findings


def test_an_audit_runs_where_the_models_are_not(plan, whole, tmp_path):
    result, _, _ = whole
    stores = {AnswerStore.open(folder).manifest.digest: folder for folder in (plan.work / "answers").iterdir()}
    wanted = {TARGET: result.provenance.model, **{s: result.provenance.digests[s] for s in ("shadow-0", "shadow-1")}}
    models = {part: f"recorded:{stores[digest]}" for part, digest in wanted.items()}
    replayed = run(replace(plan, models=models, recipe=None, work=tmp_path))
    assert replayed.findings == result.findings
    assert replayed.provenance.torch is None
    assert not (tmp_path / "answers").exists()


@pytest.mark.slow
def test_several_workers_find_the_same(plan, whole, tmp_path):
    result, _, _ = whole
    assert run(replace(plan, workers=2, work=tmp_path)).findings == result.findings


SCRIPT = """
import sys; sys.path.insert(0, {folder!r})
from dataclasses import replace
from pathlib import Path
from test_run import prepared, run, timeless
if __name__ == "__main__":
    plan = prepared(Path(sys.argv[1]))
    run(plan, Path(sys.argv[1]) / "run")
"""


@pytest.mark.slow
def test_a_run_killed_at_any_moment_ends_with_the_same_result(whole, tmp_path, request):
    result, _, _ = whole
    script = tmp_path / "script.py"
    script.write_text(SCRIPT.format(folder=str(request.path.parent)))
    (tmp_path / "here").mkdir()
    command = [sys.executable, str(script), str(tmp_path / "here")]
    for moment in (3.0, 5.0, 6.5, 8.0, 9.5):
        disturbed = subprocess.Popen(command)  # noqa: S603
        time.sleep(moment)
        disturbed.send_signal(signal.SIGKILL)
        disturbed.wait()
    subprocess.run(command, check=True)  # noqa: S603
    found = RunFolder(tmp_path / "here" / "run").read_result("gap")
    assert timeless(found)["findings"] == timeless(result)["findings"]
    here, there = (dict(timeless(each)["provenance"]) for each in (found, result))
    # it was run in another folder, and the target is named by its place
    named = [
        {role: (Path(facts.name).name, facts.digest) for role, facts in each.pop("models").items()}
        for each in (here, there)
    ]
    assert here == there
    assert named[0] == named[1]
