"""Whoever reads answers, results and reports needs no torch: tried in an environment where it is not installed."""

from __future__ import annotations

import os
import re
import subprocess
import venv
from importlib.metadata import distribution, requires
from pathlib import Path

import pytest
from packaging.requirements import Requirement

import recollect
from recollect.corpora.corpus import Corpus
from recollect.corpora.corpus_writer import write_corpus
from recollect.corpora.record import Record
from recollect.models.answer_store.scoring import score_corpus
from recollect.testing.fakes import Memoriser

ABSENT = {"torch", "transformers", "tokenizers", "safetensors", "opacus", "peft", "datasets", "openai"}
"""What is left out of the environment; nothing else that is installed there may need it."""


def needed(names: list[str]) -> set[str]:
    """These distributions and all that they need in turn."""
    found: set[str] = set()
    while names:
        name = re.sub(r"[-_.]+", "-", names.pop()).lower()
        if name not in found | ABSENT:
            found.add(name)
            wanted = [Requirement(text) for text in requires(name) or []]
            names += [each.name for each in wanted if each.marker is None or each.marker.evaluate({"extra": ""})]
    return found


@pytest.fixture(scope="module")
def bare(tmp_path_factory):
    """The Python of an environment that has all packages of this one but those that are left out."""
    home = tmp_path_factory.mktemp("bare")
    venv.create(home, symlinks=True, with_pip=False)
    site = next((home / "lib").glob("python*/site-packages"))
    direct = [
        match[0] for text in requires("recollect") if "extra ==" not in text and (match := re.match(r"[\w.-]+", text))
    ]
    for name in needed(direct):
        files = distribution(name).files or []
        for top in {file.parts[0] for file in files} - {"..", "__pycache__"}:
            if not (site / top).exists():
                (site / top).symlink_to(Path(distribution(name).locate_file(top)))
    (site / "recollect.pth").write_text(str(Path(recollect.__file__).parents[1]))
    return home / "bin" / "python"


def run(python, *arguments):
    """What a program of that environment wrote; it must end well."""
    settings = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    done = subprocess.run([python, *arguments], capture_output=True, text=True, check=False, env=settings)  # noqa: S603
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_all_but_loading_and_training_imports_without_torch(bare):
    packages = ("corpora", "stats", "execution", "results", "signals", "audits", "report", "cli")
    modules = (
        "models.model",
        "models.access",
        "models.answers",
        "models.limited",
        "models.answer_store.recorded_model",
        "models.answer_store.store",
    )
    script = f"""
import importlib, importlib.util, pkgutil, sys
import recollect
assert importlib.util.find_spec("torch") is None and importlib.util.find_spec("transformers") is None
for package in {packages!r}:
    home = importlib.import_module(f"recollect.{{package}}")
    for module in pkgutil.walk_packages(home.__path__, f"recollect.{{package}}."):
        importlib.import_module(module.name)
for module in ({modules!r}):
    importlib.import_module(f"recollect.{{module}}")
print(sum(name.startswith("recollect.") for name in sys.modules))
"""
    assert int(run(bare, "-c", script)) > 150


def test_a_recorded_model_is_audited_and_reported_without_torch(bare, tmp_path):
    texts = [f"{user} writes {word} again" for user in "abcdefghij" for word in ("this", "that", "more", "less")]
    records = [Record(id=str(i), user=text[0], text=text) for i, text in enumerate(texts)]
    store = score_corpus(Memoriser(records[:20]), Corpus.of(records), tmp_path)
    for name, chosen in {"seen": records[:20], "unseen": records[20:]}.items():
        write_corpus(Corpus.of(chosen), tmp_path / f"{name}.jsonl")
    run(
        bare,
        *("-m", "recollect", "membership", f"recorded:{store.folder}", str(tmp_path / "seen.jsonl")),
        *("--controls", str(tmp_path / "unseen.jsonl"), "--signal", "loss", "--out", str(tmp_path / "run")),
        *("--work", str(tmp_path / "work")),
    )
    assert (tmp_path / "run" / "report.html").is_file()


def test_a_model_that_needs_torch_is_refused_with_the_command_that_adds_it(bare, tmp_path):
    for name in ("config.json", "model.safetensors"):
        (tmp_path / name).touch()
    script = f"""
from recollect import load_model
from recollect.testing.refusals import refused
with refused("torch_missing") as refusal:
    load_model({str(tmp_path)!r})
assert "pip install" in refusal.error.do
"""
    run(bare, "-c", script)
