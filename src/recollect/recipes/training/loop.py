"""The training loop. Read this to know what training does.

It knows nothing of architectures, texts or privacy: `Update` says how a step changes the weights, `Sampler` which
sequences a step sees. Everything random follows from the seed and the number of the step: the global random state
(which dropout uses) is set before each step and put back at the end. So the state of a training is its weights, its
optimiser and its position, and one that is killed and started again ends with the same weights.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from recollect import labels
from recollect.errors import ModelError
from recollect.files import write_json
from recollect.recipes.training.checkpoints import (
    add_prefix,
    get_weights,
    read_checkpoint,
    select_prefix,
    set_weights,
    write_checkpoint,
)
from recollect.recipes.training.optimisers import LearningRate
from recollect.recipes.training.samplers import Sampler, iter_remaining
from recollect.recipes.training.update import TrainingStep, Update
from recollect.streams import derive_seed

Curve = list[dict[str, Any]]
"""One row per epoch: epoch, training_loss and validation_loss (nats per token), learning_rate, seconds …"""


@dataclass(frozen=True, kw_only=True)
class TrainingProgress:
    """Where a training is, for whoever draws its progress."""

    epoch: int
    """Counted from one."""
    epochs: int
    step: int
    """Steps done in all."""
    steps: int
    """Steps there will be in all, unless it stops early."""
    loss: float
    """Mean training loss of the running epoch, in nats per token."""


@dataclass(frozen=True, kw_only=True)
class EpochSummary:
    """What a hook sees at the end of each epoch."""

    epoch: int
    """Counted from one."""
    model: torch.nn.Module
    """In evaluation mode; the hook must leave the weights alone."""
    tokenizer: Any
    """None for models of arrays."""
    card_entries: Mapping[str, Any]
    """What the card will say about how the model is read: `start_symbol`, `input_mean`, `input_std`."""
    curve: Curve
    """With this epoch's row last; numbers that the hook returns are added to it."""


Hook = Callable[[EpochSummary], Mapping[str, Any] | None]


@dataclass(kw_only=True)
class Position:
    """How far a training has come."""

    epoch: int = 0
    """Epochs done."""
    within: int = 0
    """Steps done in the running epoch."""
    step: int = 0
    """Steps done in all."""
    loss: float = 0.0
    """Summed over the running epoch, in nats."""
    tokens: int = 0
    """Predicted in the running epoch."""
    seconds: float = 0.0
    """Spent in the running epoch."""
    curve: Curve = field(default_factory=list)
    best_loss: float | None = None
    best_epoch: int = 0
    finished: bool = False


@dataclass(kw_only=True)
class Loop:
    """A training that can be killed at any moment and continues where its last checkpoint is."""

    model: torch.nn.Module
    update: Update
    sampler: Sampler
    rate: LearningRate
    epochs: int
    seed: int
    folder: Path | None
    """Where checkpoints are kept; None for a trial, which takes a few steps and is never run."""
    curve_file: Path | None = None
    """Where the curve is written after each epoch."""
    validate: Callable[[], float] | None = None
    """The validation loss of the model as it is, in nats per token."""
    stop_after: int | None = None
    keep_best: bool = False
    hooks: Sequence[Hook] = ()
    tokenizer: Any = None
    """For the hooks, like the next."""
    card_entries: Mapping[str, Any] = field(default_factory=dict)
    progress: Callable[[TrainingProgress], None] | None = None
    checkpoint_seconds: float = 60.0
    """How often a checkpoint is written within an epoch; there is one at the end of each."""
    position: Position = field(default_factory=Position)
    _loss: Tensor = field(default_factory=lambda: torch.zeros((), dtype=torch.float64))
    """Summed over the running epoch; kept on the model's device, so that no step waits for it."""

    def run(self) -> Curve:
        """Train to the end, from the beginning or from the last checkpoint; the curve."""
        with preserve_random_state():
            self._resume()
            while not self.position.finished:
                self._epoch()
        if self.keep_best and self._best_file.exists():
            set_weights(self.model, read_checkpoint(self._best_file, self._device)[0])
        return self.position.curve

    def _epoch(self) -> None:
        """The steps of one epoch that are still to do, and its end."""
        position = self.position
        self.model.train()
        self._loss = torch.tensor(position.loss, dtype=torch.float64, device=self._device)
        began = shown = saved = time.monotonic()
        for indices in iter_remaining(self.sampler, position.epoch, position.within):
            self._step(indices)
            now = time.monotonic()
            if now - shown > 0.2:
                self._report_progress()
                shown = now
            if now - saved > self.checkpoint_seconds:
                position.loss, position.seconds, began = float(self._loss), position.seconds + now - began, now
                self._save()
                saved = time.monotonic()
        position.seconds += time.monotonic() - began
        self._end_epoch()

    def _step(self, indices: Any) -> None:
        """One step, with a random state of its own."""
        position = self.position
        seed_random_state(derive_seed(self.seed, labels.STREAM_STEP, position.step), self._device)
        step = TrainingStep(
            number=position.step,
            starts_epoch=position.within == 0,
            indices=indices,
            rate=self.rate.get_rate(position.step),
        )
        loss, token_count = self.update.step(step)
        self._loss += loss
        position.tokens += token_count
        position.step += 1
        position.within += 1

    def _end_epoch(self) -> None:
        """Validate, write the curve, call the hooks, and save everything."""
        position = self.position
        self.model.eval()
        position.epoch += 1
        position.loss = float(self._loss)
        if not math.isfinite(position.loss):
            raise ModelError(
                f"The loss is no longer a number in epoch {position.epoch}.",
                do="Lower the learning rate, or clip the gradient (training.clip), and train into another folder.",
                code="loss_not_finite",
            )
        row: dict[str, Any] = {
            "epoch": position.epoch,
            "training_loss": position.loss / max(1, position.tokens),
            "validation_loss": self.validate() if self.validate is not None else None,
            "learning_rate": self.rate.get_rate(max(0, position.step - 1)),
            "steps": position.step,
            "tokens": position.tokens,
            "seconds": round(position.seconds, 3),
        }
        spent = self.update.get_spent()
        position.curve.append(row if spent is None else {**row, **spent})
        self._update_best(row["validation_loss"], row["training_loss"])
        end = EpochSummary(
            epoch=position.epoch,
            model=self.model,
            tokenizer=self.tokenizer,
            card_entries=self.card_entries,
            curve=position.curve,
        )
        for hook in self.hooks:
            position.curve[-1].update(hook(end) or {})
        position.within, position.loss, position.tokens, position.seconds = 0, 0.0, 0, 0.0
        self._save()
        if self.curve_file is not None:
            write_json(self.curve_file, position.curve)
        self._report_progress()

    def _update_best(self, validation: float | None, training: float) -> None:
        """What the epoch's loss means for the learning rate, the best weights, and whether to continue."""
        position = self.position
        watched = training if validation is None else validation
        self.rate.end_epoch(watched)
        if position.best_loss is None or watched < position.best_loss:
            position.best_loss, position.best_epoch = watched, position.epoch
            if self.keep_best:
                write_checkpoint(self._best_file, get_weights(self.model), {"epoch": position.epoch})
        patience = self.stop_after
        stopped = patience is not None and position.epoch - position.best_epoch >= patience
        position.finished = stopped or position.epoch >= self.epochs

    def _report_progress(self) -> None:
        """Report the progress."""
        position = self.position
        running = position.within > 0
        loss = float(self._loss) / max(1, position.tokens) if running else position.curve[-1]["training_loss"]
        moment = TrainingProgress(
            epoch=position.epoch + running,
            epochs=self.epochs,
            step=position.step,
            steps=self.sampler.steps * self.epochs,
            loss=loss,
        )
        if self.progress is not None:
            self.progress(moment)

    def _save(self) -> None:
        """Write down all that it takes to continue."""
        tensors, facts = self.update.get_state()
        write_checkpoint(
            self._file,
            {**add_prefix("weights", get_weights(self.model)), **tensors},
            {"position": asdict(self.position), "rate": self.rate.get_state(), "update": facts},
        )

    def _resume(self) -> None:
        """Go on from the last checkpoint, if there is one."""
        if not self._file.exists():
            return
        tensors, facts = read_checkpoint(self._file, self._device)
        set_weights(self.model, select_prefix(tensors, "weights"))
        self.update.restore(tensors, facts["update"])
        self.rate.restore(facts["rate"])
        self.position = Position(**facts["position"])

    @cached_property
    def _device(self) -> torch.device:
        """Where the model is."""
        return next(self.model.parameters()).device

    @property
    def _file(self) -> Path:
        """The last checkpoint."""
        return self._get_folder() / "checkpoint.safetensors"

    @property
    def _best_file(self) -> Path:
        """The weights of the best epoch."""
        return self._get_folder() / "best.safetensors"

    def _get_folder(self) -> Path:
        """The folder of a training that is run."""
        assert self.folder is not None, "a trial keeps nothing"  # noqa: S101 - of our own making
        return self.folder


def seed_random_state(seed: int, device: torch.device) -> None:
    """Set the global random state that dropout draws from in the loop."""
    if device.type == "cpu":
        torch.default_generator.manual_seed(seed % 2**63)  # a tenth of the time of torch.manual_seed
    else:
        torch.manual_seed(seed % 2**63)


@contextmanager
def preserve_random_state() -> Iterator[None]:
    """Give back the global random state after the loop as it was found."""
    devices = range(torch.cuda.device_count()) if torch.cuda.is_available() else ()
    with torch.random.fork_rng(devices=list(devices)):
        yield
