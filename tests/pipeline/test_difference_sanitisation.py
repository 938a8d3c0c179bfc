"""Sanitising by difference: what only one half knows goes first, and a second call trains nothing anew."""

from __future__ import annotations

import math

import numpy as np
import pytest

from recollect.corpora import Corpus, Record
from recollect.corpora.canaries.insertion import CanarySettings, plant
from recollect.errors import NotEnoughData, PlanError
from recollect.models import load_model
from recollect.pipeline.difference_sanitisation import DifferenceSanitiser
from recollect.recipes.layout_trial import WorkerLayout
from recollect.recipes.recipe_file import load_recipe

ONE = WorkerLayout(workers=1, threads=1)
QUICK = ["units=48", "embedding=16", "training.epochs=60", "learning_rate=0.01", "sequences.layout=records"]
SMALL = [*QUICK, "training.batch_size=8"]
SAYINGS = ["the early bird gets the worm", "all that glitters is not gold", "a stitch in time saves nine"]


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    """A corpus in which sayings are in both halves and each secret in one, and the work folder of two models."""
    sayings = Corpus.of(Record(id=f"r{i}", text=SAYINGS[i % 3]) for i in range(60))
    planted, canaries = plant(sayings, CanarySettings(format="my pin is {digits:6}", secrets=4, controls=0))
    return Corpus.of(planted, name="sayings"), canaries, tmp_path_factory.mktemp("work")


def way(**settings):
    return DifferenceSanitiser(recipe=load_recipe("char-lstm", SMALL), **settings)


@pytest.mark.parametrize("per", ["record", "token"])
def test_secrets_have_the_largest_differences_and_are_what_goes(world, per):
    corpus, canaries, work = world
    clean = way(share=4 / 64, per=per)(corpus, work, layout=ONE)
    held = {record for canary in canaries.planted for record in canary.records}
    assert {change.record for change in clean.changes} == held
    assert all(change.score > 1e-3 for change in clean.changes)
    assert len(list(clean.corpus)) == 60


def test_differences_are_those_of_the_two_models_asked_one_by_one(world):
    corpus, _, work = world
    found = way(per="record").compute_differences(corpus, work, layout=ONE)
    models = [load_model(str(folder)) for folder in (work / "models").iterdir()]
    assert len(models) == 2
    for record in list(corpus)[:12]:
        first, second = (-float(np.sum(model.answer([record]).logprob)) / math.log(2) for model in models)
        assert found[record.id] == pytest.approx(abs(first - second), abs=1e-3)


def test_called_again_it_trains_and_asks_nothing(world):
    corpus, _, work = world
    way()(corpus, work, layout=ONE)
    before = {path: path.stat().st_mtime_ns for path in work.rglob("*") if path.suffix in {".safetensors", ".parquet"}}
    tasks = []
    way()(corpus, work, layout=ONE, progress=lambda task, done, total: tasks.append((task, done, total)))
    after = {path: path.stat().st_mtime_ns for path in work.rglob("*") if path.suffix in {".safetensors", ".parquet"}}
    assert before == after
    assert all(done == total for _, done, total in tasks)


def test_the_texts_of_one_user_stay_in_one_half(tmp_path):
    corpus = Corpus.of(Record(id=f"r{i}", user=f"u{i % 4}", text=SAYINGS[i % 3]) for i in range(12))
    DifferenceSanitiser(recipe=load_recipe("char-lstm", [*SMALL, "epochs=1"]))(corpus, tmp_path, layout=ONE)
    from recollect.files import read_json

    halves = [set(read_json(path)) for path in (tmp_path / "models").glob("*/members.json")]
    assert halves[0] | halves[1] == {"u0", "u1", "u2", "u3"}
    assert len(halves[0]) == len(halves[1]) == 2


def test_both_models_know_the_tokens_of_both_halves(tmp_path):
    corpus = Corpus.of(Record(id=f"r{i}", text=chr(97 + i) * 5) for i in range(10))
    DifferenceSanitiser(recipe=load_recipe("char-lstm", [*SMALL, "epochs=1"]))(corpus, tmp_path, layout=ONE)
    for folder in (tmp_path / "models").iterdir():
        assert all(load_model(str(folder)).answer([record]).known.all() for record in corpus)


def test_rubbish_is_refused_before_anything_is_trained(tmp_path):
    for settings in ({"share": 0}, {"share": 1.5}, {"per": "word"}):
        with pytest.raises(PlanError):
            way(**settings)
    with pytest.raises(NotEnoughData, match="halves"):
        way()(Corpus.of([Record(id="1", user="ann", text="alone")]), tmp_path, layout=ONE)
    assert list(tmp_path.iterdir()) == []
