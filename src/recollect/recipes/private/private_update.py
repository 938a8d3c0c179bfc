"""Puts private training together: what the loop needs in place of the plain update and the plain sampler."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

import torch
from torch import Tensor, nn

from recollect.recipes.private.mechanism import Mechanism, Poisson
from recollect.recipes.private.privacy_terms import settle_terms
from recollect.recipes.private.record_gradients import RecordGradients
from recollect.recipes.private.supported_layers import check_layers
from recollect.recipes.private.user_gradients import UserGradients
from recollect.recipes.recipe import Recipe
from recollect.recipes.sequences import Sequences
from recollect.recipes.update import Step

Keep = Callable[[float, dict[str, Any]], None]
"""Keeps the model as it is now: the ε it stays within, and the statement for its card."""


class UnitGradients(Protocol):
    """What the drawn units would change, each by itself."""

    def iter_contributions(self, step: Step) -> Iterator[tuple[Tensor, int]]:
        """Leave part after part in the parameters' `grad_sample`; yields each part's summed loss and its tokens."""


@dataclass(kw_only=True)
class PrivateUpdate:
    """A step with differential privacy: every unit clipped, noise on the sum, the expense counted."""

    mechanism: Mechanism
    contributions: UnitGradients
    snapshots: Mapping[float, int] = field(default_factory=dict)
    """Within which ε the model is to be kept, and after how many steps that is."""
    keep: Keep | None = None

    def step(self, step: Step) -> tuple[Tensor, int]:
        """Change the weights: the loss summed over the predicted tokens (in nats), and how many they were."""
        device = next(self.mechanism.model.parameters()).device
        total, token_count = torch.zeros((), device=device), 0
        for loss, count in self.contributions.iter_contributions(step):
            self.mechanism.add()
            total, token_count = total + loss, token_count + count
        self.mechanism.release(step.number, step.rate)
        self._keep_snapshots(step.number + 1)
        return total, token_count

    def _keep_snapshots(self, steps: int) -> None:
        """Keep the model if after so many steps one is due."""
        for epsilon, last in self.snapshots.items():
            if last == steps and self.keep is not None:
                self.keep(epsilon, self.build_statement())

    def get_state(self) -> tuple[dict[str, Tensor], dict[str, Any]]:
        """Tensors and facts that it must be given back to continue."""
        return self.mechanism.get_state()

    def restore(self, tensors: Mapping[str, Tensor], facts: Mapping[str, Any]) -> None:
        """Resume from what `get_state` returned."""
        self.mechanism.restore(tensors, facts)

    def get_spent(self) -> dict[str, Any]:
        """The (ε, δ) spent so far; an ε of null is infinite."""
        statement = self.build_statement()
        return {"epsilon": statement["epsilon"], "delta": statement["delta"]}

    def build_statement(self) -> dict[str, Any]:
        """All that the card of the model says about privacy."""
        ledger = self.mechanism.ledger
        return self.mechanism.terms.build_statement(ledger.compute_epsilon(), ledger.steps)


def build_private_update(
    recipe: Recipe,
    model: nn.Module,
    sequences: Sequences,
    optimiser: torch.optim.Optimizer,
    *,
    seed: int,
    keep: Keep | None = None,
) -> tuple[Poisson, PrivateUpdate]:
    """The sampler and the update of a private training; refuses a model that cannot be trained so.

    Args:
        recipe: One whose privacy names a unit; `terms.check_recipe` has passed it.
        model: What is trained.
        sequences: What it is trained on, one record per sequence at most.
        optimiser: Any of torch's; it sees the noisy gradient only.
        seed: Of all draws and all noise.
        keep: Called when a snapshot is due.
    """
    privacy, training = recipe.privacy, recipe.training
    contributions: UnitGradients
    if privacy.unit == "user":
        check_layers(model, "user")
        contributions = UserGradients(model=model, sequences=sequences, privacy=privacy, seed=seed)
        units = contributions.users
    else:
        check_layers(model, "record")
        contributions = RecordGradients(model=model, sequences=sequences, seed=seed)
        contributions.check()
        units = len(sequences.lengths)
    terms = settle_terms(privacy, units=units, batch_size=training.batch_size, epochs=training.epochs)
    update = PrivateUpdate(
        mechanism=Mechanism(model=model, optimiser=optimiser, terms=terms, seed=seed),
        contributions=contributions,
        snapshots=terms.schedule_snapshots(privacy.snapshots),
        keep=keep,
    )
    return Poisson(terms=terms, seed=seed, epochs=training.epochs), update
