"""Inputs that every version reads: two corpora, a tiny model, one with weights that are not numbers, and a plan."""

from __future__ import annotations

import json
import os
import shutil
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))
from processes import SETTINGS

PLAN = f"""\
models: {{target: model}}
corpora: {{audited: mine.jsonl, controls: others.jsonl}}
recipe: {{recipe: word-lstm, set: {json.dumps(SETTINGS)}}}
audits:
  membership: {{signal: ratio, by: user, fpr: [0.1]}}
  leakage: {{top_k: 5}}
work: work
workers: 1
"""
INPUTS = "RECOLLECT_FAULTS_INPUTS"
"""A folder that keeps the inputs, so that an older version can be given the same."""


@pytest.fixture(scope="session")
def inputs(tmp_path_factory):
    """The folder with all inputs; made if it is not kept."""
    folder = Path(os.environ.get(INPUTS) or tmp_path_factory.mktemp("inputs"))
    if not (folder / "plan.yaml").exists():
        make_inputs(folder)
    return folder


@pytest.fixture
def home(inputs, tmp_path):
    """A copy of the inputs for one test."""
    return shutil.copytree(inputs, tmp_path / "home")


def make_inputs(folder: Path) -> None:
    """Write all inputs."""
    import torch
    from safetensors.torch import load_file, save_file

    from recollect.corpora import synthetic
    from recollect.testing.tiny import build_tiny_model, save_tiny

    folder.mkdir(parents=True, exist_ok=True)
    people = synthetic.make_texts(people=60, per_person=3, seed=3)
    users = sorted({record.user for record in people})
    for name, chosen in (("mine", users[:16]), ("others", users[16:])):
        rows = [{"id": r.id, "user": r.user, "text": r.text[:80]} for r in people if r.user in chosen]
        (folder / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    for name in ("model", "nan"):
        save_tiny(build_tiny_model("gpt2"), folder / name)
    weights = {
        name: torch.full_like(each, torch.nan) for name, each in load_file(folder / "nan" / "model.safetensors").items()
    }
    save_file(weights, folder / "nan" / "model.safetensors", metadata={"format": "pt"})
    (folder / "plan.yaml").write_text(PLAN)
