"""`score` and `evaluate` as a user would run them, on small real models."""

from __future__ import annotations

import json
import math
import stat

import numpy as np
import pytest
from typer.testing import CliRunner

from recollect.cli.app import app
from recollect.corpora import Record
from recollect.corpora.corpus_writer import write_corpus
from recollect.models.answer_store.store import AnswerStore
from recollect.testing.tiny import build_tiny_model, save_tiny

TEXTS = ["see you at noon", "поезд снова опаздывает", "电车又晚点了 🚋", "the train is late again, of course", "ok"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("asking")
    save_tiny(build_tiny_model("gpt2"), folder / "model")
    write_corpus(
        [Record(id=str(i), user=f"u{i % 3}", text=text) for i, text in enumerate(TEXTS)], folder / "posts.jsonl"
    )
    return folder


def run(folder, *words):
    return CliRunner().invoke(app, [*map(str, words), "--work", str(folder / "work")])


def test_score_keeps_answers_that_can_be_replayed(folder):
    done = run(folder, "score", folder / "model", folder / "posts.jsonl", "--json")
    assert done.exit_code == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["records"] == 5
    store = AnswerStore.open(folder / "work" / "answers" / found["store"].rsplit("/", 1)[1])
    assert sum(answers.rows for answers in store) == found["tokens"] > 0
    assert stat.S_IMODE((folder / "work").stat().st_mode) == 0o700
    again = json.loads(run(folder, "score", found["replay_as"], folder / "posts.jsonl", "--json").stdout)
    assert {**again, "seconds": 0, "store": "", "replay_as": ""} == {
        **found,
        "seconds": 0,
        "store": "",
        "replay_as": "",
    }


def test_evaluate_agrees_with_the_answers_that_score_kept(folder):
    scored = json.loads(run(folder, "score", folder / "model", folder / "posts.jsonl", "--json").stdout)
    found = json.loads(run(folder, "evaluate", folder / "model", folder / "posts.jsonl", "--json").stdout)
    assert found["perplexity"]["value"] == pytest.approx(math.exp(-scored["mean_logprob"]), rel=1e-4)
    assert found["accuracy"]["value"] == pytest.approx(scored["predicted_as_likeliest"], abs=1e-6)
    assert found["perplexity"]["n"] == {"tokens": scored["tokens"], "users": 3}
    low, high = found["perplexity"]["interval"]
    assert low <= found["perplexity"]["value"] <= high


def test_people_get_a_table(folder):
    done = run(folder, "evaluate", folder / "model", folder / "posts.jsonl")
    assert done.exit_code == 0
    assert "perplexity" in done.stdout


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (["score", "{folder}/modle", "{folder}/posts.jsonl"], "no_such_model"),
        (["score", "{folder}/model", "{folder}/post.jsonl"], "missing_file"),
        (["score", "{folder}/model", "{folder}/posts.jsonl", "--user-column", "author"], "missing_column"),
        (["score", "{folder}/model", "{folder}/posts.jsonl", "--patterns", "0"], "invalid_setting"),
        (["score", "{folder}/model", "{folder}/posts.jsonl", "--device", "tpu"], "no_such_device"),
        (["score", "{folder}/model", "{folder}/posts.jsonl", "--file-format", "docx"], "unknown_choice"),
        (["evaluate", "recorded:{folder}", "{folder}/posts.jsonl"], "no_answer_store"),
        (["score", "http://example.org/v1#m", "{folder}/posts.jsonl"], "http_to_another_machine"),
    ],
)
def test_rubbish_gets_one_clear_message_and_status_2(folder, words, code, check_refusal):
    done = run(folder, *(word.format(folder=folder) for word in words))
    check_refusal(done, code)
    assert done.stdout == ""


def test_arrays_are_scored_too(folder, tmp_path):
    from recollect.corpora import read_corpus
    from recollect.recipes.recipe_file import load_recipe
    from recollect.recipes.training.trainer import train

    rng = np.random.default_rng(0)
    np.savez(tmp_path / "digits.npz", x=rng.integers(0, 256, (40, 6, 6), dtype=np.uint8), y=np.arange(40) % 3)
    train(load_recipe("mlp", ["training.epochs=1"]), read_corpus(tmp_path / "digits.npz"), tmp_path / "mlp", threads=1)
    done = run(folder, "evaluate", tmp_path / "mlp", tmp_path / "digits.npz", "--json")
    assert done.exit_code == 0, done.stderr
    assert json.loads(done.stdout)["accuracy"]["n"] == {"tokens": 40, "users": 40}
