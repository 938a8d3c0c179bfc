"""Every command of every example runs as it is in its README, and ends with the status that is there."""

from __future__ import annotations

import json
import re
import runpy
import shlex
import shutil
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from recollect.cli.app import app

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
NAMES = sorted(folder.name for folder in EXAMPLES.iterdir() if (folder / "plan.yaml").is_file())
BLOCK = re.compile(r"^```bash\n(.*?)^```", re.MULTILINE | re.DOTALL)
OUTCOMES = {
    "before-shipping/plan-run": {"exposure": "found", "leakage": "found", "membership": "found"},
    "data-subject/plan-run": {"provenance": "found"},
    "clinical-notes/plan-run": {"membership": "found"},
    "deletion-request/plan-run": {"removal": "not_found"},
    "deletion-request/before-run": {"removal": "found"},
    "private-or-not/plain-run": {"exposure": "found", "leakage": "found"},
    "private-or-not/private-run": {"exposure": "not_found", "leakage": "not_found"},
}
"""What is true, because it is known what each model learnt."""

QUICKER = {
    "clinical-notes": {
        "masked.yaml": ("epochs: 30", "epochs: 20"),
        "plan.yaml": ("patterns: 10", "patterns: 5"),
    },
    "private-or-not": {
        "plan.yaml": ("draws: 500", "draws: 500\n    method: sampled"),
        "README.md": ("--dp-epsilon 2", "--dp-epsilon 2 --set privacy.accountant=rdp"),
    },
}
"""What is written otherwise in the two longest examples, so that they find the same in half the time."""
AS_THEY_STAND = [pytest.param(name, False, marks=[pytest.mark.slow] * (name in QUICKER), id=name) for name in NAMES]


def commands(readme):
    """The commands of an example, each with the status that it is said to end with."""
    for line in BLOCK.search(readme.read_text())[1].splitlines():
        words = shlex.split(line, comments=True)
        said = re.search(r"# exit status (\d)", line)
        yield words, int(said[1]) if said else 0


def ended(words, monkeypatch):
    """The status that a command ends with, and what it said."""
    if words[0] == "python":
        monkeypatch.setattr(sys, "argv", words[1:])
        runpy.run_path(words[1], run_name="__main__")
        return 0, ""
    assert words[0] == "recollect"
    done = CliRunner().invoke(app, words[1:])
    return done.exit_code, done.output


@pytest.mark.usefixtures("counted_once")
@pytest.mark.parametrize(
    ("name", "quicker"), [*AS_THEY_STAND, *(pytest.param(name, True, id=f"{name}-quicker") for name in QUICKER)]
)
def test_an_example_runs_and_finds_what_is_true(name, quicker, tmp_path, monkeypatch):
    shutil.copytree(EXAMPLES, tmp_path / "examples")
    monkeypatch.chdir(tmp_path / "examples" / name)
    for file, (written, instead) in QUICKER[name].items() if quicker else ():
        text = Path(file).read_text()
        assert text.count(written) == 1
        Path(file).write_text(text.replace(written, instead))
    for words, status in commands(Path("README.md")):
        found, said = ended(words, monkeypatch)
        assert found == status, said
    runs = [place.partition("/")[2] for place in OUTCOMES if place.startswith(f"{name}/")]
    assert runs
    for run in runs:
        results = {path.stem: json.loads(path.read_text()) for path in Path(run, "results").iterdir()}
        told = {audit: result["outcome"] for audit, result in results.items()}
        assert told == OUTCOMES[f"{name}/{run}"], [result["verdict"] for result in results.values()]
        assert Path(run, "report.html").stat().st_size > 10_000


def test_every_example_is_reported_of():
    told = (EXAMPLES / "README.md").read_text()
    assert [name for name in NAMES if f"({name}/README.md)" not in told] == []
