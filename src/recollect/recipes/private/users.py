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
from recollect.recipes.private.gradients import give_gradients, trained
from recollect.recipes.recipe import Privacy
from recollect.recipes.sampling import Indices
from recollect.recipes.sequences import Sequences
from recollect.recipes.update import Step, summed_loss
from recollect.streams import stream

_ROWS_AT_ONCE = 128


@dataclass(kw_only=True)
class UserGradients:
    """The update of each drawn user: the gradient of their mean loss per symbol, or local epochs of plain SGD."""

    model: nn.Module
    sequences: Sequences
    privacy: Privacy
    seed: int
    _of: list[Indices] = field(init=False, repr=False)
    """The training sequences of each user."""

    def __post_init__(self) -> None:
        self._of = sequences_by_user(self.sequences.users)

    @property
    def users(self) -> int:
        """How many users there are."""
        return len(self._of)

    def parts(self, step: Step) -> Iterator[tuple[Tensor, int]]:
        """Leave user after user in the parameters' `grad_sample`; yields each one's summed loss and symbols."""
        for user in step.drawn:
            rng = stream(self.seed, labels.STREAM_USER, step.number, int(user))
            own, most = self._of[user], self.privacy.most_sequences
            chosen = own if most is None or len(own) <= most else rng.choice(own, most, replace=False)
            yield self._locally(chosen, rng) if self.privacy.update == "fedavg" else self._gradient(chosen, rng)

    def _gradient(self, chosen: Indices, rng: np.random.Generator) -> tuple[Tensor, int]:
        """The gradient of the user's mean loss per symbol."""
        parameters = trained(self.model)
        sums = [torch.zeros_like(parameter) for parameter in parameters]
        total, symbols = torch.zeros((), device=parameters[0].device), 0
        for at in range(0, len(chosen), _ROWS_AT_ONCE):
            loss, count, gradients = self._batch(chosen[at : at + _ROWS_AT_ONCE], rng)
            total, symbols = total + loss, symbols + count
            for summed, gradient in zip(sums, gradients, strict=True):
                summed.add_(gradient)
        self._give([summed / max(1, symbols) for summed in sums])
        return total, symbols

    def _locally(self, chosen: Indices, rng: np.random.Generator) -> tuple[Tensor, int]:
        """Where the user's own training leads from here, as a direction to go down."""
        parameters, size = trained(self.model), self.privacy.local_batch_size
        before = [parameter.detach().clone() for parameter in parameters]
        total, symbols = torch.zeros((), device=parameters[0].device), 0
        for _ in range(self.privacy.local_epochs):
            order = rng.permutation(chosen)
            for at in range(0, len(order), size):
                loss, count, gradients = self._batch(order[at : at + size], rng)
                total, symbols = total + loss, symbols + count
                with torch.no_grad():
                    for parameter, gradient in zip(parameters, gradients, strict=True):
                        parameter.sub_(gradient, alpha=self.privacy.local_learning_rate / max(1, count))
        with torch.no_grad():
            self._give([then - now for then, now in zip(before, parameters, strict=True)])
            for parameter, then in zip(parameters, before, strict=True):
                parameter.copy_(then)
        return total, symbols

    def _batch(self, drawn: Indices, rng: np.random.Generator) -> tuple[Tensor, int, tuple[Tensor, ...]]:
        """The summed loss of some sequences, their symbols, and the gradient of the sum."""
        parameters = trained(self.model)
        batch = self.sequences.batch(drawn, lambda: rng).to(parameters[0].device)
        loss = summed_loss(self.model(**batch.inputs).logits, batch.targets)
        return loss.detach(), batch.symbols, torch.autograd.grad(loss, parameters, materialize_grads=True)

    def _give(self, update: list[Tensor]) -> None:
        """Hand the update over as that of one unit."""
        for parameter, change in zip(trained(self.model), update, strict=True):
            give_gradients(parameter, change.unsqueeze(0))


def sequences_by_user(users: np.ndarray[tuple[int], np.dtype[np.int32]]) -> list[Indices]:
    """The training sequences of each user, in order.

    >>> [own.tolist() for own in sequences_by_user(np.array([0, 1, 0], dtype=np.int32))]
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
