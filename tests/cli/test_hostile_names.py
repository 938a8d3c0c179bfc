"""Names that others chose, full of escape sequences, markup and line breaks: printed, they are but letters."""

from __future__ import annotations

import json
import os
import pty
import re
import subprocess
import sys

import pytest
import typer
import yaml
from click.testing import CliRunner

from recollect.cli.app import app
from recollect.testing.tiny import build_tiny_model, save_tiny

COMMAND = typer.main.get_command(app)
HOSTILE = "a\x1b]0;owned\x07\x1b[2J\x9b31m\u202e\u2066[bold red]x[/]:skull:\x7f\r\nrecollect: all is well"
FILE = HOSTILE.replace("/", "")
MARKS = ["[bold red]", ":skull:"]
"""What Rich would swallow or replace if it took a name for markup."""


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    """Models and corpora whose names, users and settings are hostile."""
    folder = tmp_path_factory.mktemp("hostile")
    save_tiny(build_tiny_model("gpt2"), folder / "model")
    save_tiny(build_tiny_model("gpt2"), folder / FILE)
    save_tiny(build_tiny_model("gpt2"), folder / "odd")
    config = folder / "odd" / "config.json"
    config.write_text(json.dumps({**json.loads(config.read_text()), "architectures": [HOSTILE], "model_type": HOSTILE}))
    for name, people in {"mine": 6, "others": 40}.items():
        rows = [
            json.dumps({"id": f"{name}{i}{HOSTILE}", "user": f"{name}{i}{HOSTILE}", "text": f"text {name} {i}"})
            for i in range(people)
        ]
        for file in (f"{name}.jsonl", f"{name}{FILE}.jsonl"):
            (folder / file).write_text("\n".join(rows) + "\n")
    (folder / f"bad{FILE}.jsonl").write_text("{")
    (folder / "plan.yaml").write_text(yaml.safe_dump({"audits": {HOSTILE: {}}, "models": {HOSTILE: "x"}}))
    (folder / f"{FILE}.yaml").write_text("audits: [")
    return folder


@pytest.fixture
def call(home, monkeypatch):
    """Runs a command, and looks at every byte that it writes."""
    monkeypatch.chdir(home)
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    monkeypatch.setenv("COLUMNS", "4000")

    def called(*words):
        done = CliRunner().invoke(COMMAND, list(words), prog_name="recollect")
        assert done.exit_code in (0, 2), done.output
        for written in (done.stdout_bytes, done.stderr_bytes):
            assert_harmless(written)
        return done

    return called


def assert_harmless(written):
    """No byte that a terminal obeys, and no line that a name put there to pass for one of ours."""
    assert re.search(rb"[\x00-\x09\x0b-\x1f\x7f]", written) is None, written
    text = written.decode()
    assert re.search("[\x80-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]", text) is None, text
    assert "\nrecollect: all is well" not in text


@pytest.mark.parametrize(
    "words",
    [
        ["score", "model", f"mine{FILE}.jsonl"],
        ["score", "model", f"bad{FILE}.jsonl"],
        ["score", FILE, "mine.jsonl"],
        ["score", "odd", "mine.jsonl"],
        ["score", "absent" + HOSTILE, "mine.jsonl"],
        ["score", "model", "absent" + HOSTILE],
        ["score", "model", "mine.jsonl", "--file-format", HOSTILE],
        ["score", "model", "mine.jsonl", "--user-column", HOSTILE],
        ["score", "model", "mine.jsonl", "--workers", HOSTILE],
        ["score", "model", "mine.jsonl", "--" + HOSTILE],
        [HOSTILE],
        ["--" + HOSTILE],
        ["check", "plan.yaml"],
        ["check", f"{FILE}.yaml"],
        ["run", "plan.yaml", "--only", HOSTILE],
        ["membership", "model", "mine.jsonl", "--controls", "others.jsonl", "--signal", HOSTILE],
        ["sanitise", "mine.jsonl", "--format", HOSTILE, "--out", "clean.jsonl"],
        ["report", HOSTILE],
        ["evaluate", "model", f"mine{FILE}.jsonl"],
    ],
    ids=lambda words: "-".join(re.sub(r"[^a-z.-]+", "_", word)[:20] for word in words),
)
def test_hostile_names_reach_a_terminal_as_letters(words, call):
    done = call(*words)
    assert done.output


def test_markup_in_a_name_is_printed_as_it_is(call):
    told = call("evaluate", "model", f"mine{FILE}.jsonl").stdout
    assert all(mark in told for mark in MARKS)


def test_json_holds_real_names_in_escapes(call):
    words = ["membership", "model", "mine.jsonl", "--controls", "others.jsonl", "--signal", "loss", "--by", "user"]
    done = call(*words, "--json", "--out", "run", "--about", f"system={HOSTILE}")
    assert json.loads(done.stdout)["about"]["system"] == HOSTILE


def test_messages_and_warnings_of_a_real_process_are_escaped_on_a_terminal(home):
    ours, theirs = pty.openpty()
    words = [sys.executable, "-m", "recollect", "report", HOSTILE]
    done = subprocess.run(words, cwd=home, stdout=theirs, stderr=theirs, check=False, timeout=120)  # noqa: S603
    os.close(theirs)
    written = b""
    while chunk := _read(ours):
        written += chunk
    os.close(ours)
    assert done.returncode == 2
    assert b"owned" in written
    # what colours a message is the terminal's own; a pty ends lines with a carriage return
    assert_harmless(re.sub(rb"\x1b\[[0-9;]*m", b"", written.replace(b"\r\n", b"\n")))


def _read(handle):
    """More of what was written; nothing at the end, of which Linux makes an error."""
    try:
        return os.read(handle, 65536)
    except OSError:
        return b""


def test_hostile_names_in_files_of_a_run_stay_inside_it_and_markdown_has_no_markup_of_theirs(home, call):
    words = ["membership", "model", "mine.jsonl", "--controls", "others.jsonl", "--signal", "loss", "--by", "user"]
    call(*words, "--out", f"run{FILE}", "--about", f"system={HOSTILE}", "--real-names")
    run = home / f"run{FILE}"
    names = {path.relative_to(run).as_posix() for path in run.rglob("*") if path.is_file()}
    assert all(re.fullmatch(r"[a-zA-Z0-9._/-]+", name) for name in names), names
    for file in ("report.html", "report.md"):
        assert_harmless((run / file).read_bytes())
    written = json.loads((run / "results" / "membership.json").read_text())
    assert written["about"]["system"] == HOSTILE
