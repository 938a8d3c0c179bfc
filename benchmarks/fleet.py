"""A fleet of eight shadows, its layout picked by the trial, against both layouts given by hand.

One after another with two threads each, or two at a time with one thread each: the trial must find the better one, and
finding it may cost little. The claim: at most 1.05 of the better one's time, the trial included. Wall time, so run it
on an idle machine. `--quick` trains less.
"""

from __future__ import annotations

import statistics
import sys
import tempfile
import time
from pathlib import Path

from recollect.corpora import synthetic
from recollect.corpora.partitions import build_cohorts, draw_halves, list_units
from recollect.execution.threads import divide_threads
from recollect.recipes.fleet import Fleet, train_fleet
from recollect.recipes.layout_trial import WorkerLayout
from recollect.recipes.recipe_file import load_recipe

SHADOWS, CLAIM = 8, 1.05
QUICK = "--quick" in sys.argv
ROUNDS = 1 if QUICK else 3


def fleet() -> Fleet:
    """Eight shadows of `word-lstm`, each of half of the people."""
    corpus = synthetic.make_texts(people=40, per_person=60, seed=0)
    cohorts = build_cohorts(corpus, draw_halves(list_units(corpus, "user"), SHADOWS, seed=0), unit="user", seed=0)
    recipe = load_recipe("word-lstm", [f"training.epochs={4 if QUICK else 20}"])
    return Fleet(recipe=recipe, corpus=corpus, cohorts=cohorts)


def seconds(shadows: Fleet, layout: WorkerLayout | None) -> tuple[float, WorkerLayout]:
    """How long the fleet takes, and the layout it had."""
    with tempfile.TemporaryDirectory() as folder:
        began = time.monotonic()
        trained = train_fleet(shadows, Path(folder), layout=layout)
        assert not trained.failures, trained.failures
        return time.monotonic() - began, trained.layout


def main() -> None:
    shadows, cores = fleet(), divide_threads(workers=1)
    ways = {
        "picked": None,
        f"one at a time, {cores} threads": WorkerLayout(workers=1, threads=cores),
        f"{cores} at a time, one thread": WorkerLayout(workers=cores, threads=1),
    }
    times: dict[str, list[float]] = {name: [] for name in ways}
    for turn in range(ROUNDS):
        for name in list(ways)[turn % 3 :] + list(ways)[: turn % 3]:
            taken, layout = seconds(shadows, ways[name])
            times[name].append(taken)
            print(f"{name:28} {taken:7.1f} s  ({layout.workers} processes, {layout.threads} threads)", flush=True)
    middle = {name: statistics.median(taken) for name, taken in times.items()}
    found = middle.pop("picked") / min(middle.values())
    print(f"{found:.3f} of the better layout's time (medians of {ROUNDS})")
    assert found <= CLAIM, f"{found:.3f} is above {CLAIM}"


if __name__ == "__main__":
    main()
