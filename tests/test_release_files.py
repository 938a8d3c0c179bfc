"""What others use of the repository: the action, the workflows, the image, the version."""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
import yaml

from recollect.version import __version__

ROOT = Path(__file__).resolve().parents[1]
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))


def load_steps():
    spec = importlib.util.spec_from_file_location("action_steps", ROOT / ".ci" / "action_steps.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.run_action


@pytest.fixture
def fake(tmp_path, monkeypatch):
    """Puts a `recollect` into the path that writes what it was called with and ends with a status."""

    def made(status):
        program = tmp_path / "bin" / "recollect"
        program.parent.mkdir(exist_ok=True)
        program.write_text(
            f'#!/bin/sh\nprintf "%s\\n" "$@" > {tmp_path}/words\nmkdir -p "$4"\n'
            f'echo "# Report" > "$4/report.md"\nexit {status}\n'
        )
        program.chmod(0o755)
        monkeypatch.setenv("PATH", f"{program.parent}:{os.environ['PATH']}")
        return tmp_path / "words"

    return made


@pytest.mark.parametrize(
    ("status", "fail_on", "ends"), [(0, "limit", 0), (1, "limit", 1), (2, "limit", 2), (1, "never", 0)]
)
def test_the_action_passes_the_plan_on_and_ends_as_it_should(fake, tmp_path, monkeypatch, status, fail_on, ends):
    words = fake(status)
    monkeypatch.chdir(tmp_path)
    given = {"plan": "my plan.yaml", "requirement": "", "out": "run", "fail-on": fail_on, "set": "seed=1\nwork=a b"}
    ended, outputs, summary = load_steps()(given)
    assert (ended, outputs) == (ends, {"status": str(status), "report": "run/report.html"})
    assert summary == "# Report\n"
    assert words.read_text().splitlines() == [
        *("run", "my plan.yaml", "--out", "run", "--junit", "run-junit.xml", "--set", "seed=1", "--set", "work=a b")
    ]


def test_an_input_that_is_missing_or_unknown_is_refused():
    for given in ({}, {"plan": "x", "colour": "red"}):
        with pytest.raises(SystemExit, match="input"):
            load_steps()(given)


@pytest.mark.slow
def test_the_action_runs_a_real_plan_and_reports_an_exceeded_limit(tmp_path, monkeypatch):
    from recollect.corpora.canaries.insertion import CanarySettings, plant
    from recollect.corpora.corpus import Corpus
    from recollect.corpora.record import Record
    from recollect.testing.tiny import build_tiny_model, save_tiny

    save_tiny(build_tiny_model("gpt2"), tmp_path / "model")
    _, canaries = plant(
        Corpus.of([Record(id="0", text="the lazy dog")]), CanarySettings(format="a {digits:2}", secrets=2, controls=9)
    )
    canaries.save(tmp_path / "canaries.json")
    plan = {
        "models": {"target": "model"},
        "audits": {"exposure": {"draws": 100, "with": {"files": {"canaries": "canaries.json"}}}},
        "limits": {"exposure": ["highest_exposure_bits>0"]},
    }
    (tmp_path / "plan.yaml").write_text(yaml.safe_dump(plan))
    (tmp_path / "bin").mkdir()
    program = tmp_path / "bin" / "recollect"
    program.write_text(f'#!/bin/sh\nexec {sys.executable} -m recollect "$@"\n')
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}:{os.environ['PATH']}")
    monkeypatch.chdir(tmp_path)
    status, outputs, summary = load_steps()({"plan": "plan.yaml", "requirement": "", "out": "run"})
    assert (status, outputs["status"]) == (1, "1")
    assert Path(outputs["report"]).exists()
    assert "What this model remembers" in summary
    assert "failure" in Path("run-junit.xml").read_text()


def test_workflows_are_yaml_and_run_what_exists():
    assert {path.stem for path in WORKFLOWS} == {"checks", "docs", "memorisation", "nightly"}
    for path in WORKFLOWS:
        jobs = yaml.safe_load(path.read_text())["jobs"]
        commands = [step.get("run", "") for job in jobs.values() for step in job["steps"]]
        targets = {target for command in commands for target in re.findall(r"make ([a-z-]+)", command)}
        known = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
        assert targets <= known, path
        scripts = {word for command in commands for word in re.findall(r"\.ci/\S+", command)}
        assert all((ROOT / script).exists() for script in scripts), path
        local = [
            step["uses"] for job in jobs.values() for step in job["steps"] if step.get("uses", "").startswith("./")
        ]
        assert all((ROOT / each / "action.yml").exists() for each in local)


def test_the_tests_run_on_every_python_that_is_promised():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    promised = [each.rpartition(" ")[2] for each in project["classifiers"] if re.search(r":: 3\.\d+$", each)]
    checks = yaml.safe_load((ROOT / ".github/workflows/checks.yml").read_text())
    assert checks["jobs"]["tests"]["strategy"]["matrix"]["python"] == promised


def test_the_version_is_the_same_everywhere():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    assert project["version"] == citation["version"] == __version__
    assert f"## {__version__}" in (ROOT / "CHANGELOG.md").read_text()


def test_the_image_is_of_nobody_with_rights_and_takes_the_constraints():
    lines = (ROOT / "Dockerfile").read_text()
    assert re.search(r"^USER 1000$", lines, re.MULTILINE)
    assert "--constraint constraints.txt" in lines
    if (linter := shutil.which("hadolint")) is not None:
        done = subprocess.run([linter, str(ROOT / "Dockerfile")], capture_output=True, text=True, check=False)  # noqa: S603 - our own
        assert done.returncode == 0, done.stdout


@pytest.mark.parametrize("extra", ["private", "peft", "ray"])
def test_every_extra_that_an_error_names_exists(extra):
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert extra in project["optional-dependencies"]
    named = {
        name
        for path in (ROOT / "src").rglob("*.py")
        for name in re.findall(r"pip install 'recollect\[([a-z]+)\]'", path.read_text(encoding="utf-8"))
    }
    assert extra in named
    assert named <= {*project["optional-dependencies"]}


def test_without_opacus_private_training_says_what_to_install():
    code = (
        "import importlib.util as u; find = u.find_spec\n"
        "u.find_spec = lambda name, package=None: None if name == 'opacus' else find(name, package)\n"
        "import recollect.recipes.private"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)  # noqa: S603 - our own
    assert "pip install 'recollect[private]'" in done.stderr
