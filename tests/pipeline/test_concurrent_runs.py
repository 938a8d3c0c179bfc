"""Several runs of one plan at once: each model is trained once, and all end with the same numbers."""

from __future__ import annotations

import json
import threading
from types import SimpleNamespace

import pytest

from recollect.corpora import synthetic
from recollect.corpora.corpus_writer import write_corpus
from recollect.files import locks
from recollect.recipes.recipe_file import load_recipe
from recollect.recipes.training import trainer
from recollect.session import Session

SMALL = {"units": 8, "embedding": 8, "dropout": 0.0, "epochs": 2, "batch_size": 8, "tokenizer.size": 100}
PLAN = f"""\
models: {{target: model}}
corpora: {{audited: mine.jsonl, controls: others.jsonl}}
recipe: {{recipe: word-lstm, set: {json.dumps(SMALL)}}}
audits:
  leakage: {{folds: 3, top_k: 3}}
  membership: {{signal: ratio, by: user, fpr: [0.1]}}
work: work
workers: 1
threads: 1
"""


def run_together(*works):
    """What each of these gives, all begun at once."""
    given = [None] * len(works)

    def call(number):
        try:
            given[number] = works[number]()
        except BaseException as error:
            given[number] = error

    threads = [threading.Thread(target=call, args=(number,)) for number in range(len(works))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return given


@pytest.fixture
def said(monkeypatch):
    """What is said of waiting; catching warnings is nothing for threads."""
    messages = []
    recorder = SimpleNamespace(warn=lambda message, *_, **__: messages.append(message))
    monkeypatch.setattr(locks, "warnings", recorder)
    return messages


@pytest.fixture
def home(tmp_path):
    people = synthetic.make_texts(people=30, per_person=4, seed=0)
    users = sorted({record.user for record in people})
    for name, chosen in (("mine", users[:15]), ("others", users[15:])):
        write_corpus(people.select_users(chosen), tmp_path / f"{name}.jsonl")
    trainer.train(load_recipe("word-lstm", SMALL), people.select_users(users[:15]), tmp_path / "model", threads=1)
    (tmp_path / "plan.yaml").write_text(PLAN)
    return tmp_path


@pytest.fixture
def trained(monkeypatch):
    """The folders of all trainings that are really done."""
    done, run_loop = [], trainer._run_loop

    def counted(job, out, *rest):
        done.append(out)
        return run_loop(job, out, *rest)

    monkeypatch.setattr(trainer, "_run_loop", counted)
    return done


def test_of_two_trainings_into_one_folder_the_second_waits_and_uses_what_the_first_made(tmp_path, trained, said):
    corpus = synthetic.make_texts(people=10, per_person=4, seed=0)

    def train():
        return trainer.train(load_recipe("word-lstm", SMALL), corpus, tmp_path / "model", threads=1)

    given = run_together(train, train)
    assert given == [tmp_path / "model"] * 2
    assert len(trained) == 1
    assert len(said) == 1
    assert "Another run is training a model in" in said[0]
    assert not list((tmp_path / "model").glob(".*"))


@pytest.mark.slow
@pytest.mark.parametrize(("runs", "apart"), [(2, True), (4, False)])
def test_runs_of_one_plan_at_once_all_end_with_the_same_numbers(home, trained, said, runs, apart):
    def run(number):
        out = home / (f"run-{number}" if apart else "run")
        return lambda: Session().run(home / "plan.yaml", out=out)

    given = run_together(*map(run, range(runs)))
    assert all(isinstance(each, list) for each in given), given
    assert said
    results = [
        [one.result.replace(provenance=one.result.provenance.model_copy(update={"seconds": 0})) for one in each]
        for each in given
    ]
    assert all(each == results[0] for each in results)
    assert not any(one.failed for one in results[0])
    assert len(trained) == len(set(trained)) >= 2
    assert not list(home.rglob(".*.part"))
    for folder in home.glob("run*"):
        assert (folder / "report.html").exists()
        assert not (folder / ".lock").exists()
