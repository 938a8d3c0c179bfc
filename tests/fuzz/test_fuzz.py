"""Rubbish by the thousand: 5,000 commands in this process, 200 as processes; statuses 0, 1, 2 and 130 only.

Status 1 says that a limit was exceeded, so it is never given where none was set and passed. The cases are those of
`tests/cli/test_rubbish.py` and more: model folders and run folders with bytes lost, added and changed.
"""

from __future__ import annotations

import json
import random
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

sys.path.insert(0, str(Path(__file__).parents[1] / "cli"))
from test_rubbish import COMMAND, JUNK, QUIET, VALUES, home, options_of, spoilt, torn

pytestmark = [pytest.mark.slow, pytest.mark.fuzz]
__all__ = ["home"]
STATUSES = (0, 1, 2, 130)
SEEDS = 25
"""Seeds of each kind, of 40 cases each: five kinds are 5,000 cases."""
CASES = 40
PROCESSES = 200
MORE_VALUES = [
    *VALUES,
    *("\x1b[2J", "../../x", "a" * 3000, "hf:a@b", "model+model", "http://127.0.0.1:9/v1#x"),
]


def write_plan(draw, folder):
    """A plan with something wrong; the words of a command that reads it."""
    import yaml

    text = yaml.safe_dump(spoilt(draw), allow_unicode=True)
    (folder / "plan.yaml").write_text(text if draw.random() < 0.7 else torn(draw, text))
    return [draw.choice(["check", "run"]), "plan.yaml", *(["--json"] if draw.random() < 0.2 else [])]


def choose_options(draw, folder):
    """A verb with options and values at random."""
    verb = draw.choice(sorted(set(COMMAND.list_commands(None)) - {*QUIET, "clean", "forget"}))
    words = [verb, *draw.choices(MORE_VALUES, k=draw.randint(0, 2))]
    for _ in range(draw.randint(0, 4)):
        name = draw.choice(["--nonsense", *options_of(verb)])
        words += [name] if draw.random() < 0.2 else [name, draw.choice(MORE_VALUES)]
    return [*words, "--out", "absent/model", "--set", "training.epochs=0"] if verb == "train" else words


def spoil_bytes(draw, content):
    """Bytes with some lost, added or changed."""
    found = bytearray(content)
    for _ in range(draw.randint(1, 4)):
        at = draw.randrange(len(found) + 1)
        way = draw.randrange(4)
        if way == 0:
            del found[at:]
        elif way == 1:
            del found[at : at + draw.randint(1, 9)]
        elif way == 2:
            found[at:at] = draw.randbytes(draw.randint(1, 9))
        elif found:
            found[at % len(found)] ^= 1 << draw.randrange(8)
    return bytes(found)


def write_corpus(draw, folder):
    """A corpus with something wrong, in one of the formats."""
    ending = draw.choice(["jsonl", "csv", "tsv", "txt", "parquet", "npz", "jsonl.gz", "jsonl.zst"])
    good = (folder / "mine.jsonl").read_bytes()
    (folder / f"torn.{ending}").write_bytes(spoil_bytes(draw, good) if draw.random() < 0.9 else b"")
    more = draw.choice([[], ["--skip-bad"], ["--max-record-mb", "1"], ["--split", "windows"], ["--running-text"]])
    return [draw.choice(["score", "evaluate"]), "model", f"torn.{ending}", *more]


def write_model(draw, folder):
    """A model folder with one file spoilt."""
    shutil.rmtree(folder / "spoilt", ignore_errors=True)
    shutil.copytree(folder / "model", folder / "spoilt")
    file = draw.choice(sorted(path for path in (folder / "spoilt").iterdir() if path.is_file()))
    if file.suffix == ".json" and draw.random() < 0.6:
        settings = json.loads(file.read_text())
        settings[draw.choice(sorted(settings))] = draw.choice([*JUNK, 10**12, 10**9, -(10**9)])
        file.write_text(json.dumps(settings))
    elif draw.random() < 0.1:
        file.unlink()
    else:
        file.write_bytes(spoil_bytes(draw, file.read_bytes()))
    return ["score", "spoilt", "mine.jsonl"]


def write_run(draw, folder):
    """A run folder with one file spoilt."""
    shutil.rmtree(folder / "spoilt-run", ignore_errors=True)
    shutil.copytree(folder / "run", folder / "spoilt-run")
    file = draw.choice(sorted(path for path in (folder / "spoilt-run").rglob("*") if path.is_file()))
    file.write_bytes(spoil_bytes(draw, file.read_bytes()))
    return draw.choice([["report", "spoilt-run"], ["compare", "run", "spoilt-run"], ["compare", "spoilt-run", "run"]])


KINDS = {"plans": write_plan, "options": choose_options, "corpora": write_corpus, "models": write_model}
KINDS["runs"] = write_run


def sets_a_limit(words, folder):
    """Whether a command sets a limit, itself or by its plan."""
    plan = folder / "plan.yaml"
    return "--fail-if" in words or "good.yaml" in words or ("plan.yaml" in words and "limits" in plan.read_text())


def check(status, told, words, folder):
    """What holds for every end of every command."""
    assert status in STATUSES, told
    assert "Traceback" not in told, told
    assert "\x1b" not in told.replace("\x1b[0m", ""), told
    if status == 1:
        assert sets_a_limit(words, folder), told
        assert "limit" in told, told


@pytest.mark.parametrize("seed", range(SEEDS))
@pytest.mark.parametrize("kind", KINDS)
def test_rubbish_in_this_process(kind, seed, home, monkeypatch):
    monkeypatch.chdir(home)
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    draw = random.Random(f"{kind} {seed}")
    for _ in range(CASES):
        words = KINDS[kind](draw, home)
        done = CliRunner().invoke(COMMAND, words, prog_name="recollect")
        told = f"{words} ended with {done.exit_code}: {done.output} {done.exception!r}"
        assert done.exception is None or isinstance(done.exception, SystemExit), told
        check(done.exit_code, told, words, home)


@pytest.mark.parametrize("number", range(PROCESSES))
def test_rubbish_as_a_process(number, home):
    draw = random.Random(f"process {number}")
    words = KINDS[draw.choice(sorted(KINDS))](draw, home)
    command = [sys.executable, "-m", "recollect", *words]
    environment = {"HF_HUB_OFFLINE": "1"}
    import os

    done = subprocess.run(  # noqa: S603
        [word.replace("\x00", "") for word in command],
        cwd=home,
        env={**os.environ, **environment},
        capture_output=True,
        timeout=300,
        check=False,
    )
    told = f"{words} ended with {done.returncode}: {done.stdout.decode()} {done.stderr.decode()}"
    check(done.returncode, told, words, home)
