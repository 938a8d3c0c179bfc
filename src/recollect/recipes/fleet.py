"""A fleet: one recipe × many cohorts, trained side by side. Targets, shadows and references all come from here."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from recollect import labels
from recollect.corpora.cohorts import Cohorts
from recollect.corpora.corpus import Corpus, encode_identity
from recollect.digests import digest, new_hasher
from recollect.errors import StoreError
from recollect.execution.backend import Backend, Failure
from recollect.execution.local import LocalBackend
from recollect.files import hold_lock, read_checked_json, read_json, write_checked_json
from recollect.recipes.layout_trial import WorkerLayout, pick_layout
from recollect.recipes.recipe import Recipe
from recollect.recipes.training.job import TRAINING_REVISION, compute_job_start_digest
from recollect.streams import derive_seed

Progress = Callable[[int, int], None]
"""Called with how many epochs have been trained, and how many there are in all."""
POLL_SECONDS = 1.0
"""How often the progress of the workers is looked at."""


@dataclass(frozen=True, kw_only=True)
class Fleet:
    """One recipe, and the cohorts of which each becomes a model."""

    recipe: Recipe
    corpus: Corpus
    cohorts: Cohorts
    validation: Corpus | None = None
    seed: int = 0

    def derive_seed(self, model: str) -> int:
        """The seed of a member: its own, so that no member depends on which others there are."""
        return derive_seed(self.seed, labels.STREAM_FLEET, model) % 2**31

    def get_folder(self, work: Path, model: str) -> Path:
        """Where a member is: addressed by all that its weights depend on, so that other fleets find it again.

        Of the corpus these are the records that train it: another corpus in which the same records are chosen, such as
        one with further users, leads to the same model.
        """
        validation_digest = None if self.validation is None else self.validation.digest
        address = digest(
            TRAINING_REVISION,
            self.recipe.digest,
            self._training_digests[model],
            self.cohorts.unit,
            self.cohorts.members(model),
            validation_digest,
            self.derive_seed(model),
            *(() if self.recipe.model.start is None else (compute_job_start_digest(self.recipe.model.start),)),
        )
        return work / "models" / address

    @cached_property
    def _training_digests(self) -> dict[str, str]:
        """The digest of the records that train each member, found in one pass over the corpus."""
        hashers = {model: new_hasher() for model in self.cohorts.models}
        trained: dict[str, list[Any]] = {}
        for model, hasher in hashers.items():
            for unit in self.cohorts.members(model):
                trained.setdefault(unit, []).append(hasher)
        for record in self.corpus if trained else ():
            unit = record.owner if self.cohorts.unit == "user" else record.id
            if hashers_of_unit := trained.get(unit):
                identity = encode_identity(record)
                for hasher in hashers_of_unit:
                    hasher.update(identity)
        return {model: hasher.hexdigest() for model, hasher in hashers.items()}


@dataclass(frozen=True, kw_only=True)
class TrainedFleet:
    """What became of a fleet: nothing is lost, neither a model nor a failure."""

    folders: dict[str, Path]
    """The models that were trained, by name."""
    failures: dict[str, Failure]
    """The others."""
    layout: WorkerLayout


def train_fleet(
    fleet: Fleet,
    work: Path,
    *,
    layout: WorkerLayout | None = None,
    backend: Backend | None = None,
    progress: Progress | None = None,
) -> TrainedFleet:
    """Train every member that is not trained yet.

    Killed at any moment and called again, it continues with each member where its last checkpoint is, with as many
    threads as it was begun with; members that are finished are not touched.

    Args:
        fleet: What to train.
        work: The work folder; members are in `models/<address>` there.
        layout: How many processes with how many threads each; None to pick by a short trial.
        backend: Where to train, in place of such processes: a cluster.
        progress: Called regularly with the progress.
    """
    folders = {name: fleet.get_folder(work, name) for name in fleet.cohorts.models}
    with nullcontext() if backend is None else backend.hold(work, purpose="training models in"):
        missing = [name for name, folder in folders.items() if not is_finished(folder)]
        if backend is None:
            chosen = layout or _choose_layout(fleet, work, missing)
            backend = LocalBackend(workers=min(chosen.workers, max(1, len(missing))), threads=chosen.threads)
        else:
            chosen = WorkerLayout(workers=backend.workers, threads=backend.threads)
            _cache_fleet_checkpoint(fleet.recipe)
        with _report_fleet_progress(list(folders.values()), fleet.recipe.training.epochs, progress):
            outcomes = dict(zip(missing, backend.map(_MemberTrainer(fleet, work), missing), strict=True))
    failures = {name: outcome for name, outcome in outcomes.items() if isinstance(outcome, Failure)}
    trained = {name: folder for name, folder in folders.items() if name not in failures}
    return TrainedFleet(folders=trained, failures=failures, layout=chosen)


def is_finished(folder: Path) -> bool:
    """Whether a member is trained, and nothing is left of what its training kept: a kill may come between the two."""
    return (folder / "card.json").exists() and not (folder / "working").exists()


def _cache_fleet_checkpoint(recipe: Recipe) -> None:
    """Download the checkpoint that a fleet starts from: workers of a cluster do not use the network."""
    if recipe.model.start is not None:
        compute_job_start_digest(recipe.model.start)


@dataclass(frozen=True)
class _MemberTrainer:
    """Trains one member, here or in a worker."""

    fleet: Fleet
    work: Path

    def __call__(self, name: str) -> str:
        from recollect.recipes.training.trainer import train  # torch comes with it, and finished fleets need none

        fleet, folder = self.fleet, self.fleet.get_folder(self.work, name)
        train(
            fleet.recipe,
            fleet.corpus,
            folder,
            validation=fleet.validation,
            cohort=(fleet.cohorts, name),
            seed=fleet.derive_seed(name),
        )
        return str(folder)


def _choose_layout(fleet: Fleet, work: Path, missing: list[str]) -> WorkerLayout:
    """The layout that the fleet was begun with, or else the better one of a short trial, which is noted."""
    if not missing:
        return WorkerLayout(workers=1, threads=1)
    note = work / "fleets" / f"{digest(fleet.recipe.digest, fleet.corpus.digest, fleet.seed)}.json"
    with hold_lock(note.parent, purpose="choosing a layout in", temporary=True):
        if note.exists():
            return _read_layout(note)
        picked = pick_layout(fleet.recipe, fleet.cohorts.select_corpus(fleet.corpus, missing[0]), models=len(missing))
        write_checked_json(note, {"workers": picked.workers, "threads": picked.threads})
    return picked


def _read_layout(note: Path) -> WorkerLayout:
    """The layout of workers that was noted when the fleet was begun."""
    do, code = "Delete it; the layout is then picked anew.", "layout_damaged"
    try:
        return WorkerLayout(**read_checked_json(note, do=do, code=code))
    except (TypeError, ValueError) as error:
        raise StoreError(f"{note} is damaged.", do=do, code=code) from error


@contextmanager
def _report_fleet_progress(folders: list[Path], epochs: int, progress: Progress | None) -> Iterator[None]:
    """Report how many epochs all members of the fleet together have behind them, while this lasts."""
    if progress is None:
        yield
        return
    done = threading.Event()

    def look() -> None:
        while not done.wait(POLL_SECONDS):
            progress(sum(_count_member_epochs(folder, epochs) for folder in folders), epochs * len(folders))

    thread = threading.Thread(target=look, daemon=True)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()
        progress(sum(_count_member_epochs(folder, epochs) for folder in folders), epochs * len(folders))


def _count_member_epochs(folder: Path, epochs: int) -> int:
    """How many epochs a member of the fleet has behind it; all of them once it is finished."""
    if (folder / "card.json").exists():
        return epochs
    with suppress(FileNotFoundError, ValueError, TypeError):  # what is damaged is refused by whoever needs it
        return len(read_json(folder / "curve.json"))
    return 0
