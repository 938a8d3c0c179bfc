"""From a job to a loop that is ready to run: tokenizer, model, sequences, sampler and update put together."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from transformers import AutoTokenizer

from recollect.errors import CorpusError, PlanError, StoreError
from recollect.files import (
    fill_folder,
    find_faults,
    make_private_folder,
    read_folder_manifest,
    write_folder_manifest,
)
from recollect.models.loading.devices import pick_device
from recollect.recipes.data.sequence_builder import SequenceBuilder, inspect_corpus, iter_sequence_texts
from recollect.recipes.data.sequences import TrainingSequences
from recollect.recipes.model_builder import build_model, build_tokenizer
from recollect.recipes.recipe import Recipe
from recollect.recipes.training.checkpoints import get_weights, write_checkpoint
from recollect.recipes.training.job import Job
from recollect.recipes.training.loop import Hook, Loop, TrainingProgress
from recollect.recipes.training.optimisers import LearningRate, build_optimiser
from recollect.recipes.training.samplers import Sampler, SequentialSampler, ShuffledSampler
from recollect.recipes.training.update import PlainUpdate, Update
from recollect.recipes.training.validation import Validation

_LIST = "manifest.json"
"""The SHA-256 of each file of a tokenizer, beside them: it is written last."""


@dataclass(frozen=True, kw_only=True)
class PreparedTraining:
    """A training that can begin."""

    loop: Loop
    preparer: SequenceBuilder


def assemble_training(
    job: Job,
    out: Path | None,
    progress: Callable[[TrainingProgress], None] | None = None,
    on_epoch: Sequence[Hook] = (),
) -> PreparedTraining:
    """Build what the recipe names, up to the first step; without a folder, a training of which nothing is kept."""
    recipe, device = job.recipe, pick_device()
    working = None if out is None else make_private_folder(out / "working")
    if recipe.training.precision != "float32" and device.type == "cpu":
        raise PlanError(
            f"training.precision is {recipe.training.precision}, but there is no GPU.",
            do="Set precision=float32.",
            code="precision_needs_gpu",
        )
    tokenizer = _assemble_tokenizer(job, None if working is None else working / "tokenizer")
    data, scale = inspect_corpus(job.corpus, recipe)
    network = build_model(recipe, tokenizer, data, seed=job.seed).to(device)
    start = getattr(network.config, "decoder_start_token_id", None) or 0
    preparer = SequenceBuilder(recipe=recipe, tokenizer=tokenizer, data=data, scale=scale, decoder_start=start)
    sequences = preparer(job.corpus)
    if len(sequences.lengths) == 0:
        raise CorpusError(
            f"{job.corpus.name} is too short to train on.", do="Give a longer corpus.", code="corpus_too_short"
        )
    sampler, update = (
        _assemble_private_steps(job, network, sequences, working)
        if recipe.private
        else _assemble_steps(job, network, sequences)
    )
    settings = recipe.training
    loop = Loop(
        model=network,
        update=update,
        sampler=sampler,
        rate=LearningRate(
            schedule=settings.schedule, initial=settings.learning_rate, steps=sampler.steps * settings.epochs
        ),
        epochs=settings.epochs,
        seed=job.seed,
        folder=working,
        curve_file=None if out is None else out / "curve.json",
        validate=_build_validation(job, network, preparer),
        stop_after=settings.stop_after,
        keep_best=settings.keep == "best",
        hooks=on_epoch,
        tokenizer=tokenizer,
        card_entries=preparer.card_entries,
        progress=progress,
    )
    return PreparedTraining(loop=loop, preparer=preparer)


def _assemble_tokenizer(job: Job, folder: Path | None) -> Any:
    """The tokenizer of an assembled training; made once, so that a resumed training has the very same."""
    if job.recipe.tokenizer is None:
        return None
    if folder is None:
        return build_tokenizer(job.recipe, iter_sequence_texts(job.corpus))
    if not (folder / _LIST).exists():
        with fill_folder(folder) as pieces:
            build_tokenizer(job.recipe, iter_sequence_texts(job.corpus)).save_pretrained(pieces)
        write_folder_manifest(folder, _LIST, {})
    if find_faults(folder, read_folder_manifest(folder, _LIST)["files"], ignore=[_LIST]):
        raise StoreError(
            f"The tokenizer in '{folder}' is damaged.",
            do=f"Delete this folder to train from the beginning: '{folder.parent}'.",
            code="tokenizer_damaged",
        )
    return AutoTokenizer.from_pretrained(folder, local_files_only=True)


def _assemble_steps(job: Job, network: Any, sequences: TrainingSequences) -> tuple[Sampler, Update]:
    """Assemble the sampler and the update of a training."""
    settings, carries_state = job.recipe.training, _carries_state(job.recipe)
    if carries_state:
        sampler: Sampler = SequentialSampler(size=len(sequences.lengths), batch_size=settings.batch_size)
    else:
        sampler = ShuffledSampler(
            lengths=sequences.lengths,
            batch_size=settings.batch_size,
            seed=job.seed,
            bagging=settings.sampling == "bagging",
        )
    update = PlainUpdate(
        model=network,
        sequences=sequences,
        optimiser=build_optimiser(settings, network.parameters()),
        seed=job.seed,
        clip=settings.clip,
        accumulate=settings.accumulate,
        carries_state=carries_state,
        precision=getattr(torch, settings.precision),
    )
    return sampler, update


def _assemble_private_steps(
    job: Job, network: Any, sequences: TrainingSequences, working: Path | None
) -> tuple[Sampler, Update]:
    """Assemble the sampler and the update of a training with differential privacy, and its snapshots."""
    from recollect.recipes.private.private_update import build_private_update

    def keep(epsilon: float, statement: dict[str, Any]) -> None:
        if working is not None:
            write_checkpoint(working / f"snapshot-eps-{epsilon:g}.safetensors", get_weights(network), statement)

    optimiser = build_optimiser(job.recipe.training, network.parameters())
    return build_private_update(job.recipe, network, sequences, optimiser, seed=job.seed, keep=keep)


def _carries_state(recipe: Recipe) -> bool:
    """Whether the assembled training carries states from step to step; refuses a layout that the model cannot read."""
    layout, settings = recipe.sequences.layout, recipe.training
    if layout != "records" and recipe.task != "causal":
        raise PlanError(
            f"A {recipe.task} model reads records one by one.",
            do="Set sequences.layout=records.",
            code="layout_of_another_task",
        )
    if layout != "stream":
        return False
    if recipe.model.kind not in {"recurrent", "convolutional"}:
        raise PlanError(
            f"A {recipe.model.kind} model has no state to carry along a stream.",
            do="Set sequences.layout=windows.",
            code="no_state_to_carry",
        )
    if settings.accumulate > 1 or settings.sampling != "shuffle":
        raise PlanError(
            "Streams are read in order and whole: neither bagging nor accumulating is possible.",
            do="Set sequences.layout=windows, or training.accumulate=1 and training.sampling=shuffle.",
            code="stream_settings",
        )
    return True


def _build_validation(job: Job, network: Any, preparer: SequenceBuilder) -> Validation | None:
    """What measures the validation loss, assembled for a training."""
    if job.validation is None:
        return None
    size = job.recipe.training.batch_size
    return Validation(
        model=network, sequences=preparer(job.validation), batch_size=size, carries_state=_carries_state(job.recipe)
    )
