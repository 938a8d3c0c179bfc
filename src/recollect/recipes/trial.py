"""A short trial: what trains a fleet fastest on this machine, and roughly how long one model takes."""

from __future__ import annotations

import itertools
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from recollect.corpora.corpus import Corpus
from recollect.execution.threads import computing_with, threads_for
from recollect.recipes.recipe import Recipe
from recollect.recipes.sampling import Indices

if TYPE_CHECKING:
    # torch comes with the loop, and whoever only names a layout should not wait for it
    from recollect.recipes.loop import Loop

STEPS = 3
"""Steps of one measurement; each is made twice and the quicker counts, because other programs disturb."""
WORTH = 0.9
"""Threads are worth it if so many together are at least this share of as many times as fast as one."""


@dataclass(frozen=True, kw_only=True)
class Layout:
    """So many processes, each with so many threads."""

    workers: int
    threads: int


def pick_layout(recipe: Recipe, corpus: Corpus, *, models: int) -> Layout:
    """The layout that trains so many models fastest: many processes with one thread, or one with many.

    Threads within one model wait for each other, so separate processes win unless threads are almost as good as more
    cores. A few steps of the first member are timed either way.
    """
    cores = threads_for(workers=1)
    if cores == 1 or models == 1:
        return Layout(workers=1, threads=cores)
    (alone, together), _ = _seconds(recipe, corpus, (1, cores))
    if alone / together >= WORTH * cores:
        return Layout(workers=1, threads=cores)
    return Layout(workers=cores, threads=1)


def seconds_to_train(recipe: Recipe, corpus: Corpus) -> float:
    """Roughly how many seconds one model takes alone, from its first steps."""
    (each,), steps = _seconds(recipe, corpus, (threads_for(workers=1),))
    return each * steps


def _seconds(recipe: Recipe, corpus: Corpus, threads: tuple[int, ...]) -> tuple[list[float], int]:
    """Seconds per step with so many threads each, and how many steps the whole training has."""
    from recollect.recipes.assembling import prepare
    from recollect.recipes.job import Job
    from recollect.recipes.loop import own_randomness

    with tempfile.TemporaryDirectory() as folder, own_randomness():
        loop = prepare(Job.of(recipe, corpus, None, seed=0), Path(folder)).loop
        loop.model.train()
        draws = list(itertools.islice(loop.sampler.draws(0), STEPS))
        measured: list[list[float]] = [[] for _ in threads]
        for _ in range(2):
            for times, count in zip(measured, threads, strict=True):
                with computing_with(count):
                    times.append(_timed(loop, draws))
    return [min(times) / max(1, len(draws)) for times in measured], loop.sampler.steps * loop.epochs


def _timed(loop: Loop, draws: list[Indices]) -> float:
    """Seconds for these steps; the weights change, but nobody keeps them."""
    from recollect.recipes.update import Step

    began = time.perf_counter()
    for number, drawn in enumerate(draws):
        loop.update.step(Step(number=number, first=number == 0, drawn=drawn, rate=0.0))
    return time.perf_counter() - began
