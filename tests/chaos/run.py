"""`make chaos`: all trials, as far as the time goes; called again, it resumes. Prints a table; a fault is status 1."""

from __future__ import annotations

import argparse
import random
import sys
import time
from collections.abc import Iterator
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
from commands import KEEPING, LOOKING
from trials import FAULTS, Chaos, Trial

Step = tuple[str, str, int]
"""Kind, case and number."""


FULL = ("run", "train", "score", "extract", "sanitise", "report", "compare")
"""The verbs that a full disk stops."""
QUICK = [
    ("kill", "train", 0),
    ("kill", "score", 0),
    ("at once", "2 train", 0),
    ("full disk", "train", 1),
    ("flipped bit", "trained/model.safetensors", 0),
]
"""Five trials for every run of the test suite."""


def list_steps(chaos: Chaos, *, kills: int, at_once: int, full: int, flips: int) -> Iterator[Step]:
    """All trials that are wished: the kind, the case and the number of each."""
    yield from (("kill", verb, number) for verb in KEEPING for number in range(kills))
    yield from (("kill", verb, number) for verb in LOOKING for number in range(min(3, kills)))
    yield from (("at once", f"{count} run", number) for count in (2, 4) for number in range(at_once))
    yield from (("full disk", FULL[number % len(FULL)], number) for number in range(full))
    kinds = sorted(chaos.list_kinds()) if flips else []
    yield from (("flipped bit", kinds[number % len(kinds)], number) for number in range(flips))


def run_step(chaos: Chaos, step: Step) -> Trial:
    """Run one trial."""
    kind, case, number = step
    if kind == "at once":
        count, verb = case.split()
        return chaos.run_at_once(int(count), verb, number)
    return {"kill": chaos.kill, "full disk": chaos.fill_disk, "flipped bit": chaos.flip_bit}[kind](case, number)


def print_table(trials: list[Trial]) -> int:
    """Print what came of all trials; how many had a fault."""
    rows: dict[tuple[str, str], list[Trial]] = {}
    for trial in trials:
        rows.setdefault((trial.kind, trial.case), []).append(trial)
        rows.setdefault((trial.kind, "all"), []).append(trial)
    print(f"{'kind':12} {'case':44} {'trials':>6} {'equal':>6} {'refused':>7}  " + "  ".join(FAULTS))
    for (kind, case), found in sorted(rows.items()):
        counts = [sum(any(fault.startswith(name) for fault in each.faults) for each in found) for name in FAULTS]
        equal = sum(not each.faults and not each.refused for each in found)
        cells = "  ".join(f"{count:>{len(name)}}" for name, count in zip(FAULTS, counts, strict=True))
        print(f"{kind:12} {case[:44]:44} {len(found):6} {equal:6} {sum(x.refused for x in found):7}  {cells}")
    wrong = [each for each in trials if each.faults]
    for each in wrong:
        print(f"\n{each.kind} {each.case} {each.number} ({each.detail}):")
        for fault in each.faults:
            print(f"  {fault}")
    return len(wrong)


def main() -> None:
    """Run what has not been run yet."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("home", type=Path, nargs="?", default=Path(".recollect/chaos"))
    parser.add_argument("--minutes", type=float, default=55.0)
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--at-once", type=int, default=10)
    parser.add_argument("--full", type=int, default=20)
    parser.add_argument("--flips", type=int, default=200)
    parser.add_argument("--table", action="store_true", help="only print what was found so far")
    parser.add_argument("--quick", action="store_true", help="five trials")
    given = parser.parse_args()
    chaos = Chaos(given.home.absolute(), prepare=not given.table, everything=not given.quick)
    began = time.monotonic()
    counts = {"kills": given.kills, "at_once": given.at_once, "full": given.full, "flips": given.flips}
    steps = QUICK if given.quick else [] if given.table else list(list_steps(chaos, **counts))
    steps = [step for step in steps if step not in chaos.done]
    random.Random(0).shuffle(steps)
    left = len(steps)
    for step in steps:
        if time.monotonic() - began > 60 * given.minutes:
            break
        trial, left = chaos.keep(run_step(chaos, step)), left - 1
        print(f"{trial.kind} {trial.case} {trial.number}: {'FAULT' if trial.faults else 'ok'}", flush=True)
    wrong = print_table(list(chaos.done.values()))
    print(f"\n{len(chaos.done)} trials, {wrong} with a fault, {left} not done yet.")
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
