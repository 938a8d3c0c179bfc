"""How one step changes the weights. This is the plain way; `private/` has those with differential privacy."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Protocol

import torch
from torch import Tensor

from recollect import labels
from recollect.recipes.data.sequences import IGNORED, SequenceBatch, TrainingSequences
from recollect.recipes.training.checkpoints import add_prefix, get_optimiser_state, select_prefix, set_optimiser_state
from recollect.recipes.training.samplers import Indices
from recollect.streams import stream


@dataclass(frozen=True, kw_only=True)
class TrainingStep:
    """One step of a training."""

    number: int
    """Counted from zero over the whole training."""
    starts_epoch: bool
    """Whether an epoch begins here."""
    indices: Indices
    """The training sequences to learn from."""
    rate: float
    """The learning rate."""


class Update(Protocol):
    """How a step changes the weights: the seam between the loop and differential privacy.

    Whatever is random must follow from the seed and the step's number, so that a killed training ends alike.
    """

    def step(self, step: TrainingStep) -> tuple[Tensor, int]:
        """Change the weights: the loss summed over the predicted tokens (in nats), and how many they were."""

    def get_state(self) -> tuple[dict[str, Tensor], dict[str, Any]]:
        """Tensors and facts that it must be given back to continue."""

    def restore(self, tensors: Mapping[str, Tensor], facts: Mapping[str, Any]) -> None:
        """Resume from what `get_state` returned."""

    def get_spent(self) -> dict[str, Any] | None:
        """The (ε, δ) spent so far, for the curve; None without differential privacy."""

    def build_statement(self) -> dict[str, Any] | None:
        """All that the card says about privacy; None without differential privacy."""


def compute_token_losses(logits: Tensor, targets: Tensor) -> Tensor:
    """The loss that an update goes by: of every predicted token in nats, zero where nothing is predicted."""
    losses = torch.nn.functional.cross_entropy(
        logits.flatten(0, -2), targets.flatten(), ignore_index=IGNORED, reduction="none"
    )
    return losses.view_as(targets)


def compute_summed_loss(logits: Tensor, targets: Tensor) -> Tensor:
    """The loss that an update goes by, summed over all predicted tokens, in nats."""
    return torch.nn.functional.cross_entropy(
        logits.flatten(0, -2), targets.flatten(), ignore_index=IGNORED, reduction="sum"
    )


@dataclass(kw_only=True)
class PlainUpdate:
    """Gradient of the mean loss per token, clipped on request, passed to the optimiser."""

    model: torch.nn.Module
    sequences: TrainingSequences
    optimiser: torch.optim.Optimizer
    seed: int
    clip: float | None = None
    accumulate: int = 1
    carries_state: bool = False
    """Whether the model's state continues from one step to the next (parallel streams)."""
    precision: torch.dtype = torch.float32
    _state: Any = None
    _scaler: torch.amp.GradScaler | None = field(init=False, default=None)

    def __post_init__(self) -> None:
        self._device = next(self.model.parameters()).device
        self._trained = [parameter for parameter in self.model.parameters() if parameter.requires_grad]
        if self.precision == torch.float16:  # it has too few exponents for small gradients; others need no scaling
            self._scaler = torch.amp.GradScaler(self._device.type)

    def step(self, step: TrainingStep) -> tuple[Tensor, int]:
        """Change the weights: the loss summed over the predicted tokens (in nats), and how many they were."""
        draws = partial(stream, self.seed, labels.STREAM_BATCH, step.number)
        batch = self.sequences.build_batch(step.indices, draws).to(self._device)
        losses = []
        self.optimiser.zero_grad()
        for piece in batch.split(self.accumulate):
            loss = self._compute_loss(piece, fresh=step.starts_epoch)
            self._backward(loss, share=1 / max(1, batch.token_count))
            losses.append(loss.detach())
        self._apply(step.rate)
        return losses[0] if len(losses) == 1 else torch.stack(losses).sum(), batch.token_count

    def _compute_loss(self, batch: SequenceBatch, *, fresh: bool) -> Tensor:
        """The summed loss of a batch; the state is carried over on request."""
        with self._autocast():
            if not self.carries_state:
                return compute_summed_loss(self.model(**batch.inputs).logits, batch.targets)
            state = None if fresh else self._state
            output = self.model(**batch.inputs, past_key_values=state, use_cache=True)
            self._state = tuple(tensor.detach() for tensor in output.past_key_values)
            return compute_summed_loss(output.logits, batch.targets)

    def _backward(self, loss: Tensor, *, share: float) -> None:
        """Add the gradient of the mean loss per token."""
        if self._scaler is not None:
            loss = self._scaler.scale(loss)
        loss.backward(torch.full_like(loss, share))  # type: ignore[no-untyped-call]

    def _autocast(self) -> AbstractContextManager[None]:
        """Where the model computes in a shorter format than its weights have, if it does."""
        if self.precision == torch.float32:
            return nullcontext()
        return torch.autocast(self._device.type, self.precision)

    def _apply(self, rate: float) -> None:
        """Let the optimiser use the gradients."""
        for group in self.optimiser.param_groups:
            group["lr"] = rate
        if self.clip is not None:
            if self._scaler is not None:
                self._scaler.unscale_(self.optimiser)
            torch.nn.utils.clip_grad_norm_(self._trained, self.clip)
        if self._scaler is None:
            self.optimiser.step()
        else:
            self._scaler.step(self.optimiser)
            self._scaler.update()

    def get_state(self) -> tuple[dict[str, Tensor], dict[str, Any]]:
        """Tensors and facts that it must be given back to continue."""
        tensors, numbers = get_optimiser_state(self.optimiser)
        carry = {str(i): tensor for i, tensor in enumerate(self._state or ())}
        facts = {"optimiser": numbers, "scaler": None if self._scaler is None else self._scaler.state_dict()}
        return {**add_prefix("optimiser", tensors), **add_prefix("carry", carry)}, facts

    def restore(self, tensors: Mapping[str, Tensor], facts: Mapping[str, Any]) -> None:
        """Resume from what `get_state` returned."""
        set_optimiser_state(self.optimiser, select_prefix(tensors, "optimiser"), facts["optimiser"])
        carry = select_prefix(tensors, "carry")
        self._state = tuple(carry[str(i)] for i in range(len(carry))) or None
        if self._scaler is not None:
            self._scaler.load_state_dict(facts["scaler"])

    def get_spent(self) -> dict[str, Any] | None:
        """None: nothing bounds what one record may change."""
        return None

    def build_statement(self) -> dict[str, Any] | None:
        """None: nothing bounds what one record may change."""
        return None
