"""Scoring through Ray beside the same number of local workers, and what it holds in memory.

    python benchmarks/cluster.py [--records 20000] [--rounds 5] [--memory 100000]

A cluster of a head without CPUs and one node is started on this machine. (a) Both sides score the same records with the
same small model and as many workers; processor seconds of all processes count, because other programs lengthen them
less than wall time, and wall time is shown beside them. (b) A tiny model scores so many short records, then ten times
as many: the peak memory of the driver and of its workers, and the most that Ray's object store held.
"""

from __future__ import annotations

import argparse
import json
import re
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
MOST_GROWTH = 1.10
MOST_STORE_MEGABYTES = 50


def write_corpus(path: Path, count: int, words: int) -> None:
    """Records of so many words each."""
    with path.open("w", encoding="utf-8") as lines:
        for i in range(count):
            text = " ".join(f"{(i * 7919 + 104729 * j) % 9973}" for j in range(words))
            lines.write(json.dumps({"id": str(i), "user": str(i % 97), "text": f"{i} {text}"}) + "\n")


def score(backend: str, model: str, corpus: str, work: str, workers: int) -> dict[str, float]:
    """Score a corpus in this process' name; when the first and the last block were done, and the peak of its memory."""
    from recollect.corpora import read_corpus
    from recollect.execution.local import LocalBackend
    from recollect.models.answer_store.scoring import score_corpus
    from recollect.models.loading.loader import load_model

    began, seen = time.monotonic(), list[tuple[float, int]]()
    if backend == "local":
        chosen: Any = LocalBackend(workers=workers, threads=1)
    else:
        from recollect.execution.on_ray import RayBackend

        chosen = RayBackend(address=backend, workers=workers, work_folder=Path(work))
    score_corpus(
        partial(load_model, model),
        read_corpus(corpus),
        Path(work),
        backend=chosen,
        progress=lambda done, total, note: seen.append((time.monotonic() - began, done)),
    )
    (first, _), (last, _) = next(each for each in seen if each[1]), seen[-1]
    steady = (seen[-1][1] - next(done for _, done in seen if done)) / max(1e-9, last - first)
    return {"seconds": time.monotonic() - began, "records_per_second": steady, "megabytes": read_status(None, "VmHWM")}


def read_status(process: int | None, name: str) -> float:
    """One figure of a process, in megabytes."""
    text = Path(f"/proc/{process or 'self'}/status").read_text()
    found = re.search(rf"{name}:\s+(\d+) kB", text)
    return int(found[1]) / 1024 if found else 0.0


def measure_store(raylet: int) -> float:
    """What the object store of a raylet takes of shared memory, in megabytes: the pages of its file ever written."""
    total = 0
    for handle in Path(f"/proc/{raylet}/fd").iterdir():
        with suppress(OSError):
            if "plasma" in str(handle.readlink()):
                total += handle.stat().st_blocks * 512
    return total / (1 << 20)


@dataclass
class Watch:
    """Looks at processes while they work: what they used, and what they held at most."""

    raylets: list[int]
    store: float = 0.0
    """The most that object stores held, in megabytes."""
    workers: float = 0.0
    """The peak memory of the largest worker, in megabytes."""
    seconds: dict[int, float] = field(default_factory=dict)
    """Processor seconds of each process."""

    @contextmanager
    def running(self, process: int):
        """Look again and again at a process and at all that it and the raylets started."""
        ended = threading.Event()

        def run() -> None:
            while not ended.wait(0.2):
                self.look([process, *self.raylets])

        thread = threading.Thread(target=run, daemon=True)
        thread.start()
        try:
            yield self
        finally:
            ended.set()
            thread.join()

    def look(self, roots: list[int]) -> None:
        """Note what is so now."""
        self.store = max(self.store, sum(map(measure_store, self.raylets)))
        for root in roots:
            with suppress(psutil.Error, OSError):
                parent = psutil.Process(root)
                for each in [parent, *parent.children(recursive=True)]:
                    with suppress(psutil.Error, OSError):
                        used = each.cpu_times()
                        self.seconds[each.pid] = used.user + used.system
                        command = " ".join(each.cmdline())
                        if WORKER_TITLE in command or "spawn_main" in command:
                            self.workers = max(self.workers, read_status(each.pid, "VmHWM"))


def run(backend: str, raylets: list[int], model: Path, corpus: Path, workers: int) -> dict[str, float]:
    """Score in a process of its own, and watch."""
    with tempfile.TemporaryDirectory() as work:
        words = [sys.executable, __file__, "--score", backend, str(model), str(corpus), work, str(workers)]
        watch = Watch(raylets if backend != "local" else [])
        watch.look(watch.raylets)
        before = dict(watch.seconds)
        driver = subprocess.Popen(words, stdout=subprocess.PIPE, text=True)  # noqa: S603 - our own script
        with watch.running(driver.pid):
            out, _ = driver.communicate()
        if driver.returncode:
            raise SystemExit("the driver failed")
    used = {pid: seconds - before.get(pid, 0.0) for pid, seconds in watch.seconds.items()}
    return {
        **json.loads(out.splitlines()[-1]),
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


def compare(given: argparse.Namespace, address: str, raylets: list[int], model: Path, folder: Path) -> float:
    """Part (a): our throughput through Ray as a share of the local one."""
    corpus, shares = folder / "compared.jsonl", list[float]()
    write_corpus(corpus, given.records, 12)
    for number in range(given.rounds):
        order = ("local", address) if number % 2 else (address, "local")
        found = {side: run(side, raylets, model, corpus, given.workers) for side in order}
        local, ray = found["local"], found[address]
        shares.append(local["cpu_seconds"] / ray["cpu_seconds"])
        print(
            f"round {number}: processor seconds local {local['cpu_seconds']:.1f}, Ray {ray['cpu_seconds']:.1f}, "
            f"share {shares[-1]:.2f}; records per second once begun {local['records_per_second']:.0f}, "
            f"{ray['records_per_second']:.0f}, share {ray['records_per_second'] / local['records_per_second']:.2f}; "
            f"wall {local['seconds']:.0f}, {ray['seconds']:.0f} s",
            flush=True,
        )
    return sorted(shares)[len(shares) // 2]


def measure_memory(given: argparse.Namespace, address: str, raylets: list[int], model: Path, folder: Path) -> bool:
    """Part (b): print peaks at both sizes; whether they are within the limits."""
    rows = []
    for count in (given.memory, 10 * given.memory):
        write_corpus(folder / f"{count}.jsonl", count, 1)
        row = run(address, raylets, model, folder / f"{count}.jsonl", given.workers)
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
    parser.add_argument("--score", nargs=5, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.score:
        *names, workers = given.score
        print(json.dumps(score(*names, int(workers))))
        return
    kept = True
    with tempfile.TemporaryDirectory() as name, start_cluster(nodes=1, cpus=given.workers) as cluster:
        small, tiny = build_models(folder := Path(name))
        raylets = [info.process.pid for node in cluster.list_all_nodes() for info in node.all_processes["raylet"]]
        if given.rounds:
            share = compare(given, cluster.address, raylets, small, folder)
            kept &= share >= LEAST_SHARE
            print(f"median of {given.rounds} rounds: {share:.2f} of the local throughput; claimed {LEAST_SHARE}")
        if given.memory:
            kept &= measure_memory(given, cluster.address, raylets, tiny, folder)
    sys.exit(0 if kept else 1)


if __name__ == "__main__":
    main()
