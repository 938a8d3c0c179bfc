"""Part (c) of `scoring.py`: the highest memory of asking a model about a corpus, and about one ten times as large.

Each corpus is asked in a process of its own, from a `.jsonl` on disk into an answer store, by a tiny model: what is
measured is all but the model.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tempfile
from pathlib import Path

MOST = 1.10


def measure(*, records: int) -> dict[str, float]:
    """Megabytes at both sizes and their ratio."""
    from recollect.testing.tiny import build_tiny_model, save_tiny

    with tempfile.TemporaryDirectory() as folder:
        work = Path(folder)
        save_tiny(build_tiny_model("gpt2"), work / "model")
        small, large = (_peak(work, size) for size in (records, 10 * records))
    return {"records": records, "megabytes": small, "megabytes_at_ten_times": large, "ratio": large / small}


def _peak(work: Path, size: int) -> float:
    """The highest memory of a process that asks about so many records, in megabytes."""
    corpus = work / f"{size}.jsonl"
    with corpus.open("w", encoding="utf-8") as lines:
        for i in range(size):
            text = f"Person {i} wrote about {i * 7919 % size} things, and about {i * 104729 % size} others."
            lines.write(json.dumps({"id": str(i), "user": str(i % 97), "text": text}) + "\n")
    command = [sys.executable, __file__, str(work / "model"), str(corpus), str(work / f"work-{size}")]
    said = subprocess.run(command, check=True, capture_output=True, text=True)  # noqa: S603 - our own script
    return float(said.stdout.strip().splitlines()[-1])


def ask(model: str, corpus: str, work: str) -> float:
    """Ask, and say how much memory this process took at most, in megabytes."""
    import torch

    from recollect.corpora import read_corpus
    from recollect.models.answer_store.scoring import score_corpus
    from recollect.models.loading.loader import load_model

    torch.set_num_threads(1)
    score_corpus(load_model(model), read_corpus(corpus), Path(work))
    # the highest of this process alone; ru_maxrss may be that of the one that started it
    found = re.search(r"VmHWM:\s+(\d+) kB", Path("/proc/self/status").read_text())
    assert found is not None
    return int(found[1]) / 1024


if __name__ == "__main__":
    print(ask(*sys.argv[1:4]))
