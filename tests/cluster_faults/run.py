"""`make faults`: workers, nodes, drivers and heads of a real cluster are killed; called again, it resumes.

Prints a table; a fault is status 1.
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
from node_deaths import CASES, Faults, read, write


def list_steps(times: int) -> list[tuple[str, str, int]]:
    """What is killed, during what, and the number of the trial; scoring and training take turns but for nodes."""
    steps = [("node", job, number) for number in range(times) for job in CASES["node"]]
    others = [killed for killed in CASES if killed != "node"]
    steps += [(killed, CASES[killed][number % 2], number) for killed in others for number in range(times)]
    return sorted(steps, key=lambda step: (step[2], step[0] == "head"))


def print_table(trials) -> int:
    """Print what came of all trials; how many had a fault."""
    print(f"{'killed':8} {'during':6} {'trials':>6} {'equal':>6} {'made twice':>10} {'begun again':>11} {'seconds':>8}")
    for killed, jobs in CASES.items():
        for job in jobs:
            found = [each for each in trials if (each.killed, each.job) == (killed, job)]
            if found:
                equal, twice = sum(not each.faults for each in found), sum(each.made_twice for each in found)
                again, mean = sum(each.begun_again for each in found), sum(each.seconds for each in found) / len(found)
                print(f"{killed:8} {job:6} {len(found):6} {equal:6} {twice:10} {again:11} {mean:8.1f}")
    wrong = [each for each in trials if each.faults]
    for each in wrong:
        print(f"{each.killed} {each.job} {each.number}: {'; '.join(each.faults)}")
    return len(wrong)


def main() -> None:
    """Run what has not been run yet."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("home", type=Path, nargs="?", default=Path(".recollect/faults"))
    parser.add_argument("--times", type=int, default=10)
    parser.add_argument("--minutes", type=float, default=55.0)
    given = parser.parse_args()
    log, until = given.home.absolute() / "trials.jsonl", time.monotonic() + 60 * given.minutes
    done = {(each.killed, each.job, each.number) for each in read(log)}
    faults = Faults(given.home.absolute())
    try:
        for step in list_steps(given.times):
            if step in done or time.monotonic() > until:
                continue
            trial = faults.run(*step)
            write(log, trial)
            print(*step, trial.faults or "equal", f"{trial.seconds} s", flush=True)
    finally:
        faults.close()
    sys.exit(1 if print_table(read(log)) else 0)


if __name__ == "__main__":
    main()
