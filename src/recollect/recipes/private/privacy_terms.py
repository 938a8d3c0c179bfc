"""The terms of a private training: what a recipe says, made definite for a corpus of so many units."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from recollect.errors import NotEnoughData, PlanError
from recollect.recipes.private.accountant import Method, choose_delta, compute_epsilon, count_steps_within, find_noise
from recollect.recipes.recipe import Privacy, Recipe

_UNITS = {
    "record": "one training sequence: a record, or a piece of one that is longer than a sequence may be",
    "user": "one user: all of their records together",
}
_NOT_COVERED = (
    "the vocabulary, the classes and the scale of arrays, which were counted on the training data",
    "the training losses of the curve, which are exact: keep them to yourself",
    "validation data, and whatever was chosen by looking at it",
    "the numbers of records and users",
)


@dataclass(frozen=True, kw_only=True)
class PrivacyTerms:
    """Everything that the guarantee depends on."""

    unit: Literal["record", "user"]
    units: int
    """How many training sequences, or users, there are."""
    rate: float
    """With which probability each takes part in a step."""
    steps: int
    """In the whole training."""
    noise: float
    """Standard deviation of the noise, in multiples of `clip`."""
    clip: float
    """The largest norm of one unit's update."""
    delta: float
    method: Method = "prv"
    secret_noise: bool = False

    @property
    def expected_batch(self) -> float:
        """How many units a step has on average; the noisy sum is divided by it."""
        return self.rate * self.units

    def compute_epsilon_after(self, steps: int) -> float:
        """The ε that so many steps spend."""
        if steps == 0:
            return 0.0
        return compute_epsilon(noise=self.noise, rate=self.rate, steps=steps, delta=self.delta, method=self.method)

    def schedule_snapshots(self, budgets: tuple[float, ...]) -> dict[float, int]:
        """After how many steps each budget is used up, or the training over: ε → steps.

        Raises:
            PlanError: If one is too small for a single step.
        """
        found: dict[float, int] = {}
        for epsilon in sorted(budgets):
            last = count_steps_within(
                epsilon=epsilon,
                noise=self.noise,
                rate=self.rate,
                steps=self.steps,
                delta=self.delta,
                method=self.method,
            )
            if last == 0:
                raise PlanError(
                    f"No step stays within the snapshot ε = {epsilon:g}; the first spends "
                    f"{self.compute_epsilon_after(1):.3g}.",
                    do="Request a larger one, or add noise.",
                    code="snapshot_too_early",
                )
            found[epsilon] = last
        return found

    def build_statement(self, epsilon: float, steps: int) -> dict[str, Any]:
        """What a model card says of a model that spent `epsilon` in so many steps; null stands for infinite."""
        random = (
            "the operating system's entropy; not repeatable"
            if self.secret_noise
            else ("streams of the seed: repeatable, and anyone who knows the seed can remove the noise")
        )
        return {
            "unit": self.unit,
            "unit_is": _UNITS[self.unit],
            "neighbours": f"data sets of which one holds one {self.unit} more",
            "epsilon": epsilon if math.isfinite(epsilon) else None,
            "delta": self.delta,
            "guarantee": f"(ε = {epsilon:.3g}, δ = {self.delta:.3g})"
            if math.isfinite(epsilon)
            else "none: clipped only",
            "accountant": self.method,
            "noise": self.noise,
            "clip": self.clip,
            "sampling": "Poisson",
            "rate": self.rate,
            "units": self.units,
            "steps": steps,
            "noise_from": random,
            "not_covered": list(_NOT_COVERED),
        }


def settle_terms(privacy: Privacy, *, units: int, batch_size: int, epochs: int) -> PrivacyTerms:
    """The terms for a corpus of so many units; finds the noise if the recipe names a budget.

    An epoch has as many steps as it takes to expect every unit once.
    """
    if privacy.unit == "none":
        raise PlanError(
            "This recipe trains without differential privacy.",
            do="Set privacy.unit to record or user.",
            code="not_private",
        )
    if units == 0:
        raise NotEnoughData(
            "There is nothing to train on.",
            do="Give a corpus with at least one training sequence.",
            code="nothing_to_train_on",
        )
    rate = min(1.0, batch_size / units) if privacy.rate is None else privacy.rate
    steps = epochs * math.ceil(1 / rate - 1e-9)
    delta = choose_delta(units) if privacy.delta is None else privacy.delta
    return PrivacyTerms(
        unit=privacy.unit,
        units=units,
        rate=rate,
        steps=steps,
        noise=_settle_noise(privacy, {"rate": rate, "steps": steps, "delta": delta}),
        clip=privacy.clip,
        delta=delta,
        method=privacy.accountant,
        secret_noise=privacy.secret_noise,
    )


def _settle_noise(privacy: Privacy, setting: Mapping[str, Any]) -> float:
    """The noise among the terms: what the recipe states, or what its budget needs."""
    if (privacy.noise is None) == (privacy.epsilon is None):
        stated = "neither" if privacy.noise is None else "both"
        raise PlanError(
            f"The recipe's privacy says {stated} of noise and epsilon.",
            do="Give epsilon to have the noise found, or noise to have the ε computed (0 clips only); not both.",
            code="noise_or_epsilon",
        )
    if privacy.noise is not None:
        return privacy.noise
    assert privacy.epsilon is not None  # noqa: S101 - for the type checker
    return find_noise(epsilon=privacy.epsilon, method=privacy.accountant, **setting)


def check_private_recipe(recipe: Recipe, *, validated: bool) -> None:
    """Refuse settings that would break the guarantee, or that have no meaning under it.

    Args:
        recipe: One with privacy.
        validated: Whether there is a validation corpus; without, the exact training loss would steer the training.
    """
    training, steered = recipe.training, recipe.training.schedule.kind == "plateau"
    steered = steered or training.keep == "best" or training.stop_after is not None
    layout, update = recipe.sequences.layout, recipe.privacy.update
    refusals = [
        (
            layout != "records",
            "private_layout",
            f"sequences.layout {layout!r} joins records",
            "Use layout records.",
        ),
        (
            training.precision != "float32",
            "private_precision",
            f"training.precision {training.precision!r} rounds away noise",
            "Use float32.",
        ),
        (
            training.clip is not None,
            "private_clip",
            "training.clip clips whole batches",
            "Leave it out; privacy.clip bounds each unit.",
        ),
        (
            training.accumulate != 1,
            "private_accumulate",
            "training.accumulate has no meaning",
            "Leave it out; memory is bounded anyway.",
        ),
        (
            training.sampling != "shuffle",
            "private_sampling",
            f"training.sampling {training.sampling!r} is not Poisson",
            "Leave it out; every step draws by Poisson sampling.",
        ),
        (
            steered and not validated,
            "private_steering",
            "training would be steered by its exact training loss",
            "Give validation data, or do without plateau, stop_after and keep: best.",
        ),
        (
            update == "fedavg" and recipe.privacy.unit == "record",
            "private_update",
            "privacy.update 'fedavg' is an update of users",
            "Set privacy.unit to user, or use update gradient.",
        ),
    ]
    for broken, code, found, do in refusals:
        if broken:
            raise PlanError(f"Under differential privacy, {found}.", do=do, code=code)
