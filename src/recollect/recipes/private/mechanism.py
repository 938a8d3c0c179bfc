"""The Gaussian mechanism around any torch optimiser: clip each unit, sum, add noise, divide, count. Opacus does it."""

from __future__ import annotations

import secrets
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from opacus.optimizers import DPOptimizer
from opacus.utils.uniform_sampler import UniformWithReplacementSampler
from torch import Tensor, nn

from recollect import labels
from recollect.recipes.checkpoints import add_prefix, get_optimiser_state, select_prefix, set_optimiser_state
from recollect.recipes.private.accountant import Ledger
from recollect.recipes.private.gradients import set_empty_gradients
from recollect.recipes.private.privacy_terms import PrivacyTerms
from recollect.recipes.samplers import Indices
from recollect.streams import derive_seed


@dataclass(kw_only=True)
class Mechanism:
    """Takes units' gradients in any number of parts, then releases one noisy step.

    The noise of a step follows from the seed and the step's number alone, so a training that was killed repeats the
    very same release; the ledger is kept with the weights that spent it.
    """

    model: nn.Module
    optimiser: torch.optim.Optimizer
    terms: PrivacyTerms
    seed: int
    ledger: Ledger = field(init=False)
    _noisy: Any = field(init=False, repr=False)

    def __post_init__(self) -> None:
        self.ledger = Ledger(delta=self.terms.delta, method=self.terms.method)
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
class Poisson:
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
    """The seed of one draw of the mechanism; nobody's to know where noise must be secret."""
    return secrets.randbits(63) if terms.secret_noise else derive_seed(seed, name, number) % 2**63
