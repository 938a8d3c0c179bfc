"""Measures on a small scale what `costs.py` computes from.

    measure.py model FOLDER CORPUS 80    with a pretrained model: bytes of a stored token, tokens per second
    measure.py driver 100000             beside workers that do nothing: memory and seconds per record
    measure.py worker 20000              with a tiny model: seconds per record

Processor seconds of one thread, because other programs lengthen them less. The driver is measured at so many records
and at ten times as many, each in a process of its own; both have a constant part, which the difference leaves out.
"""

from __future__ import annotations

import json
import pickle
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

from recollect.corpora import read_corpus
from recollect.corpora.corpus import Corpus
from recollect.execution.backend import Done
from recollect.models.answer_store.scoring import score_corpus
from recollect.models.loading.loader import load_model
from recollect.testing.tiny import build_tiny_model, save_tiny


@dataclass(frozen=True)
class IdleWorkers:
    """A backend whose workers do nothing: what is left is what the driver does. Items are packed as for a cluster."""

    workers: int = 1
    threads: int = 1
    in_process: bool = False

    def prepare(self) -> None:
        """Nothing."""

    def hold(self, folder: Path, *, purpose: str) -> AbstractContextManager[None]:
        """Nothing."""
        return nullcontext()

    def map(self, work: Callable[[Any], Any], items: Iterable[Any], *, threads: int | None = None) -> Iterator[Any]:
        """The number of records of each item."""
        for item in items:
            pickle.dumps(item)
            yield Done(len(item))


def write_records(path: Path, count: int) -> None:
    """So many short records."""
    with path.open("w", encoding="utf-8") as lines:
        for i in range(count):
            lines.write(json.dumps({"id": str(i), "user": str(i % 97), "text": f"{i} {i * 7919 % 9973}"}) + "\n")


def score_short_records(count: int, backend: Any) -> dict[str, float]:
    """Processor seconds and the peak memory of this process while it scores short records with a tiny model."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        save_tiny(build_tiny_model("gpt2"), folder / "model")
        write_records(folder / "records.jsonl", count)
        began = time.process_time()
        score_corpus(str(folder / "model"), read_corpus(str(folder / "records.jsonl")), folder, backend=backend)
        seconds = time.process_time() - began
    found = re.search(r"VmHWM:\s+(\d+) kB", Path("/proc/self/status").read_text())
    assert found is not None
    return {"records": count, "seconds": seconds, "bytes": int(found[1]) * 1024}


def compare_sizes(kind: str, count: int) -> dict[str, Any]:
    """What each record more takes, from so many and ten times as many."""
    words = [sys.executable, __file__, f"{kind}-once"]
    small, large = (
        json.loads(subprocess.run([*words, str(n)], check=True, capture_output=True, text=True).stdout)  # noqa: S603
        for n in (count, 10 * count)
    )
    more = large["records"] - small["records"]
    return {
        "small": small,
        "large": large,
        "seconds_per_record": (large["seconds"] - small["seconds"]) / more,
        "bytes_per_record": (large["bytes"] - small["bytes"]) / more,
    }


def measure_model(model: str, corpus: str, records: int) -> dict[str, float]:
    """The size of a stored token, and how many tokens one core scores in a second, with a pretrained model."""
    loaded, chosen = load_model(model), Corpus.of(islice(read_corpus(corpus), records))
    with tempfile.TemporaryDirectory() as work:
        began = time.process_time()
        store = score_corpus(loaded, chosen, Path(work))
        seconds = time.process_time() - began
        rows = sum(len(answers.rank) for answers in store)
        size = sum(path.stat().st_size for path in store.folder.glob("*.parquet"))
    return {"rows": rows, "bytes": size, "bytes_per_row": size / rows, "rows_per_second": rows / seconds}


def main() -> None:
    """Measure what the command line names."""
    import torch

    torch.set_num_threads(1)
    kind, *given = sys.argv[1:]
    measures: dict[str, Callable[..., dict[str, Any]]] = {
        "model": lambda model, corpus, count: measure_model(model, corpus, int(count)),
        "driver": lambda count: compare_sizes("driver", int(count)),
        "worker": lambda count: compare_sizes("worker", int(count) // 10),
        "driver-once": lambda count: score_short_records(int(count), IdleWorkers()),
        "worker-once": lambda count: score_short_records(int(count), None),
    }
    print(json.dumps(measures[kind](*given)))


if __name__ == "__main__":
    main()
