"""A job: all that the weights of a model depend on besides the machine, and the folder that belongs to it."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from recollect.corpora.corpus import Corpus
from recollect.digests import new_hasher, update_from_file
from recollect.errors import CorpusError, PlanError, StoreError
from recollect.files import LOCK, make_private_folder, read_checked_json, write_checked_json
from recollect.models.loading.model_folders import find_folder
from recollect.recipes.recipe import Recipe

TRAINING_REVISION = 1
"""Raised by hand whenever a change may move a weight: a training that was begun before is then not continued with."""


@dataclass(frozen=True, kw_only=True)
class Job:
    """All that the weights depend on, besides the machine."""

    recipe: Recipe
    corpus: Corpus
    validation: Corpus | None
    seed: int

    @classmethod
    def of(cls, recipe: Recipe, corpus: Corpus, validation: Corpus | None, *, seed: int) -> Job:
        """A job; where no validation corpus is given, the share that the recipe wishes is held out."""
        settings = recipe.training
        if validation is None and settings.validation > 0:
            held_out_ids = select_held_out(corpus, settings.validation)
            validation = corpus.filter(lambda record: record.id in held_out_ids, name=f"{corpus.name} (held out)")
            corpus = corpus.filter(lambda record: record.id not in held_out_ids, name=corpus.name)
        if validation is None and (settings.stop_after is not None or settings.keep == "best"):
            raise PlanError(
                f"Recipe {recipe.name!r} chooses by the validation loss, but nothing is held out.",
                do="Give a validation corpus, or set training.validation to a share such as 0.05.",
                code="no_validation",
            )
        if recipe.private:
            from recollect.recipes.private.privacy_terms import check_private_recipe

            check_private_recipe(recipe, validated=validation is not None)
        if len(corpus) == 0:
            raise CorpusError(
                f"{corpus.name} has no records to train on.", do="Give a corpus that has some.", code="empty_corpus"
            )
        return cls(recipe=recipe, corpus=corpus, validation=validation, seed=seed)

    def describe(self) -> dict[str, Any]:
        """What makes this training another than the next."""
        return {
            "revision": TRAINING_REVISION,
            "recipe": self.recipe.digest,
            "corpus": self.corpus.digest,
            "validation": None if self.validation is None else self.validation.digest,
            "seed": self.seed,
            "start": None if self.recipe.model.start is None else compute_job_start_digest(self.recipe.model.start),
        }


def select_held_out(corpus: Corpus, share: float) -> frozenset[str]:
    """The ids of the records that a job holds out: the last share of each user's records, in corpus order.

    So every user stays a member of the cohort. A corpus without users loses its last share.
    """
    counts = Counter("" if record.user is None else record.user for record in corpus)
    first = {user: count - round(count * share) for user, count in counts.items()}
    seen, chosen = Counter[str](), set()
    for record in corpus:
        user = "" if record.user is None else record.user
        seen[user] += 1
        if seen[user] > first[user]:
            chosen.add(record.id)
    return frozenset(chosen)


def claim_job_folder(out: Path, job: Job, threads: int | None) -> dict[str, Any]:
    """Make the folder this job's own, or find that it is; what was noted when it was begun."""
    file, identity = out / "training.json", job.describe()
    if not file.exists():
        if any(path.name != LOCK for path in out.iterdir()):
            raise StoreError(
                f"The folder {out} is not empty.", do="Choose another for the model.", code="folder_not_empty"
            )
        import torch  # here and not before: a folder that is done needs none

        noted = {**identity, "threads": threads or torch.get_num_threads()}
        write_checked_json(make_private_folder(out) / "training.json", noted)
        return noted
    advice = f"Delete this folder and train the model again: '{out}'."
    noted = read_checked_json(file, do=advice, code="training_damaged")
    differing = [name for name, value in identity.items() if noted.get(name) != value]
    if differing:
        raise StoreError(
            f"The folder {out} holds a training with another {' and '.join(differing)}.",
            do="Choose another folder, or delete this one.",
            code="folder_of_another_training",
        )
    return {**noted, "threads": threads or noted["threads"]}


def compute_job_start_digest(start: str) -> str:
    """The digest of the checkpoint that a job starts from."""
    folder = find_folder(start)
    files = sorted([*folder.glob("*.safetensors"), *folder.glob("*.bin"), *folder.glob("*token*.json")])
    return _compute_start_files_digest(tuple((path, path.stat().st_size, path.stat().st_mtime_ns) for path in files))


@lru_cache(maxsize=8)
def _compute_start_files_digest(files: tuple[tuple[Path, int, int], ...]) -> str:
    """The digest of files that a job starts from, read once as long as their sizes and times stay."""
    state = new_hasher()
    for path, _, _ in files:
        state.update(f"{path.name}\n".encode())
        update_from_file(state, path)
    return state.hexdigest()
