"""What a verb leaves as plan.yaml can be read again, is written again as it was, and finds the same."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import yaml
from typer.testing import CliRunner

import recollect
from recollect.audits.registry import list_audits_by_verb
from recollect.cli.app import app
from recollect.corpora import read_corpus
from recollect.corpora.canaries.insertion import CanarySettings, plant
from recollect.corpora.corpus_writer import write_corpus
from recollect.corpora.partitions import build_cohorts
from recollect.pipeline.plans.plan_file import read_plan
from recollect.pipeline.plans.plan_writer import write_plan
from recollect.recipes.recipe_file import load_recipe
from recollect.recipes.training.trainer import train
from recollect.signals.evidence import AUDITED, CONTROLS
from recollect.testing.refusals import refused
from recollect.testing.tiny import build_tiny_model, save_tiny
from recollect.testing.world import World

FORMAT = "again {digits:2}"
TINY = ("units=8", "embedding=8", "dropout=0", "epochs=1", "tokenizer.size=400")
SET = tuple(word for change in TINY for word in ("--set", change))
CALLS = {
    "exposure": ("gpt2", "texts.txt", "--format", FORMAT, "--context", 5, "--draws", 100, "--method", "sampled"),
    "extract": ("gpt2", "--format", FORMAT, "--top", 2, "--method", "beam", "--width", 5, "--window", 32),
    "leakage": ("gpt2", "mine.jsonl", "--controls", "others.jsonl", "--reference", "base", "--top-k", 100),
    "membership": (
        *("gpt2", "mine.jsonl", "--controls", "others.jsonl", "--signal", "lowest-tokens", "--by", "user"),
        *("--signal-settings", "fraction=0.5", "--fpr", "0.1,0.25", "--members", "mine.json", "--fail-if", "auc>2"),
    ),
    "provenance": (
        *("lstm", "mine.jsonl", "--controls", "others.jsonl", "--recipe", "word-lstm", *SET, "--shadows", 2),
        *("--calibration", 0.5, "--queries", "none", "--members", "mine.json", "--seed", 3),
    ),
    "removal": (
        *("mlp", "query.npz", "--controls", "never.npz", "--recipe", "mlp", "--models", 2, "--neighbours", 0),
        *("--set", "model.hidden=[8]", "--set", "training.epochs=1"),
    ),
}
MORE = {
    "exposure": ("gpt2", "--canaries", "c.json", "--draws", 100),
    "membership": (
        "gpt2",
        "mine.jsonl",
        "--controls",
        "others.jsonl",
        "--members",
        "users.txt",
        "--others",
        "non-members",
    ),
}
"""Other ways to say what is given."""


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    """All that the verbs are called with."""
    folder, world = tmp_path_factory.mktemp("round-trip"), World(members=4, others=4, controls=80)
    save_tiny(build_tiny_model("gpt2"), folder / "gpt2")
    save_tiny(build_tiny_model("gpt2", seed=1), folder / "base")
    write_corpus(world.corpora[AUDITED], folder / "mine.jsonl")
    write_corpus(world.corpora[CONTROLS], folder / "others.jsonl")
    mine = read_corpus(folder / "mine.jsonl")
    users = sorted({record.user for record in mine})
    (folder / "users.txt").write_text("\n".join(users[:4]))
    build_cohorts(mine, {"target": users[:4]}, unit="user", seed=0).save(folder / "mine.json")
    train(load_recipe("word-lstm", TINY), mine, folder / "lstm", threads=1)
    (folder / "texts.txt").write_text("the quick fox\njumps over again 42 and\nthe lazy dog\n")
    _, canaries = plant(read_corpus(folder / "texts.txt"), CanarySettings(format=FORMAT, secrets=2, controls=10))
    canaries.save(folder / "c.json")
    rng = np.random.default_rng(0)
    for name, count in (("query", 30), ("never", 60)):
        x = rng.random((count, 4, 4), dtype=np.float32)
        np.savez(folder / f"{name}.npz", x=x, y=np.arange(count) % 3)
    train(
        load_recipe("mlp", ["model.hidden=[8]", "training.epochs=1"]),
        read_corpus(folder / "query.npz"),
        folder / "mlp",
        threads=1,
    )
    return folder


def call(*words):
    done = CliRunner().invoke(app, [str(word) for word in words])
    assert done.exit_code == 0, done.output
    return done


def results(run):
    """All that a run found, but for how long it took and from where it was called."""
    found = {path.name: json.loads(path.read_text()) for path in (run / "results").iterdir()}
    for result in found.values():
        result["provenance"]["seconds"] = 0
        for model in result["provenance"]["models"].values():
            model["name"] = Path(model["name"]).name
    return found


@pytest.mark.parametrize(
    ("verb", "words"), [*CALLS.items(), *MORE.items()], ids=[*CALLS, *(f"{verb} otherwise" for verb in MORE)]
)
def test_the_plan_of_a_verb_is_written_again_as_it_was_and_finds_the_same(home, tmp_path, monkeypatch, verb, words):
    monkeypatch.chdir(home)
    run, again = tmp_path / "run", tmp_path / "again"
    call(verb, *words, "--out", run, "--work", "work", "--workers", 1)
    text = (run / "plan.yaml").read_text()
    monkeypatch.chdir(tmp_path)  # the plan holds from everywhere
    planned = read_plan(run / "plan.yaml")
    assert write_plan(planned.plans, out=planned.out) == text
    call("run", run / "plan.yaml", "--out", again)
    assert results(again) == results(run)
    assert (again / "plan.yaml").read_text() == text.replace(str(run), str(again))


def test_every_verb_is_called():
    assert CALLS.keys() == list_audits_by_verb().keys()


SEVERAL = {
    "models": {"target": {"model": "gpt2", "shows_top_k": 100}, "reference": "base"},
    "corpora": {
        "audited": {"corpus": "mine.jsonl", "split": "windows", "split_words": 4},
        "controls": "others.jsonl",
    },
    "members": "users.txt",
    "audits": {
        "leakage": {"top_k": 3, "with": {"recipe": {"recipe": "word-gru", "set": {"units": 8}}}},
        "exposure": {"draws": 100, "with": {"files": {"canaries": "c.json"}, "models": {"target": "gpt2"}}},
    },
    "limits": {"leakage": ["flagged_users>1000"]},
    "about": {"system": "shop-bot"},
    "threads": 1,
}


def write_again(home, tmp_path, plan):
    """The plan as a run folder keeps it, which means the same."""
    (home / "plan.yaml").write_text(yaml.safe_dump(plan))
    planned = read_plan(home / "plan.yaml")
    text = write_plan(planned.plans, out=planned.out)
    (tmp_path / "plan.yaml").write_text(text)
    again = read_plan(tmp_path / "plan.yaml")
    assert write_plan(again.plans, out=again.out) == text
    assert [plan.audit for plan in again.plans] == [plan.audit for plan in planned.plans]
    for ours, theirs in zip(again.plans, planned.plans, strict=True):
        assert (ours.models, ours.corpora, ours.members) == (theirs.models, theirs.corpora, theirs.members)
        assert (ours.limits, ours.about, ours.work) == (theirs.limits, theirs.about, theirs.work)
        assert (ours.cohorts, ours.files) == (theirs.cohorts, theirs.files)
        assert ours.load_recipe() == theirs.load_recipe()
    return yaml.safe_load(text)


def test_the_plan_of_several_audits_says_once_what_they_share_and_means_the_same(home, tmp_path):
    written = write_again(home, tmp_path, SEVERAL)
    assert written["models"] == {"target": str(home / "gpt2"), "reference": str(home / "base")}
    assert written["corpora"].keys() == {"audited", "controls"}
    assert written["members"] == str(home / "users.txt")
    own = {name: settings["with"] for name, settings in written["audits"].items()}
    assert own["leakage"].keys() == {"models", "recipe"}
    assert own["leakage"]["models"] == {"target": {"model": str(home / "gpt2"), "shows_top_k": 100}}
    assert own["exposure"] == {"files": {"canaries": str(home / "c.json")}}


def test_audits_that_differ_say_how(home, tmp_path):
    own = {"corpora": {"audited": "others.jsonl"}, "recipe": {"recipe": "word-gru", "set": {"units": 8}}}
    more = {"models": {"target": "lstm"}, "members": ["ann"], "others": "non-members"}
    plan = SEVERAL | {"recipe": "word-lstm", "limits": {}}
    plan["audits"] = {"leakage": {}, "exposure": {"with": {"members": "users.txt", "others": "non-members"}}}
    plan["audits"] |= {"membership": {"with": own | more}, "provenance": {"with": {"recipe": own["recipe"]}}}
    written = write_again(home, tmp_path, plan)
    assert written["corpora"]["audited"]["corpus"] == str(home / "mine.jsonl")
    assert written["audits"]["membership"]["with"]["corpora"] == {"audited": str(home / "others.jsonl")}
    assert written["audits"]["provenance"]["with"].keys() == {"members", "recipe"}
    assert "members" not in written, "they are not known alike of all audited corpora"


@pytest.mark.parametrize("known", [{"members": "users.txt"}, {"cohorts": {"audited": "mine.json"}}], ids=str)
@pytest.mark.parametrize("again", [True, False])
def test_what_is_known_of_one_audited_corpus_is_not_said_of_another(home, tmp_path, known, again):
    plan = {name: value for name, value in SEVERAL.items() if name != "members"} | known
    own = {"corpora": {"audited": "mine.jsonl"}, **(known if again else {})}
    write_again(home, tmp_path, plan | {"audits": {"leakage": {}, "membership": {"with": own}}, "limits": {}})


def test_a_plan_of_objects_in_memory_is_written_down_and_refused(home, tmp_path):
    world, options = World(members=4, others=4, controls=80), {"fpr": (0.1,), "by": "user", "work": tmp_path / "work"}
    recollect.membership(
        world.build_memoriser(),
        world.corpora[AUDITED],
        controls=world.corpora[CONTROLS],
        out=tmp_path / "run",
        **options,
    )
    given = yaml.safe_load((tmp_path / "run" / "plan.yaml").read_text())
    assert given["corpora"]["audited"]["digest"] == world.corpora[AUDITED].digest
    with refused("plan_with_objects"):
        read_plan(tmp_path / "run" / "plan.yaml")
