"""The optimisers by name, and how the learning rate changes while they run."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

import torch

from recollect.recipes.recipe import Schedule, Training

_OPTIMISERS: dict[str, Callable[..., torch.optim.Optimizer]] = {
    "sgd": torch.optim.SGD,
    "momentum": torch.optim.SGD,
    "rmsprop": torch.optim.RMSprop,
    "adagrad": torch.optim.Adagrad,
    "adadelta": torch.optim.Adadelta,
    "adam": torch.optim.Adam,
    "adamw": torch.optim.AdamW,
    "adamax": torch.optim.Adamax,
}


def build_optimiser(settings: Training, parameters: Iterable[torch.nn.Parameter]) -> torch.optim.Optimizer:
    """The optimiser that a recipe names, over the parameters that are trained."""
    trained = [parameter for parameter in parameters if parameter.requires_grad]
    options: dict[str, Any] = {"lr": settings.learning_rate, "weight_decay": settings.weight_decay}
    if settings.optimiser == "momentum":
        options["momentum"] = settings.momentum
    return _OPTIMISERS[settings.optimiser](trained, **options)


@dataclass(kw_only=True)
class LearningRate:
    """The learning rate as training continues; `lowered` and `waited` are all it remembers."""

    schedule: Schedule
    initial: float
    steps: int
    """How many steps the whole training takes; only `linear` asks."""
    lowered: int = 0
    """How often a plateau has lowered it."""
    waited: int = 0
    """For how many epochs the loss has not become better."""
    best: float | None = field(default=None)

    def get_rate(self, step: int) -> float:
        """The learning rate of a step, counted from zero.

        >>> LearningRate(schedule=Schedule(kind="inverse", decay=0.5), initial=1.0, steps=10).get_rate(2)
        0.5
        """
        kind = self.schedule.kind
        if kind == "plateau":
            return float(self.initial * self.schedule.factor**self.lowered)
        if kind == "inverse":
            return self.initial / (1 + self.schedule.decay * step)
        if kind == "linear":
            rising = max(1, round(self.schedule.warmup * self.steps)) if self.schedule.warmup else 0
            if step < rising:
                return self.initial * (step + 1) / rising
            return self.initial * max(0, self.steps - step) / max(1, self.steps - rising)
        return self.initial

    def end_epoch(self, loss: float) -> None:
        """Let the optimiser's learning rate take note of the watched loss at the end of an epoch."""
        if self.best is None or loss < self.best * (1 - self.schedule.threshold):
            self.best, self.waited = loss, 0
            return
        self.waited += 1
        if self.waited > self.schedule.patience:
            self.lowered, self.waited = self.lowered + 1, 0

    def get_state(self) -> dict[str, float | int | None]:
        """What it must be given back to continue."""
        return {"lowered": self.lowered, "waited": self.waited, "best": self.best}

    def restore(self, state: dict[str, Any]) -> None:
        """Resume from what `get_state` returned."""
        self.lowered, self.waited, self.best = state["lowered"], state["waited"], state["best"]
