"""`recollect leakage` as a user types it."""

import json

import pytest
from typer.testing import CliRunner

from recollect.cli.app import app
from recollect.testing.tiny import build_tiny_model, save_tiny

TEXTS = ["the quick fox jumps over the lazy dog", "the lazy dog jumps over the quick fox again", "again and again"]


def call(*words):
    return CliRunner(env={"COLUMNS": "200"}).invoke(app, [str(word) for word in words])


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    made = tmp_path_factory.mktemp("leakage")
    save_tiny(build_tiny_model("gpt2"), made / "model")
    rows = [{"id": str(i), "user": f"u{i % 4}", "text": f"{text} {i}"} for i, text in enumerate(TEXTS * 3)]
    (made / "train.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return made


def test_sequences_are_counted_and_kept_without_any_reference(folder, tmp_path):
    found = call(
        *("leakage", folder / "model", folder / "train.jsonl", "--top-k", 100, "--work", tmp_path / "work"),
        *("--out", tmp_path / "run"),
    )
    assert found.exit_code == 0, found.output
    kept = json.loads((tmp_path / "run" / "results" / "leakage.json").read_text())
    assert {each["finding"] for each in kept["skipped"]} == {"leakage_epsilon", "flagged_users"}
    assert (tmp_path / "run" / "tables" / "leakage" / "sequences.parquet").exists()


def test_the_target_is_refused_as_its_own_reference(folder, tmp_path, check_refusal):
    words = ("leakage", folder / "model", folder / "train.jsonl", "--work", tmp_path / "work")
    found = call(*words, "--reference", folder / "model")
    check_refusal(found)
    assert "the target itself" in found.stderr


def test_a_reference_that_predicts_the_same_gives_an_epsilon_of_zero(folder, tmp_path):
    save_tiny(build_tiny_model("gpt2"), tmp_path / "base")
    configuration = tmp_path / "base" / "config.json"  # no prediction depends on what is changed in it
    configuration.write_text(json.dumps({**json.loads(configuration.read_text()), "summary_type": "mean"}))
    found = call(
        *("leakage", folder / "model", folder / "train.jsonl", "--top-k", 1000, "--work", tmp_path / "work", "--json"),
        *("--reference", tmp_path / "base"),
    )
    assert found.exit_code == 0, found.output
    values = {each["name"]: each["value"] for each in json.loads(found.stdout)["findings"]}
    assert values["unique_sequences"] > 0
    assert values["leakage_epsilon"] == 0


def test_help_says_what_is_compared_and_shows_a_command():
    told = call("leakage", "--help").output
    for word in ("--controls", "--removable", "--folds", "recollect leakage my-model train.jsonl"):
        assert word in told


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (["--alpha", "2"], "out_of_range"),
        (["--folds", "2"], "too_few_folds"),
        (["--removable", "0.9"], "removable_out_of_range"),
        (["--deniable-at", "-1"], "out_of_range"),
        (["--set", "epochs=1"], "changes_of_no_recipe"),
        (["--recipe", "word-gruu"], "no_such_recipe"),
        (["--recipe", "word-gru", "--folds", "8"], "fewer_users_than_folds"),
    ],
)
def test_rubbish_is_refused_in_one_message(folder, tmp_path, words, code, check_refusal):
    found = call(
        "leakage", folder / "model", folder / "train.jsonl", "--work", tmp_path / "work", "--top-k", 200, *words
    )
    check_refusal(found, code)


def test_a_corpus_without_users_is_reported(folder, tmp_path):
    (tmp_path / "plain.txt").write_text("\n".join(TEXTS))
    found = call("leakage", folder / "model", tmp_path / "plain.txt", "--work", tmp_path / "work")
    assert found.exit_code == 0, found.output
    assert "every record counts as a user of its own" in found.output + found.stderr
