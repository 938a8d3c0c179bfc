"""The leakage audit with models that a recipe really trains: without the users of sequences, and without folds."""

from __future__ import annotations

import json
import shutil

import numpy as np
import pytest
from typer.testing import CliRunner

from recollect.audits.leakage.audit import LeakageAudit
from recollect.cli.app import app
from recollect.corpora.corpus import Corpus
from recollect.corpora.record import Record
from recollect.pipeline import run as running
from recollect.pipeline.plans.plan import Plan
from recollect.pipeline.run import run
from recollect.recipes.recipe_file import load_recipe
from recollect.recipes.training.trainer import train

SMALL = ["units=48", "embedding=24", "batch_size=16", "learning_rate=0.02", "epochs=20", "tokenizer.size=400"]
USERS, EACH, LENGTH, VOCABULARY = 48, 3, 9, 120


def texts_of(users, name, *, seed=0, each=EACH):
    """Words that follow one another as they please: what a model knows of a text it has from that text."""
    rng = np.random.default_rng([seed, len(name)])
    return [
        Record(id=f"{name}{u}-{i}", user=f"{name}{u}", text=" ".join(f"w{w}" for w in words))
        for u in range(users)
        for i, words in enumerate(rng.integers(VOCABULARY, size=(each, LENGTH)))
    ]


@pytest.fixture(scope="module")
def recipe():
    return load_recipe("word-gru", SMALL)


@pytest.fixture(scope="module")
def target(tmp_path_factory, recipe):
    """A model that has learnt its users' texts by heart, and their corpus."""
    corpus = Corpus.of(texts_of(USERS, "u"), name="people")
    folder = tmp_path_factory.mktemp("target") / "model"
    train(recipe, corpus, folder, threads=1)
    return folder, corpus


def plan_of(target, recipe, work, audit, **changes):
    folder, corpus = target
    given = {"models": {"target": str(folder)}, "corpora": {"audited": corpus}, **changes}
    return Plan(audit=audit, recipe=recipe, work=work, workers=1, threads=1, **given)


def said(result):
    """All of a result but how long it took."""
    return {name: value for name, value in result.model_dump(mode="json").items() if name != "provenance"}


def test_references_of_folds_find_what_a_model_learnt_by_heart_also_after_a_kill(target, recipe, tmp_path, monkeypatch):
    plan = plan_of(target, recipe, tmp_path / "whole", LeakageAudit(folds=4))
    result = run(plan, tmp_path / "run")
    assert result.outcome == "found", result.verdict
    assert result.finding("leakage_epsilon").value > 2
    assert result.finding("leakage_excess").interval[0] > 0
    assert "references" in result.note_codes
    cohorts = json.loads((tmp_path / "run" / "cohorts.json").read_text())
    assert sorted(cohorts["models"]) == [f"left-out-{i}" for i in range(4)]

    shutil.copytree(tmp_path / "whole" / "models", tmp_path / "killed" / "models")  # it dies when all are trained
    killed, calls = plan_of(target, recipe, tmp_path / "killed", LeakageAudit(folds=4)), []
    whole = running.score_corpus

    def dies(model, *arguments, **options):
        calls.append(model)
        if len(calls) == 3:
            raise KeyboardInterrupt
        return whole(model, *arguments, **options)

    monkeypatch.setattr(running, "score_corpus", dies)
    with pytest.raises(KeyboardInterrupt):
        run(killed)
    assert said(run(killed)) == said(result)


def test_few_users_are_left_out_by_one_reference_and_one_null_model(target, recipe, tmp_path):
    """Long sequences only, so that few users have any."""
    folder, corpus = target
    audit = LeakageAudit(folds=8, min_length=4, removable=0.5)
    some = Corpus.of([*corpus, *texts_of(100, "other", seed=1, each=1)], name="people and others")
    result = run(plan_of((folder, some), recipe, tmp_path / "work", audit), tmp_path / "run")
    cohorts = json.loads((tmp_path / "run" / "cohorts.json").read_text())
    assert sorted(cohorts["models"]) == ["retrained-0", "retrained-1"]
    weights = [path.read_bytes() for path in sorted((tmp_path / "work" / "models").glob("*/model.safetensors"))]
    assert len(set(weights)) == 2, "reference and null model are two trainings"
    assert result.finding("leakage_epsilon").value > 2
    assert result.finding("flagged_users").n["users"] == USERS + 100
    told = {row["user"] for row in result.tables_in_memory["sequences"].to_pylist()}
    trained = {cohorts["units"][place] for place in cohorts["models"]["retrained-0"]}
    assert told
    assert not told & trained


def test_the_verb_trains_the_references_itself(target, tmp_path):
    folder, corpus = target
    rows = [json.dumps({"id": each.id, "user": each.user, "text": each.text}) for each in corpus]
    (tmp_path / "train.jsonl").write_text("\n".join(rows) + "\n")
    words = ["leakage", folder, tmp_path / "train.jsonl", "--recipe", "word-gru", "--folds", 3, "--workers", 1]
    words += [part for change in SMALL for part in ("--set", change)]
    words += ["--work", tmp_path / "work", "--out", tmp_path / "run", "--json"]
    done = CliRunner(env={"COLUMNS": "200"}).invoke(app, [str(word) for word in words])
    assert done.exit_code == 0, done.output
    result = json.loads(done.stdout)
    assert result["settings"]["folds"] == 3
    assert {each["name"] for each in result["findings"]} >= {"leakage_epsilon", "leakage_excess", "flagged_users"}
    assert [each["finding"] for each in result["skipped"]] == ["leakage_epsilon_null"], "chance alone gives no sequence"
