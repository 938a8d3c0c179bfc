"""`recollect run`, really killed at twenty random moments: run again, it ends with the same results."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from recollect.corpora import synthetic
from recollect.corpora.corpus_writer import write_corpus
from recollect.recipes.recipe_file import load_recipe
from recollect.recipes.training.trainer import train

SMALL = {"units": 12, "embedding": 8, "dropout": 0.0, "epochs": 6, "batch_size": 8, "tokenizer.size": 200}
PLAN = f"""\
models: {{target: model}}
corpora: {{audited: mine.jsonl, controls: others.jsonl}}
recipe: {{recipe: word-lstm, set: {json.dumps(SMALL)}}}
audits:
  provenance: {{shadows: 2, calibration: 0.5}}
  membership: {{signal: ratio, by: user, fpr: [0.1]}}
  leakage: {{folds: 3, top_k: 5}}
workers: 1
threads: 1
"""
KILLER = '''
"""Runs a plan in processes of its own, which have all that is slow to import, and kills some of them."""
import os, random, shutil, signal, sys, time
from pathlib import Path

import recollect.cli.app, recollect.pipeline.run, recollect.report.report_writer, recollect.recipes.training.trainer
import recollect.results.comparison, recollect.models.loading.local_models
from recollect.audits.registry import AUDITS

for audit in AUDITS.names:
    AUDITS.load(audit)

home, kills = Path(sys.argv[1]), int(sys.argv[2])

def started(name):
    child = os.fork()
    if child:
        return child
    sys.argv = ["recollect", "run", str(home / f"{name}.yaml"), "--out", str(home / f"{name}-run")]
    recollect.cli.app.app(prog_name="recollect")
    os._exit(0)

def planned(name):
    text = (home / "plan.yaml").read_text() + f"work: {name}-work\\n"
    (home / f"{name}.yaml").write_text(text)

def ended(name):
    _, status = os.waitpid(started(name), 0)
    assert os.waitstatus_to_exitcode(status) == 0, (name, status)

planned("whole")
began = time.monotonic()
ended("whole")
took, draw, number = time.monotonic() - began, random.Random(0), 0
while number < kills:
    name, moment = f"killed-{number}", draw.uniform(0, took)
    planned(name)
    child = started(name)
    time.sleep(moment)
    if os.waitpid(child, os.WNOHANG)[0] == child:
        took = moment  # it was faster than the first: another moment is drawn
        shutil.rmtree(home / f"{name}-run")
    else:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        there = len(list((home / f"{name}-work").rglob("*"))), len(list((home / f"{name}-run").rglob("*.json")))
        print(f"{name}: killed after {moment:.1f} of {took:.1f} s, files kept: {there}", flush=True)
        ended(name)
        number += 1
    shutil.rmtree(home / f"{name}-work", ignore_errors=True)
'''


def told(run):
    """All results and tables of a run but for how long they took."""
    found = {path.name: path.read_bytes() for path in (run / "tables").rglob("*.parquet")}
    for path in (run / "results").iterdir():
        result = json.loads(path.read_text())
        result["provenance"]["seconds"] = 0
        found[path.name] = result
    return found


@pytest.mark.slow
def test_a_run_that_was_killed_at_any_moment_ends_with_the_same_results(tmp_path, record_property):
    people = synthetic.make_texts(people=72, per_person=4, seed=3)
    users = [f"person-{i}" for i in range(72)]
    write_corpus(people.select_users(users[:16]), tmp_path / "mine.jsonl")
    write_corpus(people.select_users(users[16:]), tmp_path / "others.jsonl")
    train(load_recipe("word-lstm", SMALL), people.select_users(users[:8]), tmp_path / "model", threads=1)
    (tmp_path / "plan.yaml").write_text(PLAN)
    words = [sys.executable, "-c", KILLER, str(tmp_path), "20"]
    done = subprocess.run(words, check=False, capture_output=True, text=True)  # noqa: S603 - our own code
    assert done.returncode == 0, done.stderr[-3000:]
    lines = [line for line in done.stdout.splitlines() if line.startswith("killed-")]
    record_property("kills", lines)
    print("\n".join(lines))  # noqa: T201 - shown by `pytest -s`
    whole = told(tmp_path / "whole-run")
    assert {"provenance.json", "membership.json", "leakage.json"} < set(whole)
    for number in range(20):
        assert told(tmp_path / f"killed-{number}-run") == whole, lines[number]
    assert len(lines) == 20
    assert any("kept: (0," not in line for line in lines)
