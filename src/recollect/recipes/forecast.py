"""How long a training will take, from its first steps."""

from __future__ import annotations

import tempfile
import time
from pathlib import Path

from recollect.corpora.corpus import Corpus
from recollect.recipes.assembling import prepare
from recollect.recipes.job import Job
from recollect.recipes.recipe import Recipe
from recollect.recipes.sampling import remaining
from recollect.recipes.update import Step

LONGEST = 3.0
"""Seconds that the trial takes at most, beyond its first two steps."""


def seconds_to_train(recipe: Recipe, corpus: Corpus) -> float:
    """Roughly how many seconds one model takes with as many threads as there are now.

    Args:
        recipe: How it is trained.
        corpus: On what.
    """
    with tempfile.TemporaryDirectory(prefix="recollect-") as folder:
        began = time.monotonic()
        loop = prepare(Job.of(recipe, corpus, None, seed=0), Path(folder)).loop
        prepared = time.monotonic() - began
        loop.model.train()
        taken: list[float] = []
        for number, drawn in enumerate(remaining(loop.sampler, 0, 0)):
            begun = time.monotonic()
            loop.update.step(Step(number=number, first=number == 0, drawn=drawn, rate=0.0))
            taken.append(time.monotonic() - begun)
            if sum(taken[1:]) > LONGEST:
                break
    steady = taken[1:] or taken or [0.0]  # the first step also warms up
    return prepared + loop.sampler.steps * loop.epochs * sum(steady) / len(steady)
