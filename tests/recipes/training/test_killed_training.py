"""Real processes, really killed: the weights are those of an undisturbed training."""

from __future__ import annotations

import subprocess
import sys
import time

import numpy as np
import pytest

from recollect.files import read_json

TRAIN = """
import sys
from pathlib import Path
from recollect.corpora import read_corpus
from recollect.recipes import loop
from recollect.recipes.recipe_file import load_recipe
from recollect.recipes.training.trainer import train
loop.Loop.__init__.__kwdefaults__["checkpoint_seconds"] = 0.1
corpus, out, threads, *changes = sys.argv[1:]
texts = read_corpus(corpus)
train(load_recipe("char-lstm", changes), texts, Path(out), validation=texts, threads=int(threads))
"""
CHANGES = ["units=32", "dropout=0.2", "keep=best", "batch_size=16"]


def changed(path):
    return path.stat().st_mtime_ns if path.exists() else 0


@pytest.mark.slow
@pytest.mark.parametrize(("layout", "threads", "epochs"), [("stream", 2, 3), ("records", 1, 12)])
def test_a_training_killed_again_and_again_ends_with_the_same_weights(tmp_path, layout, threads, epochs):
    rng = np.random.default_rng(0)
    letters = np.array(list("abcdefgh "))
    corpus = tmp_path / "corpus.txt"
    corpus.write_text("\n".join("".join(rng.choice(letters, 60)) for _ in range(200)) + "\n")

    def start(out):
        changes = [*CHANGES, f"layout={layout}", f"epochs={epochs}"]
        command = [sys.executable, "-c", TRAIN, str(corpus), str(tmp_path / out), str(threads), *changes]
        return subprocess.Popen(command)  # noqa: S603 - our own code

    assert start("whole").wait() == 0
    checkpoint = tmp_path / "killed" / "working" / "checkpoint.safetensors"
    kills = 0
    while kills < 4 and not (tmp_path / "killed" / "card.json").exists():
        written = changed(checkpoint)
        process = start("killed")
        while process.poll() is None and changed(checkpoint) == written:
            time.sleep(0.01)
        time.sleep(rng.uniform(0, 0.3))
        kills += process.poll() is None
        process.kill()
        process.wait()
    assert kills >= 2
    assert start("killed").wait() == 0
    for name in ("model.safetensors", "config.json", "tokenizer.json"):
        assert (tmp_path / "whole" / name).read_bytes() == (tmp_path / "killed" / name).read_bytes()
    whole, killed = (read_json(tmp_path / out / "curve.json") for out in ("whole", "killed"))
    assert [{**row, "seconds": 0} for row in whole] == [{**row, "seconds": 0} for row in killed]
    assert not list((tmp_path / "killed").rglob("*.part"))
