"""What nobody foresaw ends with status 2, one message and a file, and stops no other audit."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from recollect.cli.app import app
from recollect.corpora import synthetic
from recollect.testing.tiny import build_tiny_model, save_tiny

PRIVATE = "the PIN of Ada is 4711"
FAULTY = f'''
"""A model whose code fails as models of strangers do."""
from recollect.testing.fakes import Null


class Panic(BaseException):
    """What native libraries raise is no Exception."""


class Broken(Null):
    fault = None

    def answer(self, records):
        raise self.fault


def make(fault):
    return lambda: type("Broken", (Broken,), {{"fault": fault}})()


value, panic, memory = make(ValueError("{PRIVATE}")), make(Panic("{PRIVATE}")), make(MemoryError("{PRIVATE}"))
exits, recursion = make(SystemExit(1)), make(RecursionError("{PRIVATE}"))


def loading():
    raise Panic("{PRIVATE}")
'''
PLAN = """\
models: {target: gpt2}
corpora:
  audited: {corpus: mine.jsonl, user_column: author}
  controls: {corpus: others.jsonl, user_column: author}
workers: 1
threads: 1
audits:
  membership: {signal: loss, fpr: [0.1], by: user, with: {models: {target: FAULTY}}}
  leakage: {top_k: 3}
"""


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    folder = tmp_path_factory.mktemp("unforeseen")
    (folder / "faulty_models.py").write_text(FAULTY)
    save_tiny(build_tiny_model("gpt2"), folder / "gpt2")
    people = synthetic.make_texts(people=40, per_person=3, seed=0)
    users = sorted({record.user for record in people})
    for name, chosen in (("mine", users[:12]), ("others", users[12:])):
        lines = [{"id": r.id, "author": r.user, "text": r.text[:60]} for r in people if r.user in chosen]
        (folder / f"{name}.jsonl").write_text("\n".join(map(json.dumps, lines)))
    return folder


@pytest.fixture
def call(home, monkeypatch):
    monkeypatch.chdir(home)
    monkeypatch.syspath_prepend(str(home))

    def called(*words):
        return CliRunner().invoke(app, [str(word) for word in words])

    return called


def find_traceback(message):
    """The file that a message names."""
    (path,) = re.findall(r"The traceback is in '(.+?)'", message)
    return path


@pytest.mark.parametrize("fault", ["value", "panic", "memory", "exits", "recursion", "loading"])
def test_an_error_that_nobody_foresaw_is_one_message_and_a_file_that_only_its_owner_reads(
    call, check_refusal, fault, tmp_path
):
    found = call("score", f"python:faulty_models:{fault}", "mine.jsonl", "--work", tmp_path, "--user-column", "author")
    check_refusal(found)
    assert PRIVATE not in found.output
    path = find_traceback(found.stderr)
    assert Path(path).stat().st_mode & 0o777 == 0o600
    text = Path(path).read_text()
    assert "Traceback" in text
    assert fault == "exits" or PRIVATE in text


@pytest.mark.parametrize("fault", ["value", "panic", "loading"])
def test_an_audit_that_fails_unforeseen_stops_no_other_and_stands_as_failed(call, home, fault, tmp_path):
    plan = home / f"{fault}.yaml"
    plan.write_text(PLAN.replace("FAULTY", f"'python:faulty_models:{fault}'") + f"work: {tmp_path / 'work'}\n")
    found = call("run", plan, "--out", tmp_path / "run", "--json")
    assert found.exit_code == 2, found.output
    membership, leakage = json.loads(found.stdout)
    assert membership["outcome_code"] == "failed"
    assert [failed["audit"] for failed in membership["failed"]] == ["membership"]
    assert leakage["findings"]
    assert PRIVATE not in found.output
    assert PRIVATE in Path(find_traceback(membership["failed"][0]["error"])).read_text()
    page = (tmp_path / "run" / "report.html").read_text()
    assert "nobody foresaw" in page
    assert PRIVATE not in page
    saved = json.loads((tmp_path / "run" / "results" / "membership.json").read_text())
    assert saved["failed"] == membership["failed"]


def test_a_check_of_a_plan_says_of_each_audit_why_it_cannot_be_run(call, home, check_refusal):
    (home / "check.yaml").write_text(PLAN.replace("FAULTY", "'python:faulty_models:loading'"))
    found = call("check", home / "check.yaml")
    check_refusal(found)
    assert "leakage" in found.stdout


@pytest.mark.parametrize("family", ["gpt2", "bert", "t5"])
def test_weights_that_are_not_numbers_are_named(call, check_refusal, family, tmp_path):
    import torch

    model = build_tiny_model(family)
    name, weights = next(iter(model.network.named_parameters()))
    with torch.no_grad():
        weights[3] = float("nan")
    save_tiny(model, tmp_path / "nan")
    found = call("score", tmp_path / "nan", "mine.jsonl", "--work", tmp_path / "work")
    check_refusal(found, "weights_not_a_number")
    assert name.split(".")[-2] in found.stderr


def run_outside(home, redirection, *words, **environment):
    """The status and what was said by a command as a shell runs it."""
    line = f'"$0" -m recollect "$@" {redirection}'
    return subprocess.run(  # noqa: S603 - our own words
        ["/bin/bash", "-c", line, sys.executable, *words],
        capture_output=True,
        text=True,
        check=False,
        cwd=home,
        env={**os.environ, **environment},
    )


ASCII = {"PYTHONIOENCODING": "ascii", "PYTHONUTF8": "0", "LC_ALL": "C"}


def test_streams_that_are_closed_or_know_only_ascii_do_not_change_the_status(home):
    assert run_outside(home, "", "list", **ASCII).returncode == 0
    assert run_outside(home, ">&- 2>&-", "list").returncode == 0
    refused = run_outside(home, "", "check", "no/such/plän.yaml", **ASCII)
    assert (refused.returncode, "Traceback" in refused.stderr) == (2, False), refused.stderr
    assert run_outside(home, "2>&-", "check", "no/such/plan.yaml").returncode == 2


def test_output_that_cannot_be_delivered_is_no_limit_that_was_passed(home):
    full = run_outside(home, ">/dev/full", "list")
    assert (full.returncode, "Traceback" in full.stderr) == (2, False), full.stderr
    for words in (["list"], ["list", "--json"], ["check", "--help"]):
        nobody = run_outside(home, "| true; exit ${PIPESTATUS[0]}", *words)
        assert nobody.returncode in (0, 2), nobody.stderr
        assert "Traceback" not in nobody.stderr
