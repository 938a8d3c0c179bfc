"""Training from end to end: a recipe and a corpus become a folder that holds a model and its card."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch
from transformers.utils import logging

from recollect.corpora.cohorts import Cohorts
from recollect.corpora.corpus import Corpus
from recollect.digests import digest
from recollect.files import fill_folder, hold_lock, write_json
from recollect.models.loading.model_cards import CARD, refuse_damaged_files
from recollect.recipes.data.sequence_builder import SequenceBuilder
from recollect.recipes.recipe import Recipe
from recollect.recipes.recipe_file import load_recipe
from recollect.recipes.training.assembly import assemble_training
from recollect.recipes.training.checkpoints import get_weights, read_checkpoint, set_weights
from recollect.recipes.training.job import Job, claim_job_folder
from recollect.recipes.training.loop import Curve, Hook, TrainingProgress
from recollect.recipes.training.training_card import Card, describe_corpus


def train(  # noqa: PLR0913 - a recipe, its data, and what surrounds a training
    recipe: Recipe | str,
    corpus: Corpus,
    out: Path,
    *,
    validation: Corpus | None = None,
    cohort: tuple[Cohorts, str] | None = None,
    seed: int = 0,
    threads: int | None = None,
    progress: Callable[[TrainingProgress], None] | None = None,
    on_epoch: Sequence[Hook] = (),
) -> Path:
    """Train a model; the folder that holds it, its card and its learning curve.

    The same call again continues where the last one was killed, or returns at once if it was finished; on the same
    machine with the same threads the weights are the same in either case.

    Args:
        recipe: The recipe, or what `load_recipe` takes.
        corpus: What to train on.
        out: The folder; empty, or begun by the same call.
        validation: What to watch the loss on. Without it, the share that the recipe holds out
            (`training.validation`): the last records of each user, so that every user stays a member.
        cohort: The cohorts, and for which of their models: trains on its members only.
        seed: Of the first weights, the order, and dropout.
        threads: How many threads torch may use; None for as many as it began with, or as it likes.
        progress: Called regularly with the progress of the training.
        on_epoch: Called at the end of each epoch; numbers that they return are added to the curve.

    Raises:
        StoreError: The folder belongs to another recipe, corpus or seed.
    """
    chosen = load_recipe(recipe) if isinstance(recipe, str) else recipe
    members_corpus = corpus if cohort is None else cohort[0].select_corpus(corpus, cohort[1])
    job = Job.of(chosen, members_corpus, validation, seed=seed)
    with hold_lock(out, purpose="training a model in", temporary=True):
        noted = claim_job_folder(out, job, threads)
        if (out / CARD).exists():
            refuse_damaged_files(out)
        else:
            with _limit_threads(noted["threads"]):
                finished = _run_loop(job, out, progress, on_epoch)
                for snapshot, folder in finished.iter_snapshots(out):
                    snapshot.write(folder, cohort, noted["threads"])
                write_json(out / "curve.json", finished.curve)  # as the last checkpoint has it
                finished.write(out, cohort, noted["threads"])
        shutil.rmtree(out / "working", ignore_errors=True)
    return out


def _run_loop(
    job: Job, out: Path, progress: Callable[[TrainingProgress], None] | None, on_epoch: Sequence[Hook]
) -> _FinishedTraining:
    """Run the loop of a training to its end."""
    prepared = assemble_training(job, out, progress, on_epoch)
    loop = prepared.loop
    with _disable_cache(loop.model):
        curve = loop.run()
    return _FinishedTraining(
        job=job, network=loop.model, preparer=prepared.preparer, curve=curve, privacy=loop.update.build_statement()
    )


@dataclass(frozen=True, kw_only=True)
class _FinishedTraining:
    """A training that has come to its end."""

    job: Job
    network: Any
    preparer: SequenceBuilder
    curve: Curve
    privacy: dict[str, Any] | None

    def iter_snapshots(self, out: Path) -> Iterator[tuple[_FinishedTraining, Path]]:
        """The model as it was when each ε was used up, with the folder it goes to; at the end it is itself again."""
        last = {name: value.clone() for name, value in get_weights(self.network).items()}
        for file in sorted((out / "working").glob("snapshot-eps-*.safetensors")):
            then, statement = read_checkpoint(file, self.network.device)
            set_weights(self.network, then)
            curve = [row for row in self.curve if row["steps"] <= statement["steps"]]
            yield replace(self, curve=curve, privacy=statement), out / file.stem
        set_weights(self.network, last)

    def write(self, out: Path, cohort: tuple[Cohorts, str] | None, threads: int) -> None:
        """Put model, tokenizer and card into the folder; the card last, because it says that all is there."""
        with _silence_saving_progress(), fill_folder(out) as pieces:
            save_network(self.network.eval(), pieces)
            if self.preparer.tokenizer is not None:
                self.preparer.tokenizer.save_pretrained(pieces)
        job = self.job
        Card(
            recipe=job.recipe,
            seed=job.seed,
            threads=threads,
            corpus=describe_corpus(job.corpus),
            validation=None if job.validation is None else describe_corpus(job.validation),
            cohort=None if cohort is None else _write_trained_members(*cohort, out),
            curve=self.curve,
            privacy=self.privacy,
            reading=self.preparer.card_entries,
        ).write(out)


def save_network(network: Any, folder: Path) -> None:
    """Save what was trained; of a model with an adapter the adapter alone, which names its base."""
    if hasattr(network, "peft_config"):
        # peft would look for the base on the hub, to see whether its vocabulary was changed; ours never is
        network.save_pretrained(folder, save_embedding_layers=False)
    else:
        network.save_pretrained(folder)


def _write_trained_members(cohorts: Cohorts, model: str, out: Path) -> dict[str, Any]:
    """The cohort that a model was trained on, for its card; its members go into a file of their own."""
    members = cohorts.members(model)
    write_json(out / "members.json", list(members))
    return {"name": model, "unit": cohorts.unit, "size": len(members), "digest": digest(list(members))}


@contextmanager
def _limit_threads(count: int) -> Iterator[None]:
    """Let torch train with so many threads, and give back what it had."""
    before = torch.get_num_threads()
    torch.set_num_threads(count)
    try:
        yield
    finally:
        torch.set_num_threads(before)


@contextmanager
def _disable_cache(network: Any) -> Iterator[None]:
    """Keep transformers from collecting keys and values that no training needs."""
    before = getattr(network.config, "use_cache", None)
    network.config.use_cache = False
    try:
        yield
    finally:
        if before is None:
            del network.config.use_cache
        else:
            network.config.use_cache = before


@contextmanager
def _silence_saving_progress() -> Iterator[None]:
    """Keep transformers from drawing progress bars while the trainer saves."""
    shown = logging.is_progress_bar_enabled()
    logging.disable_progress_bar()
    try:
        yield
    finally:
        if shown:
            logging.enable_progress_bar()
