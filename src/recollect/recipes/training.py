"""Training from end to end: a recipe and a corpus become a folder that holds a model and its card."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch
from transformers import AutoTokenizer

from recollect.corpora.cohorts import Cohorts
from recollect.corpora.corpus import Corpus
from recollect.digests import digest
from recollect.errors import CorpusError, PlanError, StoreError
from recollect.files import private_folder, read_json, write_json
from recollect.models.devices import pick_device
from recollect.recipes.building import build_model, build_tokenizer
from recollect.recipes.card import Card, described
from recollect.recipes.checkpoints import read_checkpoint, set_weights, weights, write_checkpoint
from recollect.recipes.loop import Curve, Hook, Loop, Moment
from recollect.recipes.optimisers import Rate, build_optimiser
from recollect.recipes.preparing import Preparer, look_at, texts_of
from recollect.recipes.reading import load_recipe
from recollect.recipes.recipe import Recipe
from recollect.recipes.sampling import InOrder, Sampler, Shuffled
from recollect.recipes.sequences import Sequences
from recollect.recipes.update import Plain, Update
from recollect.recipes.validating import Validation, held_out

TRAINING_REVISION = 1
"""Raised by hand whenever a change may move a weight: a training that was begun before is then not gone on with."""


def train(  # noqa: PLR0913 - a recipe, its data, and what surrounds a training
    recipe: Recipe | str,
    corpus: Corpus,
    out: Path,
    *,
    validation: Corpus | None = None,
    cohort: tuple[Cohorts, str] | None = None,
    seed: int = 0,
    threads: int | None = None,
    progress: Callable[[Moment], None] | None = None,
    on_epoch: Sequence[Hook] = (),
) -> Path:
    """Train a model; the folder that holds it, its card and its learning curve.

    The same call again goes on where the last one was killed, or returns at once if it was finished; on the same
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
        progress: Is told now and then where the training stands.
        on_epoch: Called at the end of each epoch; numbers that they return are added to the curve.

    Raises:
        StoreError: The folder belongs to another recipe, corpus or seed.
    """
    chosen = load_recipe(recipe) if isinstance(recipe, str) else recipe
    whole = corpus if cohort is None else cohort[0].corpus_of(corpus, cohort[1])
    job = Job.of(chosen, whole, validation, seed=seed)
    begun = _claimed(out, job, threads)
    if not (out / "card.json").exists():
        with _threads(begun["threads"]):
            finished = _trained(job, out, progress, on_epoch)
            for snapshot, folder in finished.snapshots(out):
                snapshot.write(folder, cohort, begun["threads"])
            finished.write(out, cohort, begun["threads"])
        shutil.rmtree(out / "working")
    return out


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
            away = held_out(corpus, settings.validation)
            validation = corpus.keep(lambda record: record.id in away, name=f"{corpus.name} (held out)")
            corpus = corpus.keep(lambda record: record.id not in away, name=corpus.name)
        if validation is None and (settings.stop_after is not None or settings.keep == "best"):
            raise PlanError(
                f"Recipe {recipe.name!r} chooses by the validation loss, but nothing is held out.",
                do="Give a validation corpus, or set training.validation to a share such as 0.05.",
            )
        if recipe.private:
            from recollect.recipes.private.terms import check_recipe

            check_recipe(recipe, validated=validation is not None)
        if len(corpus) == 0:
            raise CorpusError(f"{corpus.name} has no records to train on.", do="Give a corpus that has some.")
        return cls(recipe=recipe, corpus=corpus, validation=validation, seed=seed)

    def identity(self) -> dict[str, Any]:
        """What makes this training another than the next."""
        return {
            "revision": TRAINING_REVISION,
            "recipe": self.recipe.digest,
            "corpus": self.corpus.digest,
            "validation": None if self.validation is None else self.validation.digest,
            "seed": self.seed,
        }


def _claimed(out: Path, job: Job, threads: int | None) -> dict[str, Any]:
    """Make the folder this training's own, or find that it is; what was noted when it was begun."""
    file, identity = out / "training.json", job.identity()
    if not file.exists():
        if out.exists() and any(out.iterdir()):
            raise StoreError(f"The folder {out} is not empty.", do="Choose another for the model.")
        begun = {**identity, "threads": threads or torch.get_num_threads()}
        write_json(private_folder(out) / "training.json", begun)
        return begun
    begun = read_json(file)
    differing = [name for name, value in identity.items() if begun.get(name) != value]
    if differing:
        raise StoreError(
            f"The folder {out} holds a training with another {' and '.join(differing)}.",
            do="Choose another folder, or delete this one.",
        )
    return {**begun, "threads": threads or begun["threads"]}


@dataclass(frozen=True, kw_only=True)
class _Trained:
    """A training that has come to its end."""

    job: Job
    network: Any
    preparer: Preparer
    curve: Curve
    privacy: dict[str, Any] | None

    def snapshots(self, out: Path) -> Iterator[tuple[_Trained, Path]]:
        """The model as it was when each ε was used up, with the folder it goes to; at the end it is itself again."""
        last = {name: value.clone() for name, value in weights(self.network).items()}
        for file in sorted((out / "working").glob("snapshot-eps-*.safetensors")):
            then, statement = read_checkpoint(file, self.network.device)
            set_weights(self.network, then)
            curve = [row for row in self.curve if row["steps"] <= statement["steps"]]
            yield replace(self, curve=curve, privacy=statement), out / file.stem
        set_weights(self.network, last)

    def write(self, out: Path, cohort: tuple[Cohorts, str] | None, threads: int) -> None:
        """Put model, tokenizer and card into the folder; the card last, because it says that all is there."""
        self.network.eval().save_pretrained(out)
        if self.preparer.tokenizer is not None:
            self.preparer.tokenizer.save_pretrained(out)
        job = self.job
        Card(
            recipe=job.recipe,
            seed=job.seed,
            threads=threads,
            corpus=described(job.corpus),
            validation=None if job.validation is None else described(job.validation),
            cohort=None if cohort is None else _membership(*cohort, out),
            curve=self.curve,
            privacy=self.privacy,
            reading=self._reading(),
        ).write(out)

    def _reading(self) -> dict[str, Any]:
        """What whoever loads the model must know."""
        scale, tokenizer = self.preparer.scale, self.preparer.tokenizer
        if scale is not None:
            return {"input_mean": scale.mean, "input_std": scale.std}
        if tokenizer is None or self.job.recipe.task != "causal":
            return {}
        return {"start_symbol": next(iter(self.preparer.marks.before), None)}


def _membership(cohorts: Cohorts, model: str, out: Path) -> dict[str, Any]:
    """The cohort for the card; its members, who may be many, into a file of their own."""
    members = cohorts.members(model)
    write_json(out / "members.json", list(members))
    return {"name": model, "unit": cohorts.unit, "size": len(members), "digest": digest(list(members))}


@dataclass(frozen=True, kw_only=True)
class Prepared:
    """A training that can begin."""

    loop: Loop
    preparer: Preparer


def prepare(
    job: Job, out: Path, progress: Callable[[Moment], None] | None = None, on_epoch: Sequence[Hook] = ()
) -> Prepared:
    """Build what the recipe names, up to the first step."""
    recipe, working, device = job.recipe, private_folder(out / "working"), pick_device()
    tokenizer = _tokenizer(job, working / "tokenizer")
    data, scale = look_at(job.corpus, recipe)
    network = build_model(recipe, tokenizer, data, seed=job.seed).to(device)
    start = getattr(network.config, "decoder_start_token_id", None) or 0
    preparer = Preparer(recipe=recipe, tokenizer=tokenizer, data=data, scale=scale, decoder_start=start)
    sequences = preparer(job.corpus)
    if len(sequences.lengths) == 0:
        raise CorpusError(f"{job.corpus.name} is too short to train on.", do="Give a longer corpus.")
    sampler, update = (
        _private_steps(job, network, sequences, working) if recipe.private else _steps(job, network, sequences)
    )
    settings = recipe.training
    loop = Loop(
        model=network,
        update=update,
        sampler=sampler,
        rate=Rate(schedule=settings.schedule, initial=settings.learning_rate, steps=sampler.steps * settings.epochs),
        epochs=settings.epochs,
        seed=job.seed,
        folder=working,
        curve_file=out / "curve.json",
        validate=_validation(job, network, preparer),
        stop_after=settings.stop_after,
        keep_best=settings.keep == "best",
        hooks=on_epoch,
        progress=progress,
    )
    return Prepared(loop=loop, preparer=preparer)


def _trained(job: Job, out: Path, progress: Callable[[Moment], None] | None, on_epoch: Sequence[Hook]) -> _Trained:
    """Run the loop to its end."""
    prepared = prepare(job, out, progress, on_epoch)
    loop = prepared.loop
    with _without_cache(loop.model):
        curve = loop.run()
    return _Trained(
        job=job, network=loop.model, preparer=prepared.preparer, curve=curve, privacy=loop.update.statement()
    )


def _tokenizer(job: Job, folder: Path) -> Any:
    """The tokenizer; made once, so that a training that goes on has the very same."""
    if job.recipe.tokenizer is None:
        return None
    if not folder.exists():
        part = folder.with_suffix(".part")
        build_tokenizer(job.recipe, texts_of(job.corpus)).save_pretrained(part)
        part.rename(folder)
    return AutoTokenizer.from_pretrained(folder, local_files_only=True)


def _steps(job: Job, network: Any, sequences: Sequences) -> tuple[Sampler, Update]:
    """Which sequences a step sees, and how it changes the weights."""
    settings, carried = job.recipe.training, _carried(job.recipe)
    if carried:
        sampler: Sampler = InOrder(size=len(sequences.lengths), batch_size=settings.batch_size)
    else:
        sampler = Shuffled(
            lengths=sequences.lengths,
            batch_size=settings.batch_size,
            seed=job.seed,
            bagging=settings.sampling == "bagging",
        )
    update = Plain(
        model=network,
        sequences=sequences,
        optimiser=build_optimiser(settings, network.parameters()),
        seed=job.seed,
        clip=settings.clip,
        accumulate=settings.accumulate,
        carried=carried,
        precision=getattr(torch, settings.precision),
    )
    return sampler, update


def _private_steps(job: Job, network: Any, sequences: Sequences, working: Path) -> tuple[Sampler, Update]:
    """The same with differential privacy; snapshots are kept in the working folder until all is done."""
    from recollect.recipes.private.training import private_training

    def keep(epsilon: float, statement: dict[str, Any]) -> None:
        write_checkpoint(working / f"snapshot-eps-{epsilon:g}.safetensors", weights(network), statement)

    optimiser = build_optimiser(job.recipe.training, network.parameters())
    return private_training(job.recipe, network, sequences, optimiser, seed=job.seed, keep=keep)


def _carried(recipe: Recipe) -> bool:
    """Whether states are carried from step to step; a recipe that cannot do so is refused."""
    if recipe.sequences.layout != "stream":
        return False
    settings = recipe.training
    if recipe.model.kind not in {"recurrent", "convolutional"}:
        raise PlanError(
            f"A {recipe.model.kind} model has no state to carry along a stream.", do="Set sequences.layout=windows."
        )
    if settings.accumulate > 1 or settings.sampling != "shuffle":
        raise PlanError(
            "Streams are read in order and whole: neither bagging nor accumulating is possible.",
            do="Set sequences.layout=windows, or training.accumulate=1 and training.sampling=shuffle.",
        )
    return True


def _validation(job: Job, network: Any, preparer: Preparer) -> Validation | None:
    """What measures the validation loss."""
    if job.validation is None:
        return None
    size = job.recipe.training.batch_size
    return Validation(model=network, sequences=preparer(job.validation), batch_size=size, carried=_carried(job.recipe))


@contextmanager
def _threads(count: int) -> Iterator[None]:
    """Let torch use so many threads, and give back what it had."""
    before = torch.get_num_threads()
    torch.set_num_threads(count)
    try:
        yield
    finally:
        torch.set_num_threads(before)


@contextmanager
def _without_cache(network: Any) -> Iterator[None]:
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
