"""How long everyday commands take, as multiples of `python -c pass`: `python benchmarks/start_up.py [RUN_FOLDER]`.

Processor time of the whole process, medians of five, taken in turn so that a busy machine slows all of them. With a run
folder, `report` is measured twice: of a report that is up to date, and built anew. Ends with status 1 if a command that
must be quick is not.
"""

from __future__ import annotations

import resource
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

MOST = 20.0
"""How many times `python -c pass` a quick command may take."""
ROUNDS = 5
RECOLLECT = ["-m", "recollect"]


def seconds(words: list[str]) -> float:
    """The processor time of a Python process."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([sys.executable, *words], check=True, capture_output=True)  # noqa: S603
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def main(folder: Path | None) -> int:
    quick = {
        "list": [*RECOLLECT, "list"],
        "check --help": [*RECOLLECT, "check", "--help"],
        "--help": [*RECOLLECT, "--help"],
    }
    slow = {"membership --help": [*RECOLLECT, "membership", "--help"]}
    with tempfile.TemporaryDirectory() as scratch:
        if folder is not None:
            quick["report"] = [*RECOLLECT, "report", str(folder)]
            slow["report, built anew"] = [*quick["report"], "--out", f"{scratch}/report.html"]
        commands = {"python -c pass": ["-c", "pass"], **quick, **slow}
        for words in commands.values():
            seconds(words)  # bytecode is written, files are read
        rounds = [{name: seconds(words) for name, words in commands.items()} for _ in range(ROUNDS)]
    medians = {name: statistics.median(each[name] for each in rounds) for name in commands}
    for name, median in medians.items():
        print(f"{name:20} {1000 * median:8.1f} ms {median / medians['python -c pass']:8.1f} ×")
    return int(any(medians[name] > MOST * medians["python -c pass"] for name in quick))


if __name__ == "__main__":
    raise SystemExit(main(Path(sys.argv[1]) if len(sys.argv) > 1 else None))
