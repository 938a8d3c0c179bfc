"""`sanitise` as a user would run it: files, counts by reason, and rubbish."""

from __future__ import annotations

import json
import stat

import pytest
from typer.testing import CliRunner

from recollect.cli.app import app
from recollect.corpora import Record, read_corpus
from recollect.corpora.corpus_writer import write_corpus

LINES = ["a plain line", "my pin is 123456, really", "A  plain LINE", "another line", "card 4111111111111111"]
PIN = "my pin is {digits:6}"


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_corpus([Record(id=str(i), user=f"u{i}", text=text) for i, text in enumerate(LINES)], tmp_path / "a.jsonl")
    (tmp_path / "a.csv").write_text("text\n" + "".join(f'"{line}"\n' for line in LINES))
    return tmp_path


def run(*words):
    return CliRunner().invoke(app, ["sanitise", *map(str, words)])


@pytest.mark.parametrize("corpus", ["a.jsonl", "a.csv"])
def test_by_format(folder, corpus):
    done = run(corpus, "--out", "b.jsonl", "--by", "format", "--format", PIN, "--format", "{card}", "--json")
    assert done.exit_code == 0, done.stderr
    found = json.loads(done.stdout)
    assert (found["records"], found["removed"], found["masked"]) == (5, 2, 0)
    assert found["reasons"] == {f"holds the format {PIN!r}": 1, "holds the format '{card}'": 1}
    assert [record.text for record in read_corpus("b.jsonl")] == [LINES[0], LINES[2], LINES[3]]
    assert [row["action"] for row in json.loads((folder / "b.changes.json").read_text())] == ["removed"] * 2
    for name in ("b.jsonl", "b.changes.json"):
        assert stat.S_IMODE((folder / name).stat().st_mode) == 0o600


def test_by_format_with_masks(folder):
    done = run("a.jsonl", "--out", "b.jsonl", "--by", "format", "--format", PIN, "--mask", "--json")
    assert json.loads(done.stdout)["masked"] == 1
    texts = [record.text for record in read_corpus("b.jsonl")]
    assert texts == [LINES[0], "my pin is [***], really", *LINES[2:]]


def test_by_duplicates(folder):
    done = run("a.jsonl", "--out", "b.jsonl", "--by", "duplicates", "--json")
    assert json.loads(done.stdout)["reasons"] == {"repeats an earlier record of another user": 1}
    (change,) = json.loads((folder / "b.changes.json").read_text())
    assert (change["record"], change["duplicate_of"]) == ("2", "0")


@pytest.mark.slow  # tries out which way of training two models at once is quicker, in processes of their own
def test_by_difference(folder):
    quick = ["--set", "units=4", "--set", "embedding=4", "--set", "epochs=1", "--set", "layout=records"]
    words = ["a.jsonl", "--out", "b.jsonl", "--by", "difference", "--recipe", "char-lstm", "--share", 0.2, *quick]
    done = run(*words, "--json", "--work", "work")
    assert done.exit_code == 0, done.stderr
    assert json.loads(done.stdout)["removed"] == 1
    (change,) = json.loads((folder / "b.changes.json").read_text())
    assert change["score"] > 0
    assert len(read_corpus("b.jsonl")) == 4
    again = run(*words, "--json", "--work", "work")
    assert json.loads(again.stdout) == json.loads(done.stdout)


def test_people_get_a_table_that_quotes_no_text(folder):
    done = run("a.jsonl", "--out", "b.jsonl", "--by", "format", "--format", PIN)
    assert "Of 5 records 1 were removed" in done.stdout
    assert "123456" not in done.stdout + done.stderr
    nothing = run("a.jsonl", "--out", "b.jsonl", "--by", "format", "--format", "zzz{digits:3}")
    assert "nothing was found" in nothing.stdout


def test_settings_are_refused_before_the_corpus_is_read(folder, check_refusal):
    for words, code in (
        (["--by", "format", "--format", "x{digits}"], "bad_slot_length"),
        (["--by", "duplicates", "--passage", "1"], "out_of_range"),
        (["--by", "difference", "--recipe", "char-lstm", "--share", "3"], "out_of_range"),
    ):
        check_refusal(run("absent.jsonl", "--out", "b.jsonl", *words), code)


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (["--by", "format"], "missing_format"),
        (["--by", "format", "--format", "x{digits}"], "bad_slot_length"),
        (["--by", "format", "--format", "{choice:a|e|n|r}"], "nothing_left"),
        (["--by", "format", "--format", PIN, "--passage", "3"], "setting_of_another_way"),
        (["--by", "duplicates", "--mask"], "setting_of_another_way"),
        (["--by", "duplicates", "--set", "units=3"], "setting_of_another_way"),
        (["--by", "duplicates", "--passage", "1"], "out_of_range"),
        (["--by", "difference"], "missing_recipe"),
        (["--by", "difference", "--recipe", "char-lstm", "--share", "3"], "out_of_range"),
        (["--by", "difference", "--recipe", "char-lstm", "--set", "unitz=3"], "unknown_setting"),
        (["--by", "magic"], "usage"),
        (["--by", "duplicates", "--out", "a.jsonl"], "output_is_input"),
        (["--by", "duplicates", "--out", "b.parquet"], "bad_file_name"),
    ],
)
def test_rubbish_gets_one_clear_message_and_leaves_nothing(folder, words, code, check_refusal):
    before = sorted(path.name for path in folder.iterdir())
    check_refusal(run("a.jsonl", "--out", "b.jsonl", *words), code)
    assert sorted(path.name for path in folder.iterdir()) == before
