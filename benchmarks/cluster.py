"""Scoring through Ray beside the same number of local workers, and what it holds in memory.

    python benchmarks/cluster.py [--records 20000] [--rounds 5] [--memory 100000]

A cluster of a head without CPUs and one node is started on this machine; its workers have the priority of local ones.
(a) Both sides score the same records with the same small model and as many workers, in turns. What is compared is the
time from the first finished block to the last, so that neither side's start-up counts: by the clock, and in processor
seconds of all processes (driver, workers, and everything of Ray), which other programs lengthen less. The median of all
rounds counts. (b) A tiny model scores so many short records, then ten times as many: the peak memory of the driver and
of its workers, and the most that Ray's object store held.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

import psutil

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "cluster_faults"))
from small_cluster import WORKER_TITLE, start_cluster

LEAST_SHARE = 0.9
RATES = ("records_per_processor_second", "records_per_second")
MOST_GROWTH = 1.10
MOST_STORE_MEGABYTES = 50


def write_corpus(path: Path, count: int, words: int) -> None:
    """Records of so many words each."""
    with path.open("w", encoding="utf-8") as lines:
        for i in range(count):
            text = " ".join(f"{(i * 7919 + 104729 * j) % 9973}" for j in range(words))
            lines.write(json.dumps({"id": str(i), "user": str(i % 97), "text": f"{i} {text}"}) + "\n")


def score(backend: str, model: str, corpus: str, work: str, workers: int, others: list[int]) -> dict[str, float]:
    """Score a corpus in this process' name; what it took from the first finished block on, and the peak of its memory.

    Args:
        backend: "local", or the address of a cluster.
        model: Its folder.
        corpus: Its file.
        work: The work folder.
        workers: How many there are.
        others: Processes that work for this one: those of the cluster.
    """
    from recollect.corpora import read_corpus
    from recollect.execution.local import LocalBackend
    from recollect.models.answer_store.scoring import score_corpus
    from recollect.models.loading.loader import load_model

    seen = list[tuple[float, float, int]]()

    def note(done: int, total: int, told: str) -> None:
        if (done and not seen) or done == total:
            seen.append((time.monotonic(), sum(list_processor_seconds([os.getpid(), *others]).values()), done))

    if backend == "local":
        chosen: Any = LocalBackend(workers=workers, threads=1)
    else:
        from recollect.execution.on_ray import RayBackend

        chosen = RayBackend(address=backend, workers=workers, work_folder=Path(work))
    score_corpus(partial(load_model, model), read_corpus(corpus), Path(work), backend=chosen, progress=note)
    (first, used_first, done_first), (last, used_last, done_last) = seen[0], seen[-1]
    scored = done_last - done_first
    return {
        "records_per_second": scored / max(1e-9, last - first),
        "records_per_processor_second": scored / max(1e-9, used_last - used_first),
        "megabytes": read_status(None, "VmHWM"),
    }


def list_processor_seconds(roots: list[int]) -> dict[int, float]:
    """The processor seconds of processes and of all that they started and that lives, by their numbers."""
    found = {}
    for root in roots:
        with suppress(psutil.Error):
            parent = psutil.Process(root)
            for each in [parent, *parent.children(recursive=True)]:
                with suppress(psutil.Error):
                    used = each.cpu_times()
                    found[each.pid] = used.user + used.system
    return found


def read_status(process: int | None, name: str) -> float:
    """One figure of a process, in megabytes."""
    text = Path(f"/proc/{process or 'self'}/status").read_text()
    found = re.search(rf"{name}:\s+(\d+) kB", text)
    return int(found[1]) / 1024 if found else 0.0


def measure_store(process: int) -> float:
    """What the object store of a process takes of shared memory, in megabytes: the pages of its file ever written."""
    total = 0
    for handle in Path(f"/proc/{process}/fd").iterdir():
        with suppress(OSError):
            if "plasma" in str(handle.readlink()):
                total += handle.stat().st_blocks * 512
    return total / (1 << 20)


@dataclass
class Watch:
    """Looks at processes while they work: what they used, and what they held at most."""

    cluster: list[int]
    """The processes of the cluster."""
    store: float = 0.0
    """The most that object stores held, in megabytes."""
    workers: float = 0.0
    """The peak memory of the largest worker, in megabytes."""
    seconds: dict[int, float] = field(default_factory=dict)
    """Processor seconds of each process."""

    @contextmanager
    def running(self, process: int):
        """Look again and again at a process and at all that it and the cluster started."""
        ended = threading.Event()

        def run() -> None:
            while not ended.wait(0.5):
                self.look([process, *self.cluster])

        thread = threading.Thread(target=run, daemon=True)
        thread.start()
        try:
            yield self
        finally:
            ended.set()
            thread.join()

    def look(self, roots: list[int]) -> None:
        """Note what is so now."""
        self.store = max(self.store, sum(map(measure_store, self.cluster)))
        now = list_processor_seconds(roots)
        self.seconds |= now
        for process in now:
            with suppress(psutil.Error, OSError):
                command = " ".join(psutil.Process(process).cmdline())
                if WORKER_TITLE in command or "spawn_main" in command:
                    self.workers = max(self.workers, read_status(process, "VmHWM"))


def run(backend: str, cluster: list[int], model: Path, corpus: Path, workers: int) -> dict[str, float]:
    """Score in a process of its own, and watch."""
    watch = Watch(cluster if backend != "local" else [])
    with tempfile.TemporaryDirectory() as work:
        words = [backend, str(model), str(corpus), work, str(workers), *map(str, watch.cluster)]
        watch.look(watch.cluster)
        before, began = dict(watch.seconds), time.monotonic()
        command = [sys.executable, __file__, "--score", *words]
        driver = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)  # noqa: S603 - our own script
        with watch.running(driver.pid):
            out, _ = driver.communicate()
        if driver.returncode:
            raise SystemExit("the driver failed")
    used = {process: seconds - before.get(process, 0.0) for process, seconds in watch.seconds.items()}
    return {
        **json.loads(out.splitlines()[-1]),
        "seconds": time.monotonic() - began,
        "cpu_seconds": sum(used.values()),
        "driver_cpu_seconds": used[driver.pid],
        "store_megabytes": watch.store,
        "worker_megabytes": watch.workers,
    }


def build_models(folder: Path) -> tuple[Path, Path]:
    """A small model whose forward pass costs, and a tiny one."""
    import torch
    from transformers import GPT2Config, GPT2LMHeadModel

    from recollect.testing.tiny import build_tiny_model, save_tiny

    tiny = build_tiny_model("gpt2")
    torch.manual_seed(0)
    larger = GPT2Config(**{**tiny.network.config.to_dict(), "n_embd": 128, "n_layer": 4})
    small = replace(tiny, network=GPT2LMHeadModel(larger).eval())
    return save_tiny(small, folder / "small"), save_tiny(tiny, folder / "tiny")


def compare(given: argparse.Namespace, address: str, cluster: list[int], model: Path, folder: Path) -> list[float]:
    """Part (a): our throughput through Ray as a share of the local one, by processor time and by the clock."""
    corpus, shares = folder / "compared.jsonl", list[list[float]]()
    write_corpus(corpus, given.records, 12)
    for number in range(given.rounds):
        order = ("local", address) if number % 2 else (address, "local")
        found = {side: run(side, cluster, model, corpus, given.workers) for side in order}
        local, ray = found["local"], found[address]
        rates = {name: (local[name], ray[name]) for name in RATES}
        shares.append([theirs / ours for ours, theirs in rates.values()])
        shown = (f"{name} {rates[name][0]:.0f} and {rates[name][1]:.0f}" for name in RATES)
        whole = (f"{side['cpu_seconds']:.1f} processor seconds in {side['seconds']:.0f} s" for side in (local, ray))
        print(
            f"round {number}: local and Ray, {', '.join(shown)}: {shares[-1][0]:.3f}, {shares[-1][1]:.3f}; with "
            f"start-up {' and '.join(whole)}",
            flush=True,
        )
    return [statistics.median(each) for each in zip(*shares, strict=True)]


def measure_memory(given: argparse.Namespace, address: str, cluster: list[int], model: Path, folder: Path) -> bool:
    """Part (b): print peaks at both sizes; whether they are within the limits."""
    rows = []
    for count in (given.memory, 10 * given.memory):
        write_corpus(folder / f"{count}.jsonl", count, 1)
        row = run(address, cluster, model, folder / f"{count}.jsonl", given.workers)
        rows.append(row)
        print(
            f"{count:,} records: driver {row['megabytes']:.0f} MB, largest worker {row['worker_megabytes']:.0f} MB, "
            f"object stores {row['store_megabytes']:.1f} MB at most, {row['cpu_seconds']:.0f} processor seconds, "
            f"{row['driver_cpu_seconds']:.0f} of them of the driver, wall {row['seconds']:.0f} s",
            flush=True,
        )
    growth = {name: rows[1][name] / rows[0][name] for name in ("megabytes", "worker_megabytes")}
    print(f"driver × {growth['megabytes']:.3f}, worker × {growth['worker_megabytes']:.3f} at ten times the records")
    return max(growth.values()) <= MOST_GROWTH and rows[1]["store_megabytes"] < MOST_STORE_MEGABYTES


def main() -> None:
    """Measure, print, and fail beyond the limits."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--records", type=int, default=20_000, help="of part (a)")
    parser.add_argument("--rounds", type=int, default=5, help="of part (a); 0 leaves it out")
    parser.add_argument("--memory", type=int, default=100_000, help="records of part (b); 0 leaves it out")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--score", nargs="+", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.score:
        backend, model, corpus, work, workers, *others = given.score
        print(json.dumps(score(backend, model, corpus, work, int(workers), [int(each) for each in others])))
        return
    kept = True
    with tempfile.TemporaryDirectory() as name, start_cluster(nodes=1, cpus=given.workers) as started:
        small, tiny = build_models(folder := Path(name))
        nodes = started.list_all_nodes()
        cluster = [info.process.pid for node in nodes for infos in node.all_processes.values() for info in infos]
        if given.rounds:
            shares = compare(given, started.address, cluster, small, folder)
            kept &= min(shares) >= LEAST_SHARE
            print(
                f"median of {given.rounds} rounds: {shares[0]:.3f} of the local throughput by processor time, "
                f"{shares[1]:.3f} by the clock; claimed {LEAST_SHARE}"
            )
        if given.memory:
            kept &= measure_memory(given, started.address, cluster, tiny, folder)
    sys.exit(0 if kept else 1)


if __name__ == "__main__":
    main()
