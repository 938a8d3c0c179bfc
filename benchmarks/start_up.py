"""How long everyday commands take: `python benchmarks/start_up.py [DEMO_FOLDER]`, the folder of a `recollect demo`.

Processor time of the whole process, medians of five, taken in turn so that a busy machine slows all of them. Commands
are compared with `python -c pass`; with a folder also `report`, of a report that is up to date, copied, and built anew.
Audits of the demo's plan that run again on kept scores are compared with `import torch`. Ends with status 1 if a
command that must be quick is not, or an audit takes longer than torch and a second.
"""

from __future__ import annotations

import os
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path

MOST = 20.0
"""How many times `python -c pass` a quick command may take."""
BEYOND_TORCH = 1.0
"""How many seconds more than `import torch` an audit on kept scores may take."""
ROUNDS = 5
PASS, TORCH = "python -c pass", "import torch"
RECOLLECT = ["-m", "recollect"]
AUDITS = ("exposure", "leakage", "membership", "provenance", "removal")
Job = Callable[[], float]


def seconds(*words: str, cwd: Path | None = None, before: Callable[[], None] = lambda: None) -> float:
    """The processor time of a Python process, which finds its modules compiled, as they are once they are installed."""
    before()
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    begin = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([sys.executable, *words], check=True, capture_output=True, cwd=cwd, env=environment)  # noqa: S603
    end = resource.getrusage(resource.RUSAGE_CHILDREN)
    return end.ru_utime + end.ru_stime - begin.ru_utime - begin.ru_stime


def list_commands(demo: Path | None, scratch: Path) -> dict[str, Job]:
    """What is compared with `python -c pass`."""
    jobs: dict[str, Job] = {
        PASS: lambda: seconds("-c", "pass"),
        "list": lambda: seconds(*RECOLLECT, "list"),
        "check --help": lambda: seconds(*RECOLLECT, "check", "--help"),
        "--help": lambda: seconds(*RECOLLECT, "--help"),
        "membership --help": lambda: seconds(*RECOLLECT, "membership", "--help"),
    }
    if demo is not None:
        shown, anew = (Path(shutil.copytree(demo / "unprotected", scratch / name)) for name in ("shown", "anew"))
        out, stale = str(scratch / "report.html"), anew / "report.html"
        jobs["report"] = lambda: seconds(*RECOLLECT, "report", str(shown))
        jobs["report --out"] = lambda: seconds(*RECOLLECT, "report", str(shown), "--out", out)
        jobs["report, built anew"] = lambda: seconds(*RECOLLECT, "report", str(anew), before=stale.unlink)
    return jobs


def list_second_runs(demo: Path, scratch: Path) -> dict[str, Job]:
    """What is compared with `import torch`."""

    def run_again(audit: str) -> float:
        words = ("run", "unprotected.yaml", "--only", audit, "--out", str(scratch / audit))
        return seconds(*RECOLLECT, *words, cwd=demo)

    return {
        TORCH: lambda: seconds("-c", "import torch"),
        **{audit: lambda audit=audit: run_again(audit) for audit in AUDITS},  # type: ignore[misc]
    }


def measure(jobs: Mapping[str, Job]) -> dict[str, float]:
    """The median of each; a first round, in which files are read and bytecode is written, does not count."""
    rounds = [{name: job() for name, job in jobs.items()} for _ in range(1 + ROUNDS)][1:]
    return {name: statistics.median(each[name] for each in rounds) for name in jobs}


def main(demo: Path | None) -> int:
    with tempfile.TemporaryDirectory() as folder:
        quick = measure(list_commands(demo, Path(folder)))
        again = {} if demo is None else measure(list_second_runs(demo, Path(folder)))
    for name, median in quick.items():
        print(f"{name:20} {1000 * median:8.1f} ms {median / quick[PASS]:8.1f} ×")
    for name, median in again.items():
        print(f"{name:20} {median:8.2f} s {median - again[TORCH]:+8.2f} s")
    quick.pop("membership --help")  # its options are those of the audit, which computes with NumPy
    slow = any(median > MOST * quick[PASS] for median in quick.values())
    return int(slow or any(median > again[TORCH] + BEYOND_TORCH for median in again.values()))


if __name__ == "__main__":
    raise SystemExit(main(Path(sys.argv[1]).resolve() if len(sys.argv) > 1 else None))
