"""Runs the studies of a paper one after the other; killed at any moment and started again, it goes on where it was."""

from __future__ import annotations

import argparse
import importlib
import os
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TypeVar

from common.bench import Bench
from common.outcomes import Outcome, outside
from transformers.utils.logging import disable_progress_bar

from recollect.errors import RecollectError
from recollect.files import write_text
from recollect.pipeline.plans.backends import parse_backend

AnyBench = TypeVar("AnyBench", bound=Bench)


def reproduce(here: Path, studies: Sequence[str], bench: Callable[..., AnyBench]) -> int:
    """Run those studies that the command line names.

    Args:
        here: The paper's folder: `studies/NAME.py` has `study(bench)`, `expected.json` says where figures should be,
            and `results/NAME.json` gets the figures.
        studies: All names, in their order.
        bench: What they share.

    Returns:
        The exit status: 1 if a figure is not where it is expected, 2 if a study failed.
    """
    given = arguments(here.name, studies)
    shared = bench(
        data=given.data,
        work=given.work,
        threads=given.threads,
        backend=given.backend,
        results=here / "results",
        only_kept=given.kept,
        say=lambda line: print(line, flush=True),
    )
    disable_progress_bar()
    wrong, failed = [], []
    for name in given.studies or studies:
        print(f"{name} …", flush=True)
        began = time.monotonic()
        outcome = None
        try:
            for outcome in every(importlib.import_module(f"studies.{name}").study(shared)):
                outcome.save(given.work / "results" / f"{name}.json")
                outcome.keep(here / "results" / f"{name}.json")
        except RecollectError as error:
            if not given.kept:
                failed.append(f"{name}: {error}")
        if outcome is not None:
            print(f"\n{outcome.table()}\n{time.monotonic() - began:.0f} s\n", flush=True)
            write_text(given.work / "summary.md", summary(given.work / "results", studies))
            wrong += outside(name, outcome.figures, here / "expected.json")
    for line in [*failed, *wrong]:
        print(line, file=sys.stderr)
    return 2 if failed else int(bool(wrong))


def every(found: Outcome | Iterator[Outcome]) -> Iterator[Outcome]:
    """What a study found: at its end, or after each of its trainings, so that nothing is lost if it is killed."""
    if isinstance(found, Outcome):
        yield found
    else:
        yield from found


def arguments(paper: str, studies: Sequence[str]) -> argparse.Namespace:
    """What the command line says."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "studies", nargs="*", metavar="STUDY", help=f"any of: {', '.join(studies)}; all if none is named"
    )
    parser.add_argument(
        "--kept", action="store_true", help="make tables of kept results alone: no data is read, nothing is trained"
    )
    parser.add_argument("--data", type=Path, default=os.environ.get("RECOLLECT_DATA"), help="the folder with the data")
    parser.add_argument("--work", type=Path, default=Path(".recollect") / paper, help="where models are kept")
    parser.add_argument("--threads", type=int, default=1, help="threads of torch; it moves the last digits")
    parser.add_argument(
        "--backend", default="local", help="where fleets are trained and models score: local, ray[:HOST:6379]"
    )
    given = parser.parse_args()
    given.backend = parse_backend(given.backend)
    if given.kept:
        given.data = Path(os.devnull)
    if given.data is None:
        parser.error("say where the data lies: --data DIR, or the environment variable RECOLLECT_DATA")
    given.data = Path(given.data)
    if unknown := set(given.studies) - set(studies):
        parser.error(f"no study {', '.join(sorted(unknown))}; there are {', '.join(studies)}")
    return given


def summary(results: Path, studies: Sequence[str]) -> str:
    """The tables of all studies that were done so far."""
    files = [results / f"{name}.json" for name in studies]
    return "\n".join(Outcome.load(file).table() for file in files if file.exists())
