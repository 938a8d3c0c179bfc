"""A short trial: what trains a fleet fastest on this machine, and roughly how long one model takes."""

from __future__ import annotations

import itertools
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from recollect.corpora.corpus import Corpus
from recollect.execution.threads import divide_threads, use_threads
from recollect.recipes.recipe import Recipe
from recollect.recipes.training.samplers import Indices

if TYPE_CHECKING:
    # torch comes with the loop, and whoever only names a layout should not wait for it
    from recollect.recipes.training.loop import Loop

TRIAL_STEPS = 3
"""Steps of one measurement; each is made twice and the quicker counts, because other programs disturb."""
LONG_SECONDS = 1.0
"""A measurement ends after the step in which so many seconds are over."""
MIN_EFFICIENCY = 0.9
"""Threads are worth it if so many together are at least this share of as many times as fast as one."""


@dataclass(frozen=True, kw_only=True)
class WorkerLayout:
    """So many processes, each with so many threads."""

    workers: int
    threads: int


def pick_layout(recipe: Recipe, corpus: Corpus, *, models: int) -> WorkerLayout:
    """The layout that trains so many models fastest: many processes with one thread, or one with many.

    Threads within one model wait for each other, so separate processes win unless threads are almost as good as more
    cores. A few steps of the first member are timed either way.
    """
    cores = divide_threads(workers=1)
    if cores == 1 or models == 1:
        return WorkerLayout(workers=1, threads=cores)
    (one_thread, all_threads), _ = _measure_step_seconds(recipe, corpus, (1, cores))
    if one_thread / all_threads >= MIN_EFFICIENCY * cores:
        return WorkerLayout(workers=1, threads=cores)
    return WorkerLayout(workers=cores, threads=1)


def estimate_training_seconds(recipe: Recipe, corpus: Corpus) -> float:
    """By a trial: roughly how many seconds one model takes alone."""
    (each,), steps = _measure_step_seconds(recipe, corpus, (divide_threads(workers=1),))
    return each * steps


def _measure_step_seconds(recipe: Recipe, corpus: Corpus, threads: tuple[int, ...]) -> tuple[list[float], int]:
    """Seconds per step of a trial with so many threads each, and how many steps the whole training has."""
    from recollect.recipes.training.assembly import assemble_training
    from recollect.recipes.training.job import Job
    from recollect.recipes.training.loop import preserve_random_state

    with preserve_random_state():
        loop = assemble_training(Job.of(recipe, corpus, None, seed=0), None).loop
        loop.model.train()
        draws = list(itertools.islice(loop.sampler.iter_batches(0), TRIAL_STEPS))
        _time_trial_steps(loop, draws[:1])  # the first step of a process takes far longer than any after it
        measured: list[list[float]] = [[] for _ in threads]
        for _ in range(2):
            for times, count in zip(measured, threads, strict=True):
                with use_threads(count):
                    times.append(_time_trial_steps(loop, draws))
            if max(times[-1] for times in measured) > LONG_SECONDS:
                break  # of so large a model one measurement is exact enough
    return [min(times) for times in measured], loop.sampler.steps * loop.epochs


def _time_trial_steps(loop: Loop, batches: list[Indices]) -> float:
    """Seconds for a step of a trial, from these or as many as take a second; nobody keeps the weights."""
    from recollect.recipes.training.update import TrainingStep

    began, done = time.perf_counter(), 0
    for number, indices in enumerate(batches):
        loop.update.step(TrainingStep(number=number, starts_epoch=number == 0, indices=indices, rate=0.0))
        done += 1
        if time.perf_counter() - began > LONG_SECONDS:
            break
    return (time.perf_counter() - began) / max(1, done)
