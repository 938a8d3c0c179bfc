"""How fast models are asked: `python benchmarks/scoring.py [--parts abcd] [--threads 2] [--quick]`.

(a) causal, beside the bare forward pass; (b) masked, beside the loop and the bare encoder; (c) memory at ten times the
corpus; (d) causal, against lm-evaluation-harness. Ratios are of things measured in turn in one run. Prints a table,
writes `benchmarks/results/scoring.json`, and ends with status 1 if something was not reached.
"""

from __future__ import annotations

import argparse
import os
from pathlib import Path

RESULTS = Path(__file__).parent / "results" / "scoring.json"


def main() -> int:
    asked = arguments()
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
    import torch
    from transformers.utils import logging

    logging.set_verbosity_error()
    logging.disable_progress_bar()
    torch.set_num_threads(asked.threads)
    found = {part: PARTS[part](asked.quick) for part in asked.parts}
    for part, figures in found.items():
        show(part, figures)
    from recollect.files import write_json

    write_json(asked.out, found)
    return 0 if all(figures.get("reached", True) for figures in found.values()) else 1


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--parts", default="abcd", help="which of a, b, c and d")
    parser.add_argument("--threads", type=int, default=os.cpu_count(), help="with 1, processor time is measured")
    parser.add_argument("--quick", action="store_true", help="fewer texts and rounds: a first look")
    parser.add_argument("--out", type=Path, default=RESULTS)
    return parser.parse_args()


def causal(quick: bool) -> dict:
    import _causal

    found = _causal.measure(texts=24 if quick else 96, rounds=3 if quick else 5)
    return {**found, "must": f"ratio ≥ {_causal.LEAST}", "reached": found["ratio"] >= _causal.LEAST}


def masked(quick: bool) -> dict:
    import _masked

    found = _masked.measure(texts=12 if quick else 48, rounds=3 if quick else 5)
    return {**found, "must": f"times_the_loop ≥ {_masked.LEAST}, of_the_bare_encoder ≥ {_masked.LEAST_OF_BARE}"}


def memory(quick: bool) -> dict:
    import _memory

    found = _memory.measure(records=2_000 if quick else 10_000)
    return {**found, "must": f"ratio ≤ {_memory.MOST}", "reached": found["ratio"] <= _memory.MOST}


def harness(quick: bool) -> dict:
    import _harness

    return _harness.measure(texts=24 if quick else 96, rounds=2 if quick else 3)


PARTS = {"a": causal, "b": masked, "c": memory, "d": harness}


def show(part: str, figures: dict) -> None:
    print(f"({part}) {PARTS[part].__name__}")
    for name, value in figures.items():
        print(f"    {name:28} {value:.4g}" if isinstance(value, float) else f"    {name:28} {value}")


if __name__ == "__main__":
    raise SystemExit(main())
