"""Commands in processes of their own, forked from one that has all that is slow to import, and what they leave."""

from __future__ import annotations

import hashlib
import json
import os
import resource
import shutil
import signal
import sys
import threading
import time
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from recollect.audits.registry import AUDITS

TINY = {"units": 8, "embedding": 8, "dropout": 0.0, "epochs": 3, "batch_size": 8, "tokenizer.size": 200}
SET = [word for name, value in TINY.items() for word in ("--set", f"{name}={value}")]
PLAN = f"""\
models: {{target: model}}
corpora: {{audited: mine.jsonl, controls: others.jsonl}}
recipe: {{recipe: word-lstm, set: {json.dumps(TINY)}}}
audits:
  provenance: {{shadows: 2, calibration: 0.5}}
  membership: {{signal: ratio, by: user, fpr: [0.1]}}
  leakage: {{folds: 3, top_k: 5}}
work: work
workers: 1
threads: 1
"""
FORMAT = "my pin is {digits:3}"
ONE = ["--workers", "1", "--threads", "1", "--work", "work"]
OTHERS = ["--controls", "others.jsonl"]
RECIPE = ["--recipe", "word-lstm", *SET]
KEEPING = {
    "run": ["run", "plan.yaml", "--out", "out"],
    "train": ["train", "word-lstm", "mine.jsonl", "--out", "trained", "--threads", "1", *SET],
    "score": ["score", "model", "others.jsonl", *ONE],
    "evaluate": ["evaluate", "model", "others.jsonl", *ONE],
    "extract": ["extract", "bytes", "--format", FORMAT, "--top", "3", "--out", "out", *ONE],
    "exposure": ["exposure", "bytes", "--format", FORMAT, "--secrets", "471", "--draws", "200", "--out", "out", *ONE],
    "provenance": [
        "provenance",
        "model",
        "mine.jsonl",
        *OTHERS,
        *RECIPE,
        "--shadows",
        "1",
        "--calibration",
        "0.5",
        "--out",
        "out",
        *ONE,
    ],
    "membership": ["membership", "model", "mine.jsonl", *OTHERS, *RECIPE, "--by", "user", "--out", "out", *ONE],
    "leakage": ["leakage", "model", "mine.jsonl", *OTHERS, *RECIPE, "--folds", "3", "--out", "out", *ONE],
    "removal": ["removal", "model", "mine.jsonl", *OTHERS, *RECIPE, "--models", "2", "--out", "out", *ONE],
    "sanitise": [
        *("sanitise", "mine.jsonl", "--by", "difference", *RECIPE, "--out", "sanitised.jsonl", "--work", "work"),
    ],
}
"""Verbs that keep something to resume, from nothing."""
LOOKING = {
    "plant": ["plant", "mine.jsonl", "--format", FORMAT, "--out", "planted.jsonl"],
    "report": ["report", "out"],
    "compare": ["compare", "out", "out", "--out", "compared.html"],
    "check": ["check", "plan.yaml"],
    "list": ["list"],
    "doctor": ["doctor"],
    "verify": ["verify", "out"],
    "clean": ["clean", "--work", "work", "--delete"],
    "forget": ["forget", "person-1", "--work", "work", "--corpus", "mine.jsonl", "--delete"],
}
"""The other verbs, after a run."""
UNSTABLE = ("report.", "compared.html", "card.json", "README.md", "curve.json", "plan.yaml", "manifest.json")
"""Files with times or absolute paths in them."""
UNSTABLE_FOLDERS = ("runs", "fleets", "audits")
"""Folders of a work folder whose files have names or contents that depend on where the run folder is, or on times."""
CACHES = ("digests",)
"""Folders of a work folder that a run may do without: a model that was trained again has another note."""
UNFINISHED = (("train", "trained/working/*.safetensors"), ("extract", "work/audits/*/*.journal"))
"""Verbs that are killed once a file appears in which they keep what they need to resume. A verb that keeps such a file
of a new kind is added here, and its bits are flipped."""
READERS = (("trained/", "train"), ("work/audits/", "extract"), ("work/", "run"))
"""By how the kind of a file begins, the verb that reads it again; the first that fits."""
INPUTS = ("mine.jsonl", "others.jsonl", "plan.yaml", "model", "bytes")


TRAINING_AND_SCORING = (
    "recollect.cli.app",
    "recollect.models.loading.local_models",
    "recollect.recipes.training.trainer",
    "recollect.session",
)
"""What is slow to import of what `train` and `score` need."""
SLOW_TO_IMPORT = (
    *TRAINING_AND_SCORING,
    "datasketch",
    "recollect.api",
    "recollect.cli.run_and_check",
    "recollect.cli.report",
    "recollect.cli.clean_and_forget",
    "recollect.pipeline.work_folder.cleanup",
    "recollect.pipeline.difference_sanitisation",
    "recollect.pipeline.work_folder.erasure",
    "recollect.pipeline.forecast",
    "recollect.pipeline.run",
    "recollect.pipeline.work_folder.verification",
    "recollect.report.report_writer",
    "recollect.results.comparison",
    "rich.progress",
    "rich.table",
)


def import_once(*, everything: bool) -> None:
    """Import what is slow to import, of all verbs or of two, before anything is forked."""
    for name in SLOW_TO_IMPORT if everything else TRAINING_AND_SCORING:
        import_module(name)
    for audit in AUDITS.names if everything else ():
        AUDITS.load(audit)
    pa.array([0])  # imports pandas where there is one


def make_inputs(home: Path) -> None:
    """Write the corpora, the models and the plan; in a process of its own, so that no thread of torch is forked."""
    child = os.fork()
    if child == 0:
        from recollect.corpora import synthetic
        from recollect.corpora.corpus_writer import write_corpus
        from recollect.recipes.recipe_file import load_recipe
        from recollect.recipes.training.trainer import train
        from recollect.testing.tiny import build_tiny_model, save_tiny

        home.mkdir(parents=True, exist_ok=True)
        people = synthetic.make_texts(people=72, per_person=4, seed=3)
        users = [f"person-{i}" for i in range(72)]
        write_corpus(people.select_users(users[:16]), home / "mine.jsonl")
        write_corpus(people.select_users(users[16:]), home / "others.jsonl")
        train(load_recipe("word-lstm", TINY), people.select_users(users[:8]), home / "model", threads=1)
        save_tiny(build_tiny_model("gpt2"), home / "bytes")
        (home / "plan.yaml").write_text(PLAN)
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0, "the inputs could not be made"


@dataclass
class Started:
    """A command that runs in a process of its own."""

    process: int
    began: float
    reader: threading.Thread
    said: list[bytes] = field(default_factory=list)

    def wait(self) -> Ended:
        """Wait for its end."""
        _, status = os.waitpid(self.process, 0)
        seconds = time.monotonic() - self.began
        self.reader.join()
        return Ended(os.waitstatus_to_exitcode(status), b"".join(self.said).decode("utf-8", "replace"), seconds)

    def kill(self) -> bool:
        """Kill it; whether it was still running."""
        if os.waitpid(self.process, os.WNOHANG)[0] == self.process:
            self.reader.join()
            return False
        os.kill(self.process, signal.SIGKILL)
        os.waitpid(self.process, 0)
        self.reader.join()
        return True


@dataclass
class Ended:
    """A command that has ended."""

    status: int
    said: str
    seconds: float

    @property
    def messages(self) -> int:
        """How many errors it told of."""
        return sum(line.startswith("recollect: ") for line in self.said.splitlines())


def start(words: list[str], folder: Path, *, largest_file: int | None = None) -> Started:
    """Start a command in a folder; with a limit on the size of files, as a full disk has one."""
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        status = 2
        try:
            os.dup2(write, 1)
            os.dup2(write, 2)
            os.closerange(3, 64)
            os.chdir(folder)
            if largest_file is not None:
                resource.setrlimit(resource.RLIMIT_FSIZE, (largest_file, largest_file))
            sys.stdout, sys.stderr = os.fdopen(1, "w"), os.fdopen(2, "w")
            sys.argv = ["recollect", *words]
            from recollect.cli import main

            main()
        except SystemExit as ended:
            status = ended.code if isinstance(ended.code, int) else 2
        except BaseException:
            import traceback

            traceback.print_exc()
            status = 70
        finally:
            os._exit(status)
    os.close(write)
    said: list[bytes] = []

    def listen() -> None:
        with os.fdopen(read, "rb") as stream:
            said.extend(iter(lambda: stream.read1(65536), b""))

    reader = threading.Thread(target=listen, daemon=True)
    reader.start()
    return Started(child, time.monotonic(), reader, said)


def make_trial(home: Path, name: str, *, like: Path | None = None) -> Path:
    """A folder with the inputs and, after a run, with what that run left."""
    trial = home / "trials" / name
    shutil.rmtree(trial, ignore_errors=True)
    trial.mkdir(parents=True)
    for each in INPUTS:
        source = home / "inputs" / each
        (shutil.copytree if source.is_dir() else shutil.copy2)(source, trial / each)
    for part in ("out", "work"):
        if like is not None and (like / part).is_dir():
            shutil.copytree(like / part, trial / part)
    return trial


def read_outcome(trial: Path, *, join_answers: bool = False) -> dict[str, str]:
    """What a command left: the SHA-256 of what must be the same each time (results, tables, weights, answers).

    Of the other files that they are there, and of those with unstable names how many.

    Args:
        trial: The folder.
        join_answers: Whether only the answers of a store must be the same, each of them there once, and not how they
            are divided among files: that depends on which audit asks first, and one that fails asks nothing.
    """
    found = dict[str, str]()
    answers = dict[str, list[str]]()
    for path in sorted(trial.rglob("*")):
        relative = path.relative_to(trial)
        if not path.is_file() or relative.parts[0] in INPUTS or path.name == ".lock":
            continue
        if relative.parts[0] == "work" and relative.parts[1] in CACHES:
            continue
        if relative.parts[0] == "work" and len(relative.parts) > 1 and relative.parts[1] in UNSTABLE_FOLDERS:
            counted = f"work/{relative.parts[1]}/*{path.suffix}"
            found[counted] = str(int(found.get(counted, 0)) + 1)
            continue
        if path.name.startswith((".", *UNSTABLE)):
            found[relative.as_posix()] = "there"
            continue
        if join_answers and relative.parts[:2] == ("work", "answers") and path.suffix == ".parquet":
            answers.setdefault(relative.parent.as_posix(), []).extend(map(repr, pq.read_table(path).to_pylist()))
            continue
        data = path.read_bytes()
        if path.parent.name == "results":
            document = json.loads(data)
            document["provenance"]["seconds"] = 0
            data = json.dumps(document, sort_keys=True).replace(str(trial), "TRIAL").encode()
        found[relative.as_posix()] = hashlib.sha256(data).hexdigest()
    return found | {
        store: hashlib.sha256("".join(sorted(rows)).encode()).hexdigest() for store, rows in answers.items()
    }


def find_leftovers(trial: Path) -> list[str]:
    """What a command must not leave behind: half-written files, scratch folders, tracebacks."""
    return sorted(
        path.relative_to(trial).as_posix()
        for path in trial.rglob("*")
        if path.name.endswith(".part") or path.name.startswith((".deleted-", "traceback-"))
    )
