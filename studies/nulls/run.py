"""The table of false positives: trains targets once, then draws worlds in which there is nothing to find."""

from __future__ import annotations

import argparse
import gc
import os
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from fnmatch import fnmatch
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))

from cells import list_cells
from counts import add_worlds, digest_rules
from people import FLEETS, SETS, TARGETS, find_data, list_targets
from rates import summarise
from table import SUMMARY, load_kept
from trainings import Bench
from worlds import Turns, run_cell

from recollect.execution.backend import Backend, Failure
from recollect.pipeline.plans.backends import parse_backend


def main() -> int:
    """Run the cells that the command line names."""
    given, began = parse_arguments(), time.monotonic()
    bench = Bench(data=given.data, work=given.work)
    sets = []
    for name in given.sets:
        if not find_data(given.data, name):
            print(f"{name}: skipped, its data is not below {given.data}", flush=True)
            continue
        sets.append(name)
    backend = given.backend.open(given.work, workers=given.jobs)
    if not given.ready:
        for line in iter_done(backend, partial(prepare, bench, given), list(product(sets, range(FLEETS)))):
            print(line, flush=True)
    if given.prepare:
        return 0
    cells = [cell for cell in list_cells() if any(fnmatch(cell.name, pattern) for pattern in given.cells)]
    # one set after the other, so that what is derived from a text is kept until the last cell has read it
    items = [(name, cell.name) for name in sets for cell in cells if name in cell.sets]
    for line in iter_done(backend, partial(run, bench, given), items):
        print(line, flush=True)
    print(f"done in {(time.monotonic() - began) / 60:.0f} minutes", flush=True)
    return 0


def iter_done(backend: Backend, work: Callable[[Any], str], items: Iterable[Any]) -> Iterator[str]:
    """What work on each item says; its error, if there was one."""
    for outcome in backend.map(work, items):
        if isinstance(outcome, Failure):
            raise outcome.error
        yield outcome.value


def prepare(bench: Bench, given: argparse.Namespace, which: tuple[str, int]) -> str:
    """Train and score all that serves the targets of one fleet; how long it took."""
    (name, fleet), began = which, time.monotonic()
    for target in list_targets(name):
        if target % FLEETS == fleet:
            bench.prepare(name, target, fleet=not given.no_fleet)
    return f"{name}, fleet {fleet}: ready, {time.monotonic() - began:.0f} s"


def run(bench: Bench, given: argparse.Namespace, which: tuple[str, str]) -> str:
    """Run one cell in one set; its rates there."""
    (name, cell_name), began, cpu = which, time.monotonic(), time.process_time()
    gc.freeze()  # what was read and loaded for cells before is there to stay
    cell = next(cell for cell in list_cells() if cell.name == cell_name)
    file = given.results / name / f"{cell.name}.json"
    kept = None if given.again else load_kept(SUMMARY).get(cell.name, {}).get(name)
    rules = digest_rules(cell.method.audit)
    first = kept.worlds if kept else 0
    turns = Turns(first=first, until=given.worlds, targets=given.targets, rules=rules, again=given.again)
    found = add_worlds(kept, run_cell(cell, partial(bench.load, name), file, turns=turns))
    line = summarise(cell, {name: found}).line() if found is not None else "no world"
    took = f"{time.monotonic() - began:.0f} s, {time.process_time() - cpu:.1f} s of CPU"
    return f"{name:9s} {cell.name:45s} {line}  {took}"


def parse_arguments() -> argparse.Namespace:
    """What the command line says."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("cells", nargs="*", default=["*"], help="patterns of cells, such as 'membership-user-*'")
    data = os.environ.get("RECOLLECT_DATA")
    parser.add_argument("--data", type=Path, default=data and Path(data), help="the folder with the public corpora")
    parser.add_argument("--work", type=Path, default=Path(".recollect/nulls"), help="where models and answers are kept")
    parser.add_argument("--results", type=Path, help="where the worlds of cells are kept; WORK/results if not given")
    parser.add_argument("--sets", type=lambda text: text.split(","), default=list(SETS), help="of reddit,irc,synthetic")
    parser.add_argument("--worlds", type=int, help="draw no more than so many worlds of each cell and set")
    parser.add_argument("--targets", type=int, default=TARGETS, help="how many targets worlds are drawn for")
    parser.add_argument("--jobs", type=int, default=1, help="how many cells are run at once, each in its own process")
    parser.add_argument(
        "--backend", type=parse_backend, default="local", help="where cells are run: local, ray[:HOST:6379]"
    )
    parser.add_argument("--again", action="store_true", help="draw worlds again that other code drew")
    parser.add_argument("--prepare", action="store_true", help="train and score only")
    parser.add_argument("--ready", action="store_true", help="all that is needed is trained: train nothing")
    parser.add_argument("--no-fleet", action="store_true", help="train targets and references only")
    given = parser.parse_args()
    given.cells = given.cells or ["*"]
    given.results = given.results or given.work / "results"
    return given


if __name__ == "__main__":
    sys.exit(main())
