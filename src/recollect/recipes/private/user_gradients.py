"""What each user would change: one update for all of their texts, for user-level differential privacy.

McMahan, Ramage, Talwar and Zhang 2018, "Learning Differentially Private Recurrent Language Models": users are drawn,
each one's update is clipped as a whole, and noise is added to the sum. So a user counts alike with ten texts or ten
thousand. Every user has the same weight, and the sum is divided by the expected number of users.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
import torch
from torch import Tensor, nn

from recollect import labels
from recollect.errors import CorpusError
from recollect.recipes.private.gradients import get_trained_parameters, set_gradients
from recollect.recipes.recipe import Privacy
from recollect.recipes.samplers import Indices
from recollect.recipes.sequences import Sequences
from recollect.recipes.update import Step, compute_summed_loss
from recollect.streams import stream

_MAX_ROWS = 128


@dataclass(kw_only=True)
class UserGradients:
    """The update of each drawn user: the gradient of their mean loss per token, or local epochs of plain SGD."""

    model: nn.Module
    sequences: Sequences
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

    def iter_contributions(self, step: Step) -> Iterator[tuple[Tensor, int]]:
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
    """The training sequences of each user, in order.

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
