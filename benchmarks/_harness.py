"""Part (d) of `scoring.py`: against lm-evaluation-harness's `loglikelihood`, on the same weights and texts.

The harness lives in an environment of its own, made once under the cache folder. Both tokenise and score; ours also
gives rank, entropy and spread of every token. They take turns, so that a busy machine slows both. The harness is
given the batch size that is best for it.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import torch
from _gpt2 import gpt2_small, ragged_texts, seconds

from recollect.models.hugging_face.causal import Causal
from recollect.models.model import Question
from recollect.testing.tiny import save_tiny

CACHE = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "recollect-benchmarks"
PACKAGES = ["torch==2.13.0", "lm_eval[hf]"]
BATCHES = (1, 4, 16)


def measure(*, texts: int, rounds: int) -> dict[str, float | str]:
    """How many times faster ours is, and how far the log-probabilities of whole texts lie apart."""
    python = _environment()
    if python is None:
        return {"skipped": f"could not install {' '.join(PACKAGES)}"}
    pretrained = gpt2_small()
    records, model = ragged_texts(pretrained, texts), Causal(pretrained, Question())
    with tempfile.TemporaryDirectory() as folder:
        save_tiny(pretrained, Path(folder) / "model")
        written = Path(folder) / "texts.json"
        written.write_text(json.dumps([record.text for record in records]), encoding="utf-8")
        side = Path(__file__).with_name("_harness_side.py")
        command = [python, side, Path(folder) / "model", written, str(torch.get_num_threads())]
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as harness:  # noqa: S603
            _line(harness, "ready")
            best = min(BATCHES, key=lambda batch: _turn(harness, batch)["seconds"])
            found = [(_turn(harness, best), seconds(lambda: model.answer(records))) for _ in range(rounds)]
            assert harness.stdin is not None
            harness.stdin.close()
    answers = model.answer(records)
    sums = np.array([row.sum() for row in answers.select([record.digest for record in records]).iter_column("logprob")])
    theirs = np.array(found[0][0]["logprobs"])
    ratios = [turn["seconds"] / ours for turn, ours in found]
    return {
        "threads": torch.get_num_threads(),
        "harness_batch": best,
        "tokens": answers.rows,
        "tokens_per_second": answers.rows / float(np.median([ours for _, ours in found])),
        "harness_tokens_per_second": answers.rows / float(np.median([turn["seconds"] for turn, _ in found])),
        "times_the_harness": float(np.median(ratios)),
        "furthest_apart": float(np.abs(sums - theirs).max()),
    }


def _turn(harness: subprocess.Popen[str], batch: int) -> dict:
    """Let the harness score once, so many texts at a time."""
    assert harness.stdin is not None
    harness.stdin.write(f"{batch}\n")
    harness.stdin.flush()
    return json.loads(_line(harness, "{"))


def _line(harness: subprocess.Popen[str], begins: str) -> str:
    """The next line that begins so; whatever else it prints is passed over."""
    assert harness.stdout is not None
    for line in harness.stdout:
        if line.startswith(begins):
            return line
    raise RuntimeError(f"the harness ended with status {harness.wait()}")


def _environment() -> Path | None:
    """The harness's own interpreter, installed on first use; None if that fails."""
    python = CACHE / "lm_eval" / "bin" / "python"
    if not (CACHE / "lm_eval" / "installed").exists():
        try:
            subprocess.run([sys.executable, "-m", "venv", "--clear", CACHE / "lm_eval"], check=True)  # noqa: S603
            subprocess.run([python, "-m", "pip", "install", "--quiet", *PACKAGES], check=True)  # noqa: S603
        except (OSError, subprocess.CalledProcessError):
            return None
        (CACHE / "lm_eval" / "installed").touch()
    return python
