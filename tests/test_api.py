"""The front door for Python: objects give what files give, everything is loaded once, and nonsense is refused."""

from __future__ import annotations

import copy
import html
import json
import math
import re
import shutil
from pathlib import Path

import pandas as pd
import pytest
import torch
import yaml
from transformers import AutoModelForCausalLM, AutoTokenizer
from typer.testing import CliRunner

import recollect
from recollect.audits.registry import AUDITS, list_audits_by_verb
from recollect.cli.app import app
from recollect.corpora import synthetic
from recollect.corpora.cohorts import Cohorts
from recollect.corpora.partitions import build_cohorts
from recollect.corpora.readers import corpus_reader
from recollect.models.loading import loader
from recollect.pipeline import sources
from recollect.recipes.recipe_file import load_recipe
from recollect.results.run_folder import RunFolder
from recollect.signals.evidence import AUDITED, CONTROLS, TARGET
from recollect.testing.refusals import refused
from recollect.testing.tiny import build_tiny_model, save_tiny
from recollect.testing.world import World

SMALL = {"n_embd": 16, "n_layer": 1, "training.epochs": 1, "tokenizer.size": 300}
FORMAT = "my pin is {digits:3}"
MEMBERS = ["person-0", "person-2", "person-5", "person-7"]


@pytest.fixture(scope="module")
def files(tmp_path_factory) -> Path:
    """Models, corpora, ids and a recipe as files."""
    folder = tmp_path_factory.mktemp("files")
    for seed, name in enumerate(("model", "base")):
        save_tiny(build_tiny_model("gpt2", seed=seed), folder / name)
    rows = [{"user": record.user, "text": record.text} for record in synthetic.make_texts(people=88, per_person=3)]
    for name, chosen in (("posts", rows[:24]), ("controls", rows[24:72]), ("others", rows[24:])):
        (folder / f"{name}.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in chosen), encoding="utf-8")
    (folder / "members.txt").write_text("\n".join(MEMBERS), encoding="utf-8")
    recipe = load_recipe("causal-transformer", SMALL)
    (folder / "recipe.yaml").write_text(yaml.safe_dump(recipe.model_dump(mode="json")), encoding="utf-8")
    return folder


@pytest.fixture(scope="module")
def held(files) -> dict:
    """The same as objects in memory."""
    return {
        "model": AutoModelForCausalLM.from_pretrained(files / "model"),
        "base": AutoModelForCausalLM.from_pretrained(files / "base"),
        "tokenizer": AutoTokenizer.from_pretrained(files / "model"),
        "posts": pd.read_json(files / "posts.jsonl", lines=True),
        "controls": pd.read_json(files / "controls.jsonl", lines=True),
        "others": pd.read_json(files / "others.jsonl", lines=True),  # provenance needs many
    }


@pytest.fixture
def at_home(files, tmp_path, monkeypatch) -> None:
    """The files in the folder in which the test works."""
    shutil.copytree(files, tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)


ON_FILES = {
    "exposure": ["model", "--format", FORMAT, "--secrets", "471", "--draws", "200"],
    "extract": ["model", "--format", FORMAT, "--top", "3", "--show-text"],
    "leakage": ["model", "posts.jsonl", "--controls", "controls.jsonl", "--reference", "base", "--top-k", "20"],
    "membership": [
        *("model", "posts.jsonl", "--controls", "controls.jsonl", "--reference", "base", "--fpr", "0.1"),
        *("--members", "members.txt", "--others", "non-members"),
    ],
    "provenance": [
        *("model", "posts.jsonl", "--controls", "others.jsonl", "--recipe", "recipe.yaml"),
        *("--shadows", "1", "--queries", "2"),
    ],
    "removal": ["model", "posts.jsonl", "--controls", "controls.jsonl", "--reference", "base", "--models", "0"],
}
"""Each audit as somebody types it."""


def call(verb: str, held: dict, **more):
    """Each audit as somebody calls it on objects of the same content."""
    model, posts, base = (held[name] for name in ("model", "posts", "base"))
    more |= {"tokenizer": held["tokenizer"]}
    if verb == "exposure":
        return recollect.exposure(model, format=FORMAT, secrets=["471"], draws=200, **more)
    if verb == "extract":
        return recollect.extract(model, format=FORMAT, top=3, show_text=True, **more)
    given = {
        "leakage": {"reference": base, "top_k": 20},
        "membership": {"reference": base, "fpr": [0.1], "members": MEMBERS, "others": "non-members"},
        "provenance": {"recipe": load_recipe("causal-transformer", SMALL), "shadows": 1, "queries": 2},
        "removal": {"reference": base, "models": 0},
    }[verb]
    controls = held["others" if verb == "provenance" else "controls"]
    return getattr(recollect, verb)(model, posts, controls=controls, **given, **more)


def assert_alike(one, other, place=""):
    """The same JSON; numbers but for the last digits, which move with the place of a weight in memory."""
    assert type(one) is type(other), place
    if isinstance(one, dict):
        assert one.keys() == other.keys(), place
        for key in one:
            assert_alike(one[key], other[key], f"{place}.{key}")
    elif isinstance(one, list):
        assert len(one) == len(other), place
        for i, (a, b) in enumerate(zip(one, other, strict=True)):
            assert_alike(a, b, f"{place}[{i}]")
    elif isinstance(one, float):
        assert math.isclose(one, other, rel_tol=1e-4, abs_tol=1e-5), f"{place}: {one} and {other}"
    else:
        assert one == other, place


def without_names(result: dict) -> dict:
    """A result without what tells how long it took and how models were named."""
    provenance = dict(result["provenance"])
    del provenance["seconds"]
    provenance["models"] = {role: each["digest"] for role, each in provenance["models"].items()}
    return {**result, "provenance": provenance}


@pytest.mark.parametrize("verb", sorted(verb for verb, audit in list_audits_by_verb().items() if audit in AUDITS.table))
@pytest.mark.usefixtures("at_home")
def test_objects_give_the_result_that_files_of_the_same_content_give(verb, held):
    done = CliRunner().invoke(app, [verb, *ON_FILES[verb], "--work", "typed", "--workers", "1", "--json"])
    assert done.exit_code == 0, done.stderr
    called = call(verb, held, work="called").result
    assert_alike(without_names(json.loads(done.stdout)), without_names(called.model_dump(mode="json")))
    assert called.outcome_code != "failed"
    assert called.findings


def count_calls(monkeypatch, module, name) -> list[str]:
    """What a function is called with first, from now on."""
    calls, function = list[str](), getattr(module, name)

    def counted(source, *words, **options):
        calls.append(source if isinstance(source, str) else type(source).__name__)
        return function(source, *words, **options)

    monkeypatch.setattr(module, name, counted)
    return calls


@pytest.mark.usefixtures("at_home")
def test_a_session_loads_and_reads_what_is_named_once(monkeypatch):
    loads, reads = (
        count_calls(monkeypatch, *place) for place in ((loader, "load_model"), (corpus_reader, "read_corpus"))
    )
    given = {"controls": "controls.jsonl", "reference": "base"}
    with recollect.Session() as session:
        session.leakage("model", "posts.jsonl", **given)
        session.removal("model", "posts.jsonl", **given, models=0)
        session.score("model", "posts.jsonl")
    assert sorted(loads) == ["base", "model"]
    assert sorted(reads) == ["controls.jsonl", "posts.jsonl"]


def test_a_session_loads_and_reads_objects_once(held, tmp_path, monkeypatch):
    loads, reads = (count_calls(monkeypatch, sources, name) for name in ("load_model", "read_corpus"))
    given = {"controls": held["controls"], "reference": held["base"], "tokenizer": held["tokenizer"]}
    with recollect.Session(work=tmp_path) as session:
        session.leakage(held["model"], held["posts"], **given)
        session.removal(held["model"], held["posts"], **given, models=0)
        session.evaluate(held["model"], held["posts"], tokenizer=held["tokenizer"])
    assert loads == ["GPT2LMHeadModel"] * 2
    assert reads == ["DataFrame"] * 2


def test_an_object_that_is_changed_or_scored_otherwise_is_another(held):
    model, posts = copy.deepcopy(held["model"]), held["posts"].copy()
    rows = posts.to_dict("records")

    def digests(data, **options):
        plan = session.plan("removal", model, data, tokenizer=held["tokenizer"], controls=held["controls"], **options)
        return plan.models[TARGET].digest, plan.corpora[AUDITED].digest, plan.models[TARGET].question

    session = recollect.Session()
    first = digests(posts)
    assert digests(posts) == first
    assert digests(posts, window=8)[2].window == 8
    assert digests(rows)[1] == first[1]
    posts.loc[0, "text"] = "something else"
    rows.append({"user": "zoe", "text": "one more"})
    assert digests(posts)[1] != first[1]
    assert digests(rows)[1] != first[1]
    with torch.no_grad():
        next(model.parameters()).add_(1)
    assert digests(posts)[0] != first[0]


WORLD = World(members=8, others=8, controls=12)


@pytest.fixture(scope="module")
def people() -> pd.DataFrame:
    """The audited people of a synthetic world, with the truth in a column."""
    inside = {record.owner for record in WORLD.member_records}
    rows = [{"id": record.id, "user": record.user, "text": record.text} for record in WORLD.corpora[AUDITED]]
    return pd.DataFrame([{**row, "trained": row["user"] in inside} for row in rows])


def audit_people(data, **given):
    """The membership audit of a model that memorised half of the people."""
    return recollect.membership(WORLD.build_memoriser(), data, controls=WORLD.corpora[CONTROLS], by="user", **given)


def test_members_are_the_same_however_they_are_given(people, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    inside, outside = (sorted(set(people["user"][people["trained"] == known])) for known in (True, False))
    Path("in.txt").write_text("\n".join(inside), encoding="utf-8")
    Path("out.txt").write_text("\n".join(outside), encoding="utf-8")
    cohorts = build_cohorts(recollect.read_corpus(people), {"target": inside}, unit="user", seed=0)
    cohorts.save(Path("cohorts.json"))
    ways = {
        "list": {"members": inside, "others": "non-members"},
        "set": {"members": set(inside), "non_members": set(outside)},
        "series": {"members": pd.Series(inside), "non_members": tuple(outside)},
        "file": {"members": "in.txt", "non_members": Path("out.txt")},
        "column": {"members": "column:trained"},
        "cohorts.json": {"members": "cohorts.json"},
        "cohorts": {"members": Cohorts.load(Path("cohorts.json"))},
    }
    results = {way: audit_people(people, **given).result for way, given in ways.items()}
    told = {way: (result.verdict, result.outcome, result.findings) for way, result in results.items()}
    assert any(finding.name == "auc" for finding in results["list"].findings)
    assert [way for way in told if told[way] != told["list"]] == []
    with refused("unknown_member"):
        audit_people(people, members=["nobody"])


@pytest.mark.parametrize(
    ("given", "code"),
    [
        ({"nope": 1}, "unknown_argument"),
        ({"recipe": "word-lstm", "set": {"nope": 1}}, "unknown_setting"),
        ({"set": {"training.epochs": 1}}, "changes_of_no_recipe"),
        ({"alpha": "high"}, "invalid_setting"),
        ({"alpha": 3}, "out_of_range"),
        ({"by": "set"}, "invalid_setting"),
        ({"signal": "nope"}, "unknown_signal"),
        ({"window": 1}, "invalid_setting"),
        ({"text_column": 3}, "invalid_setting"),
        ({"seed": "x"}, "invalid_setting"),
        ({"work": 3}, "invalid_setting"),
        ({"out": 3}, "invalid_setting"),
        ({"canaries": 3}, "invalid_setting"),
        ({"canaries": "absent.json"}, "no_such_file"),
        ({"fail_if": 3}, "invalid_setting"),
        ({"fail_if": "often"}, "not_a_limit"),
        ({"about": 3}, "invalid_setting"),
        ({"about": {"nope": 1}}, "invalid_setting"),
        ({"members": 42}, "unsupported_source"),
        ({"members": [None]}, "no_id"),
        ({"members": []}, "empty_members"),
        ({"others": "friends"}, "invalid_setting"),
        ({"reference": 42}, "not_a_model"),
        ({"controls": 42}, "unsupported_source"),
        ({"model": 42}, "not_a_model"),
        ({"model": "absent/"}, "no_such_model"),
        ({"model": "absent/", "tokenizer": 3}, "tokenizer_not_wanted"),
        ({"corpus": 42}, "unsupported_source"),
        ({"corpus": "absent.jsonl"}, "missing_file"),
    ],
    ids=str,
)
def test_what_means_nothing_is_refused(given, code, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    usual = {"model": WORLD.build_memoriser(), "corpus": WORLD.corpora[AUDITED], "controls": WORLD.corpora[CONTROLS]}
    with refused(code):
        recollect.membership(**usual | given)


@pytest.mark.parametrize(
    "wrong",
    [
        lambda corpus: recollect.score(WORLD.build_null(), corpus, nope=1),
        lambda corpus: recollect.evaluate(WORLD.build_null(), corpus, nope=1),
        lambda corpus: recollect.plant(corpus, format=FORMAT, nope=1),
        lambda corpus: recollect.sanitise(corpus, by="duplicates", nope=1),
        lambda corpus: recollect.train("word-lstm", corpus, "model", nope=1),
    ],
)
def test_the_other_doors_refuse_arguments_that_they_do_not_know(wrong):
    with refused("unknown_argument"):
        wrong(WORLD.corpora[AUDITED])


def test_a_name_that_is_no_door_is_no_attribute():
    for place in (recollect, recollect.Session()):
        with pytest.raises(AttributeError, match="palmistry"):
            place.palmistry  # noqa: B018
    assert {*list_audits_by_verb(), "Session", "run", "load_model"} <= {*dir(recollect)}


@pytest.fixture(scope="module")
def found(people, tmp_path_factory):
    """The result of an audit on sources."""
    return audit_people(people, members="column:trained", work=tmp_path_factory.mktemp("work"))


def test_a_plan_with_objects_is_written_down_and_refused_by_run(found, tmp_path):
    found.save(tmp_path / "run")
    written = yaml.safe_load((tmp_path / "run" / "plan.yaml").read_text(encoding="utf-8"))
    given = written
    assert given["models"]["target"] == {"object": "memoriser", "digest": WORLD.build_memoriser().digest}
    assert given["corpora"]["audited"]["digest"] == found.result.provenance.corpus
    assert given["members"] == "column:trained"
    with refused("plan_with_objects"):
        recollect.run(tmp_path / "run" / "plan.yaml")
    assert CliRunner().invoke(app, ["run", str(tmp_path / "run" / "plan.yaml")]).exit_code == 2


def test_a_result_gives_findings_and_tables_and_says_what_there_is(found):
    assert found["auc"] == found.result.finding("auc")
    assert found.outcome == "found"
    assert found.verdict == found.result.verdict
    assert len(found.table("candidates").to_pandas()) == 16
    with pytest.raises(KeyError, match=r"no finding 'aux'. Did you mean 'auc'\? There are: .*auc"):
        found["aux"]
    with pytest.raises(KeyError, match=r"no table 'nope'. There are: candidates"):
        found.table("nope")
    with pytest.raises(AttributeError, match="nope"):
        found.nope  # noqa: B018


def test_a_finding_that_was_skipped_is_missing_for_a_reason(people, tmp_path):
    result = audit_people(people, fpr=(0.001,), work=tmp_path)
    skipped = next(each for each in result.skipped if each.finding)
    with pytest.raises(KeyError, match=re.escape(skipped.reason)):
        result[skipped.finding]


def test_a_result_shows_itself(found):
    assert repr(found).startswith("membership: found. ")
    assert f"AUC: {found['auc'].value:.2f} (" in repr(found)
    page = found._repr_html_()
    assert page.count("<svg") >= 2
    assert html.escape(found.verdict_text) in page
    assert "<script" not in page


def test_a_result_is_saved_and_reported(found, tmp_path):
    assert found.folder is None
    folder = found.save(tmp_path / "run")
    kept = RunFolder(folder).read_results()["membership"]
    assert kept.model_dump() == found.result.model_dump()
    assert (folder / "tables" / "membership" / "candidates.parquet").is_file()
    assert (folder / "report.html").is_file()
    for name in ("alone.html", "alone.md"):
        assert found.verdict_text[:40] in found.report(tmp_path / name).read_text(encoding="utf-8")
    assert not (tmp_path / "results").exists()
    compared = recollect.compare(folder, found)
    assert compared
