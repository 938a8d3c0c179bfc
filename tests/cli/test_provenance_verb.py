"""`recollect provenance` as a user types it, with models that are really trained."""

import json

import pytest
from typer.testing import CliRunner

from recollect.cli.app import app
from recollect.corpora.partitions import build_cohorts
from recollect.corpora.readers.corpus_reader import read_corpus
from recollect.models.answer_store.store import AnswerStore
from recollect.recipes.recipe_file import load_recipe
from recollect.recipes.training.trainer import train
from recollect.signals.evidence import AUDITED, CONTROLS
from recollect.testing.world import World

SMALL = ("units=16", "embedding=16", "dropout=0", "epochs=30", "learning_rate=0.02", "tokenizer.size=400")


def call(*words):
    return CliRunner(env={"COLUMNS": "200"}).invoke(app, [str(word) for word in words])


def write(path, records):
    path.write_text("".join(json.dumps({"id": r.id, "user": r.user, "text": r.text}) + "\n" for r in records))
    return path


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A target trained on eight of sixteen people, and 120 others for reference."""
    made, world = tmp_path_factory.mktemp("provenance"), World(members=8, others=8, controls=120)
    audited = read_corpus(str(write(made / "audited.jsonl", world.corpora[AUDITED])))
    write(made / "controls.jsonl", world.corpora[CONTROLS])
    users = sorted({record.user for record in audited})
    cohorts = build_cohorts(audited, {"target": [user for user in users if "member" in user]}, unit="user", seed=0)
    cohorts.save(made / "members.json")
    train(load_recipe("word-lstm", SMALL), audited, made / "target", cohort=(cohorts, "target"), threads=1)
    write(made / "me.jsonl", [record for record in world.member_records if record.user == "member-3"])
    write(made / "next.jsonl", World(members=0, others=1, seed=9).corpora[AUDITED])
    return made


def options(folder):
    changes = [part for change in SMALL for part in ("--set", change)]
    shadows = ("--controls", folder / "controls.jsonl", "--recipe", "word-lstm", "--shadows", 4, *changes)
    return (*shadows, "--work", folder / "work", "--workers", 1)


def test_a_person_learns_whether_their_texts_were_used_and_the_next_needs_no_new_shadows(folder, tmp_path):
    found = call("provenance", folder / "target", folder / "me.jsonl", *options(folder), "--out", tmp_path / "run")
    assert found.exit_code == 0, found.output
    assert "used to train this model" in found.output.replace("\n", " ")
    assert (tmp_path / "run" / "tables" / "provenance" / "users.parquet").exists()
    models = folder / "work" / "models"
    trained = {path.name: path.stat().st_mtime_ns for path in models.glob("*/card.json")}
    shadows = sorted(path.name for path in models.iterdir())
    assert len(shadows) == 4
    everybody = call(
        *("provenance", folder / "target", folder / "audited.jsonl", *options(folder), "--json"),
        *("--members", folder / "members.json", "--top-k", 50),
    )
    assert everybody.exit_code == 0, everybody.output
    assert sorted(path.name for path in models.iterdir()) == shadows
    assert {path.name: path.stat().st_mtime_ns for path in models.glob("*/card.json")} == trained
    result = json.loads(everybody.stdout)
    values = {each["name"]: each["value"] for each in result["findings"]}
    assert values["auc"] > 0.9
    assert result["provenance"]["queries"] == 16 * 3 + 30 * 3


def test_the_next_person_costs_only_their_own_queries(folder):
    def answered():
        return sum(len(AnswerStore.open(store)) for store in (folder / "work" / "answers").iterdir())

    first = call("provenance", folder / "target", folder / "me.jsonl", *options(folder))
    assert first.exit_code == 0, first.output
    before = answered()
    following = call("provenance", folder / "target", folder / "next.jsonl", *options(folder))
    assert following.exit_code == 0, following.output
    assert answered() - before == 3 * 5  # three texts, asked of the target and four shadows


def test_the_papers_method_runs_on_the_same_shadows(folder):
    found = call(
        *("provenance", folder / "target", folder / "audited.jsonl", *options(folder), "--json"),
        *("--members", folder / "members.json", "--method", "histogram"),
    )
    assert found.exit_code == 0, found.output
    names = {each["name"] for each in json.loads(found.stdout)["findings"]}
    assert {"auc", "svm_accuracy", "svm_false_positive_rate"} <= names


def test_a_budget_that_does_not_reach_is_refused_before_any_cost(folder, tmp_path, check_refusal):
    found = call(
        "provenance", folder / "target", folder / "me.jsonl", *options(folder)[:-4], "--work", tmp_path, "--budget", 10
    )
    check_refusal(found, "budget_too_small")
    assert not (tmp_path / "models").exists()


def test_shadows_need_a_recipe(folder, check_refusal):
    found = call("provenance", folder / "target", folder / "me.jsonl", "--controls", folder / "controls.jsonl")
    check_refusal(found, "missing_recipe")


def test_pieces_are_scored_about_and_counted(folder, check_refusal):
    words = (*options(folder), "--budget", 200, "--json")
    whole = call("provenance", folder / "target", folder / "me.jsonl", *words)
    assert whole.exit_code == 0, whole.output
    check_refusal(call("provenance", folder / "target", folder / "me.jsonl", *words, "--pieces", 4), "budget_too_small")
