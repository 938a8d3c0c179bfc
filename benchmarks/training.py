"""The training loop against a bare PyTorch loop: the same model, the same batches, in turns.

Both cut their batches from the same arrays; ours also seeds each step, sums the loss, shows progress and writes a
checkpoint at the end. Processor time of one thread is compared, so that a busy machine does not decide. The claim:
at least 0.95 of the bare loop's speed, also for the perceptron, whose step takes about a millisecond.
"""

from __future__ import annotations

import statistics
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import torch

from recollect.corpora import Corpus, Record
from recollect.recipes.recipe_file import load_recipe
from recollect.recipes.training.assembly import PreparedTraining, assemble_training
from recollect.recipes.training.job import Job
from recollect.recipes.training.loop import Position, preserve_random_state
from recollect.recipes.training.samplers import Indices, Sampler

ROUNDS = 7
CLAIM = 0.95


@dataclass(frozen=True)
class First:
    """The first steps of an epoch."""

    sampler: Sampler
    steps: int

    def iter_batches(self, epoch: int) -> Iterator[Indices]:
        """Their sequences."""
        for _, drawn in zip(range(self.steps), self.sampler.iter_batches(epoch), strict=False):
            yield drawn


def texts(count: int, words: int) -> Corpus:
    rng = np.random.default_rng(0)
    vocabulary = np.array([f"{a}{b}{c}" for a in "bcdfgl" for b in "aeiou" for c in "mnprst"])
    return Corpus.of(
        Record(id=str(i), text=" ".join(rng.choice(vocabulary, rng.integers(words // 2, words)))) for i in range(count)
    )


def images(count: int) -> Corpus:
    rng = np.random.default_rng(0)
    arrays = rng.integers(0, 256, (count, 28, 28), dtype=np.uint8)
    return Corpus.of(Record(id=str(i), array=array, label=i % 10) for i, array in enumerate(arrays))


def ours(prepared: PreparedTraining, steps: int) -> float:
    loop = replace(
        prepared.loop,
        sampler=First(prepared.loop.sampler, steps),
        epochs=1,
        position=Position(),
        progress=lambda _: None,
    )
    (loop.folder / "checkpoint.safetensors").unlink(missing_ok=True)
    began = time.process_time()
    loop.run()
    return time.process_time() - began


def bare(prepared: PreparedTraining, steps: int) -> float:
    loop = prepared.loop
    model, optimiser, clip = loop.model, loop.update.optimiser, loop.update.clip
    parameters = list(model.parameters())
    rng = np.random.default_rng(0)
    model.train()
    began, state = time.process_time(), None
    with preserve_random_state():
        for drawn in First(loop.sampler, steps).iter_batches(0):
            batch = loop.update.sequences.build_batch(drawn, lambda: rng)
            extra = {"past_key_values": state, "use_cache": True} if loop.update.carries_state else {}
            output = model(**batch.inputs, **extra)
            if loop.update.carries_state:
                state = tuple(part.detach() for part in output.past_key_values)
            logits = output.logits.flatten(0, -2)
            loss = torch.nn.functional.cross_entropy(logits, batch.targets.flatten())
            optimiser.zero_grad()
            loss.backward()
            if clip is not None:
                torch.nn.utils.clip_grad_norm_(parameters, clip)
            optimiser.step()
    return time.process_time() - began


def compare(name: str, corpus: Corpus, steps: int) -> float:
    with tempfile.TemporaryDirectory() as folder:
        job = Job.of(load_recipe(name), corpus, None, seed=0)
        prepared = assemble_training(job, Path(folder))
        ours(prepared, 3), bare(prepared, 3)
        ratios = []
        for turn in range(ROUNDS):
            first, second = (ours, bare) if turn % 2 else (bare, ours)
            times = {way.__name__: way(prepared, steps) for way in (first, second)}
            ratios.append(times["bare"] / times["ours"])
    found = statistics.median(ratios)
    spread = f"{min(ratios):.3f} to {max(ratios):.3f}"
    print(f"{name:20} {found:.3f} of the bare loop's speed (median of {ROUNDS}, {spread}; {steps} steps)")
    return found


def main() -> None:
    torch.set_num_threads(1)
    found = [
        compare("char-lstm", texts(4000, 30), steps=12),
        compare("word-lstm", texts(4000, 30), steps=60),
        compare("causal-transformer", texts(2000, 30), steps=12),
        compare("mlp", images(20000), steps=625),
    ]
    assert min(found) >= CLAIM, f"{min(found):.3f} is below {CLAIM}"


if __name__ == "__main__":
    main()
