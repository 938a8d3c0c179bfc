"""The step of a private training: the Gaussian mechanism (clip, sum, noise, count), Poisson sampling, the update."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from opacus.optimizers import DPOptimizer
from opacus.utils.uniform_sampler import UniformWithReplacementSampler
from torch import Tensor, nn

from recollect import labels
from recollect.recipes.data.sequences import TrainingSequences
from recollect.recipes.private.accountant import AccountantLedger
from recollect.recipes.private.per_record_gradients import set_empty_gradients
from recollect.recipes.private.privacy_terms import PrivacyTerms, settle_terms
from recollect.recipes.private.supported_layers import check_layers
from recollect.recipes.private.unit_gradients import RecordUnitGradients, UnitGradients, UserUnitGradients
from recollect.recipes.recipe import Recipe
from recollect.recipes.training.checkpoints import add_prefix, get_optimiser_state, select_prefix, set_optimiser_state
from recollect.recipes.training.samplers import Indices
from recollect.recipes.training.update import TrainingStep
from recollect.streams import derive_seed


@dataclass(kw_only=True)
class PrivateMechanism:
    """Takes units' gradients in any number of parts, then releases one noisy step.

    The noise of a step follows from the seed and the step's number alone, so a training that was killed repeats the
    very same release; the ledger is kept with the weights that spent it.
    """

    model: nn.Module
    optimiser: torch.optim.Optimizer
    terms: PrivacyTerms
    seed: int
    ledger: AccountantLedger = field(init=False)
    _noisy: Any = field(init=False, repr=False)

    def __post_init__(self) -> None:
        self.ledger = AccountantLedger(delta=self.terms.delta, method=self.terms.method)
        self._noisy = DPOptimizer(
            self.optimiser,
            noise_multiplier=self.terms.noise,
            max_grad_norm=self.terms.clip,
            expected_batch_size=self.terms.expected_batch,
            generator=torch.Generator(next(self.model.parameters()).device),
            secure_mode=self.terms.secret_noise,
        )
        self._noisy.attach_step_hook(self.ledger.accountant.get_optimizer_hook_fn(self.terms.rate))

    def add(self) -> None:
        """Clip the units whose gradients are in the parameters' `grad_sample`, and add them to the sum."""
        self._noisy.signal_skip_step(do_skip=True)
        self._noisy.step()
        self._noisy.zero_grad(set_to_none=True)

    def release(self, number: int, rate: float) -> None:
        """End a step: noise onto the sum (of nobody, if nobody was drawn), count it, let the optimiser use it.

        Args:
            number: The step's, counted from zero.
            rate: The learning rate.
        """
        for group in self.optimiser.param_groups:
            group["lr"] = rate
        self._noisy.generator.manual_seed(_derive_noise_seed(self.terms, self.seed, labels.STREAM_NOISE, number))
        set_empty_gradients(self.model)
        self._noisy.signal_skip_step(do_skip=False)
        self._noisy.step()
        self._noisy.zero_grad(set_to_none=True)

    def get_state(self) -> tuple[dict[str, Tensor], dict[str, Any]]:
        """Tensors and facts that it must be given back to continue."""
        tensors, numbers = get_optimiser_state(self.optimiser)
        return add_prefix("optimiser", tensors), {"optimiser": numbers, "ledger": self.ledger.get_state()}

    def restore(self, tensors: Mapping[str, Tensor], facts: Mapping[str, Any]) -> None:
        """Resume from what `get_state` returned."""
        set_optimiser_state(self.optimiser, select_prefix(tensors, "optimiser"), facts["optimiser"])
        self.ledger.restore(facts["ledger"])


@dataclass(frozen=True, kw_only=True)
class PrivatePoissonSampler:
    """Draws each unit independently for every step: training sequences, or users. A draw may be empty."""

    terms: PrivacyTerms
    seed: int
    epochs: int

    @property
    def steps(self) -> int:
        """How many steps an epoch has."""
        return self.terms.steps // self.epochs

    def iter_batches(self, epoch: int) -> Iterator[Indices]:
        """The numbers of the units of each step of an epoch."""
        generator = torch.Generator()
        generator.manual_seed(_derive_noise_seed(self.terms, self.seed, labels.STREAM_POISSON, epoch))
        sampler = UniformWithReplacementSampler(
            num_samples=self.terms.units, sample_rate=self.terms.rate, generator=generator, steps=self.steps
        )
        for units in sampler:
            yield np.array(units, dtype=np.int64)


def _derive_noise_seed(terms: PrivacyTerms, seed: int, name: str, number: int) -> int:
    """The seed of the noise of one private step; nobody's to know where noise must be secret."""
    return secrets.randbits(63) if terms.secret_noise else derive_seed(seed, name, number) % 2**63


Keep = Callable[[float, dict[str, Any]], None]
"""Keeps the model as it is now: the ε it stays within, and the statement for its card."""


@dataclass(kw_only=True)
class PrivateUpdate:
    """A step with differential privacy: every unit clipped, noise on the sum, the expense counted."""

    mechanism: PrivateMechanism
    contributions: UnitGradients
    snapshots: Mapping[float, int] = field(default_factory=dict)
    """Within which ε the model is to be kept, and after how many steps that is."""
    keep: Keep | None = None

    def step(self, step: TrainingStep) -> tuple[Tensor, int]:
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
    sequences: TrainingSequences,
    optimiser: torch.optim.Optimizer,
    *,
    seed: int,
    keep: Keep | None = None,
) -> tuple[PrivatePoissonSampler, PrivateUpdate]:
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
        contributions = UserUnitGradients(model=model, sequences=sequences, privacy=privacy, seed=seed)
        units = contributions.users
    else:
        check_layers(model, "record")
        contributions = RecordUnitGradients(model=model, sequences=sequences, seed=seed)
        contributions.check()
        units = len(sequences.lengths)
    terms = settle_terms(privacy, units=units, batch_size=training.batch_size, epochs=training.epochs)
    update = PrivateUpdate(
        mechanism=PrivateMechanism(model=model, optimiser=optimiser, terms=terms, seed=seed),
        contributions=contributions,
        snapshots=terms.schedule_snapshots(privacy.snapshots),
        keep=keep,
    )
    return PrivatePoissonSampler(terms=terms, seed=seed, epochs=training.epochs), update
