"""What is run while a cluster loses workers, nodes, its driver or its head: scoring, and a fleet of trainings.

As a script: `cluster_jobs.py score|train ADDRESS WORK CONTROL WANTED TOTAL`. Ends with 0 and prints what came out as
JSON, or with 2 and prints the code of what it was refused by.
"""

from __future__ import annotations

import faulthandler
import hashlib
import json
import signal
import sys
import time
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from gates import Gate, GatedBackend, list_finished

from recollect.corpora.cohorts import Cohorts
from recollect.corpora.corpus import Corpus
from recollect.corpora.record import Record
from recollect.errors import RecollectError
from recollect.testing.fakes import Null

WORKERS = 2
BLOCK = 20
BLOCK_SECONDS = 0.2
RECIPE = ["units=8", "embedding=8", "training.epochs=12", "training.batch_size=8", "tokenizer.size=50"]


@dataclass(frozen=True, kw_only=True)
class Slow(Null):
    """A model that takes its time, so that something can happen meanwhile."""

    def answer(self, records):
        time.sleep(BLOCK_SECONDS)
        return super().answer(records)


def score(work: Path, backend, blocks: int) -> str:
    """Score a corpus of so many blocks; the digest of all shards."""
    from recollect.models.answer_store.scoring import score_corpus

    corpus = Corpus.of(
        Record(id=str(i), user=f"u{i % 7}", text=f"record {i} says word{i % 13} again") for i in range(BLOCK * blocks)
    )
    store = score_corpus(partial(Slow), corpus, work, backend=backend, block=BLOCK)
    return compute_digest(list_finished(store.folder.parents[1]))


def train(work: Path, backend, models: int = 8) -> str:
    """Train a fleet of so many models; the digest of all weights."""
    from recollect.recipes.fleet import Fleet, train_fleet
    from recollect.recipes.layout_trial import WorkerLayout
    from recollect.recipes.recipe_file import load_recipe

    corpus = Corpus.of(
        Record(id=f"{user}-{i}", user=f"u{user}", text=f"user {user} says word{i} again and again")
        for user in range(8)
        for i in range(10)
    )
    units = [f"u{user}" for user in range(8)]
    members = {f"shadow-{i}": [unit for unit in units if unit != f"u{i}"] for i in range(models)}
    cohorts = Cohorts.of(members, units=units, unit="user", corpus=corpus.digest, seed=0)
    fleet = Fleet(recipe=load_recipe("word-lstm", RECIPE), corpus=corpus, cohorts=cohorts)
    trained = train_fleet(fleet, work, layout=WorkerLayout(workers=1, threads=1), backend=backend)
    for failure in trained.failures.values():
        raise failure.error
    return compute_digest([folder / "model.safetensors" for folder in trained.folders.values()])


JOBS = {"score": score, "train": train}


def compute_digest(files: list[Path]) -> str:
    """The digest of what files hold."""
    hasher = hashlib.sha256()
    for path in sorted(files, key=lambda path: (path.parent.name, path.name)):
        hasher.update(path.parent.name.encode() + path.name.encode() + path.read_bytes())
    return hasher.hexdigest()


def main() -> int:
    """Run one job on a cluster."""
    from recollect.execution.on_ray import RayBackend

    faulthandler.register(signal.SIGUSR1)  # says where it hangs
    kind, address, work, control, wanted, total = sys.argv[1:]
    gate = Gate(work=Path(work), control=Path(control), wanted=int(wanted), total=int(total))
    backend = RayBackend(address=address, workers=WORKERS, work_folder=gate.work)
    try:
        digest = JOBS[kind](gate.work, GatedBackend(backend, gate), gate.total)
    except RecollectError as error:
        print(json.dumps({"refused": error.code, "found": error.found}), flush=True)
        return 2
    print(json.dumps({"digest": digest}), flush=True)
    return 0


if __name__ == "__main__":
    # workers find what is defined here by the name of this module
    sys.path.insert(0, str(Path(__file__).parent))
    import cluster_jobs

    sys.exit(cluster_jobs.main())
