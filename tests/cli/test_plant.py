"""`plant` as a user would run it: files, summary, masks, the check before training, and rubbish."""

from __future__ import annotations

import json
import stat

import pytest
from typer.testing import CliRunner

from recollect.cli.app import app
from recollect.corpora import Record, read_corpus
from recollect.corpora.canaries.manifest import Canaries
from recollect.corpora.corpus_writer import write_corpus

PIN = "my pin is {digits:6}"


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_corpus([Record(id=str(i), user=f"u{i % 3}", text=f"just words {i}") for i in range(30)], tmp_path / "a.jsonl")
    (tmp_path / "table.csv").write_text("text\n" + "".join(f"row number {i}\n" for i in range(20)))
    (tmp_path / "lines.txt").write_text("".join(f"line number {i}\n" for i in range(20)))
    write_corpus(
        [Record(id=str(i), source=f"hello {i}", target=f"bonjour {i}") for i in range(9)], tmp_path / "p.jsonl"
    )
    return tmp_path


def run(*words):
    return CliRunner().invoke(app, ["plant", *map(str, words)])


@pytest.mark.parametrize("corpus", ["a.jsonl", "table.csv", "lines.txt"])
def test_the_planted_corpus_and_its_manifest_are_written_for_the_owner_only(folder, corpus):
    done = run(corpus, "--format", PIN, "--secrets", 2, "--repeat", "1,3", "--controls", 4, "--out", "new/b.jsonl")
    assert done.exit_code == 0, done.stderr
    manifest = Canaries.load(folder / "new/b.canaries.json")
    planted = read_corpus(folder / "new/b.jsonl")
    assert len(planted) == len(read_corpus(folder / corpus)) + 8
    assert [canary.planted for canary in manifest.canaries] == [1, 1, 3, 3, 0, 0, 0, 0]
    held = {record.id: record.text for record in planted}
    assert all(canary.text == held[record] for canary in manifest.planted for record in canary.records)
    for name in ("b.jsonl", "b.canaries.json"):
        assert stat.S_IMODE((folder / "new" / name).stat().st_mode) == 0o600


def test_pairs_are_planted_on_both_sides(folder):
    words = [
        "--format",
        "code {digits:4}",
        "--source-format",
        "geheim {digits:4}",
        "--secrets",
        1,
        "--out",
        "q.jsonl.gz",
    ]
    assert run("p.jsonl", *words).exit_code == 0
    (canary,) = Canaries.load(folder / "q.canaries.json").planted
    assert (canary.source, canary.text) in {(record.source, record.target) for record in read_corpus("q.jsonl.gz")}


def test_secrets_are_masked_unless_they_are_requested(folder):
    words = ["a.jsonl", "--format", PIN, "--secrets", 3, "--out", "b.jsonl"]
    assert run(*words).exit_code == 0
    texts = [canary.text for canary in Canaries.load(folder / "b.canaries.json").canaries]
    for extra in ([], ["--json"]):
        masked, shown = run(*words, *extra), run(*words, *extra, "--show-text")
        assert not any(text[-6:] in masked.stdout + masked.stderr for text in texts)
        assert all(text[-6:] in shown.stdout for text in texts[:3])


def test_the_summary_for_programs_says_what_training_would_make_of_each_secret(folder):
    words = ["--format", PIN, "--secrets", 2, "--repeat", "2", "--controls", 3, "--out", "b.jsonl", "--json"]
    check = ["--recipe", "char-lstm", "--set", "sequences.layout=records", "--set", "sequences.length=10"]
    done = run("a.jsonl", *words, *check)
    assert done.exit_code == 0, done.stderr
    found = json.loads(done.stdout)
    assert (found["space"], found["records"], found["plantings"], found["controls"]) == (10**6, 34, 4, 3)
    assert [row["secret"] for row in found["secrets"]] == ["canary-0", "canary-1"]
    nothing = {"verdict": "lost", "unknown": 0, "whole": 0, "carried": 0, "cut": 2, "lost": 0}
    assert [row["training"] for row in found["secrets"]] == [nothing] * 2
    assert "2 of 2 secrets" in done.stderr
    assert json.loads(run("a.jsonl", *words, "--recipe", "char-lstm").stdout)["unknown_controls"] == []


def test_people_get_a_table(folder):
    done = run("a.jsonl", "--format", PIN, "--out", "b.jsonl", "--secrets", 50, "--recipe", "char-lstm")
    assert done.exit_code == 0
    assert "canary-0" in done.stdout
    assert "10 more" in done.stderr


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (["--format", "no slot"], "no_slot"),
        (["--format", "pin {digts:4}"], "unknown_slot"),
        (["--format", "pin {digits:4"], "unclosed_slot"),
        (["--format", "{digits:1}"], "format_too_small"),
        (["--format", PIN, "--repeat", "1,two"], "invalid_setting"),
        (["--format", PIN, "--repeat", "0"], "out_of_range"),
        (["--format", PIN, "--secrets", "0"], "out_of_range"),
        (["--format", PIN, "--inside", "--secrets", "31"], "too_few_records"),
        (["--format", PIN, "--source-format", "x {digits:6}"], "needless_source_format"),
        (["--format", PIN, "--recipe", "char-lstn"], "no_such_recipe"),
        (["--format", PIN, "--recipe", "mlp"], "recipe_of_a_classifier"),
        (["--format", PIN, "--recipe", "seq2seq"], "record_without_pair"),
        (["--format", PIN, "--unique-prefix", "1"], "too_few_prefixes"),
        (["--format", PIN, "--out", "a.jsonl"], "output_is_input"),
        (["--format", PIN, "--out", "b.csv"], "bad_file_name"),
        (["--format", PIN, "--name", ""], "unnamed_canaries"),
    ],
)
def test_rubbish_gets_one_clear_message_and_leaves_nothing(folder, words, code, check_refusal):
    before = sorted(path.name for path in folder.iterdir())
    check_refusal(run("a.jsonl", "--out", "b.jsonl", *words), code)
    assert sorted(path.name for path in folder.iterdir()) == before


def test_a_folder_of_shards_does_not_get_one_more(folder, check_refusal):
    (folder / "shards").mkdir()
    (folder / "a.jsonl").rename(folder / "shards" / "a.jsonl")
    check_refusal(run("shards", "--format", PIN, "--out", "shards/b.jsonl"))
    assert [path.name for path in (folder / "shards").iterdir()] == ["a.jsonl"]


def test_training_knows_the_tokens_of_the_canaries(folder, check_refusal):
    from transformers import AutoTokenizer

    planted = run("a.jsonl", "--format", "№ {hex:8}", "--secrets", 1, "--out", "b.jsonl")
    assert planted.exit_code == 0
    words = ["train", "char-lstm", "b.jsonl", "--out", "model", "--canaries", "b.canaries.json"]
    quick = ["--set", "units=4", "--set", "embedding=4", "--set", "epochs=1", "--threads", "1"]
    done = CliRunner().invoke(app, [*words, *quick])
    assert done.exit_code == 0, done.stderr
    assert set("№ 0123456789abcdef") <= set(AutoTokenizer.from_pretrained("model").get_vocab())
    check_refusal(CliRunner().invoke(app, [*words[:-1], "nowhere.json", *quick]))
