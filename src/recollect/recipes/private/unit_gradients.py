"""What each unit would change, by itself: a training sequence (record-level privacy) or a user (user-level privacy)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import partial
from typing import Protocol

import numpy as np
import torch
from torch import Tensor, nn

from recollect import labels
from recollect.errors import CorpusError
from recollect.recipes.data.sequences import IGNORED, SequenceBatch, TrainingSequences
from recollect.recipes.private.per_record_gradients import (
    check_equal,
    compute_all_at_once,
    get_trained_parameters,
    set_gradients,
)
from recollect.recipes.recipe import Privacy
from recollect.recipes.training.samplers import Indices
from recollect.recipes.training.update import TrainingStep, compute_summed_loss, compute_token_losses
from recollect.streams import stream

_MAX_BYTES = 2**28
"""How much memory the per-record gradients of one part may take."""


@dataclass(kw_only=True)
class RecordUnitGradients:
    """The gradient of each drawn sequence's loss, which is the mean over the tokens it predicts.

    A step's sequences are handled in parts of similar length that fit into memory; a sum does not mind.
    """

    model: nn.Module
    sequences: TrainingSequences
    seed: int
    rows_at_once: int | None = None
    """How many sequences make a part; None for as many as fit into 256 MB."""

    def check(self) -> None:
        """Refuse a model in which two records change each other's gradients; tried on the two longest."""
        longest = np.argsort(self.sequences.lengths, kind="stable")[-2:]
        batch = self.sequences.build_batch(longest, partial(stream, self.seed, labels.STREAM_GRADIENT_CHECK))
        batch = batch.to(next(self.model.parameters()).device)
        check_equal(self.model, lambda piece: compute_record_losses(self.model, piece)[0], batch)

    def iter_contributions(self, step: TrainingStep) -> Iterator[tuple[Tensor, int]]:
        """Leave part after part in the parameters' `grad_sample`; yields each part's summed loss and its tokens."""
        rows, device = self._count_rows, next(self.model.parameters()).device
        indices = step.indices[np.argsort(self.sequences.lengths[step.indices], kind="stable")]
        for at in range(0, len(indices), rows):
            draws = partial(stream, self.seed, labels.STREAM_BATCH, step.number, at)
            batch = self.sequences.build_batch(indices[at : at + rows], draws).to(device)
            yield self._compute_gradients(batch)

    def _compute_gradients(self, batch: SequenceBatch) -> tuple[Tensor, int]:
        """The gradients of one part."""
        total = torch.zeros((), device=batch.targets.device)

        def losses() -> Tensor:
            each, summed = compute_record_losses(self.model, batch)
            total.add_(summed)
            return each

        compute_all_at_once(self.model, losses, records=len(batch.targets))
        return total, batch.token_count

    @property
    def _count_rows(self) -> int:
        """How many sequences, each a unit, are computed at once."""
        if self.rows_at_once is not None:
            return self.rows_at_once
        size = sum(parameter.numel() * parameter.element_size() for parameter in get_trained_parameters(self.model))
        return max(1, _MAX_BYTES // size)


def compute_record_losses(model: nn.Module, batch: SequenceBatch) -> tuple[Tensor, Tensor]:
    """The loss of each unit that is a record: its mean over its tokens, and the sum over all tokens."""
    rows = len(batch.targets)
    nats = compute_token_losses(model(**batch.inputs).logits, batch.targets).view(rows, -1)
    counts = (batch.targets != IGNORED).view(rows, -1).sum(1)
    return nats.sum(1) / counts.clamp(min=1), nats.detach().sum()


_MAX_ROWS = 128


@dataclass(kw_only=True)
class UserUnitGradients:
    """The update of each drawn user: the gradient of their mean loss per token, or local epochs of plain SGD."""

    model: nn.Module
    sequences: TrainingSequences
    privacy: Privacy
    seed: int
    _sequences_of: list[Indices] = field(init=False, repr=False)
    """The training sequences of each user."""

    def __post_init__(self) -> None:
        self._sequences_of = group_sequences_by_user(self.sequences.users)

    @property
    def users(self) -> int:
        """How many users there are."""
        return len(self._sequences_of)

    def iter_contributions(self, step: TrainingStep) -> Iterator[tuple[Tensor, int]]:
        """Leave user after user in the parameters' `grad_sample`; yields each one's summed loss and tokens."""
        for user in step.indices:
            rng = stream(self.seed, labels.STREAM_USER, step.number, int(user))
            own, max_sequences = self._sequences_of[user], self.privacy.most_sequences
            chosen = (
                own
                if max_sequences is None or len(own) <= max_sequences
                else rng.choice(own, max_sequences, replace=False)
            )
            yield (
                self._train_locally(chosen, rng)
                if self.privacy.update == "fedavg"
                else self._compute_gradient(chosen, rng)
            )

    def _compute_gradient(self, chosen: Indices, rng: np.random.Generator) -> tuple[Tensor, int]:
        """The gradient of the user's mean loss per token."""
        parameters = get_trained_parameters(self.model)
        sums = [torch.zeros_like(parameter) for parameter in parameters]
        total, token_count = torch.zeros((), device=parameters[0].device), 0
        for at in range(0, len(chosen), _MAX_ROWS):
            loss, count, gradients = self._compute_batch(chosen[at : at + _MAX_ROWS], rng)
            total, token_count = total + loss, token_count + count
            for summed, gradient in zip(sums, gradients, strict=True):
                summed.add_(gradient)
        self._set_update([summed / max(1, token_count) for summed in sums])
        return total, token_count

    def _train_locally(self, chosen: Indices, rng: np.random.Generator) -> tuple[Tensor, int]:
        """Where the user's own training leads from here, as a direction to go down."""
        parameters, size = get_trained_parameters(self.model), self.privacy.local_batch_size
        before = [parameter.detach().clone() for parameter in parameters]
        total, token_count = torch.zeros((), device=parameters[0].device), 0
        for _ in range(self.privacy.local_epochs):
            order = rng.permutation(chosen)
            for at in range(0, len(order), size):
                loss, count, gradients = self._compute_batch(order[at : at + size], rng)
                total, token_count = total + loss, token_count + count
                with torch.no_grad():
                    for parameter, gradient in zip(parameters, gradients, strict=True):
                        parameter.sub_(gradient, alpha=self.privacy.local_learning_rate / max(1, count))
        with torch.no_grad():
            self._set_update([then - now for then, now in zip(before, parameters, strict=True)])
            for parameter, then in zip(parameters, before, strict=True):
                parameter.copy_(then)
        return total, token_count

    def _compute_batch(self, indices: Indices, rng: np.random.Generator) -> tuple[Tensor, int, tuple[Tensor, ...]]:
        """The summed loss of some sequences, their tokens, and the gradient of the sum."""
        parameters = get_trained_parameters(self.model)
        batch = self.sequences.build_batch(indices, lambda: rng).to(parameters[0].device)
        loss = compute_summed_loss(self.model(**batch.inputs).logits, batch.targets)
        return loss.detach(), batch.token_count, torch.autograd.grad(loss, parameters, materialize_grads=True)

    def _set_update(self, update: list[Tensor]) -> None:
        """Hand the update over as that of one unit."""
        for parameter, change in zip(get_trained_parameters(self.model), update, strict=True):
            set_gradients(parameter, change.unsqueeze(0))


def group_sequences_by_user(users: np.ndarray[tuple[int], np.dtype[np.int32]]) -> list[Indices]:
    """The training sequences of each unit that is a user, in order.

    >>> [own.tolist() for own in group_sequences_by_user(np.array([0, 1, 0], dtype=np.int32))]
    [[0, 2], [1]]
    """
    if len(users) and users.min() < 0:
        raise CorpusError(
            "Some training sequences hold several people's texts, so no user's influence can be bounded.",
            do="Use sequences.layout records and a corpus with users.",
            code="joined_users",
        )
    order = np.argsort(users, kind="stable")
    return np.split(order, np.cumsum(np.bincount(users))[:-1])


class UnitGradients(Protocol):
    """What the drawn units would change, each by itself."""

    def iter_contributions(self, step: TrainingStep) -> Iterator[tuple[Tensor, int]]:
        """Leave part after part in the parameters' `grad_sample`; yields each part's summed loss and its tokens."""
