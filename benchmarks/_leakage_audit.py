"""Part (b) of `leakage.py`: the whole audit, beside the time in which its models are asked."""

from __future__ import annotations

import time
from pathlib import Path

import numpy as np

from recollect.audits.leakage.audit import LeakageAudit
from recollect.corpora.corpus import Corpus
from recollect.corpora.record import Record
from recollect.pipeline import run as pipeline
from recollect.pipeline.plans.plan import Plan
from recollect.recipes.recipe_file import load_recipe
from recollect.recipes.training.trainer import train

LENGTH, EACH, VOCABULARY, LIKELY = 10, 20, 2000, 0.5
RECIPE = ["units=64", "embedding=32", "tokenizer.size=2000", "batch_size=64", "learning_rate=0.01", "epochs=3"]


def texts(words: int, *, seed: int = 0, name: str = "user") -> list[Record]:
    """Records of ten words; half of the words follow from the word before, so that a model says many runs."""
    rng = np.random.default_rng([seed, 7])
    follows = np.random.default_rng(7).integers(VOCABULARY, size=VOCABULARY)
    rows = words // LENGTH
    ids = np.floor(VOCABULARY ** rng.random((rows, LENGTH))).astype(np.int64) % VOCABULARY
    likely = rng.random((rows, LENGTH)) < LIKELY
    for place in range(1, LENGTH):
        ids[:, place] = np.where(likely[:, place], follows[ids[:, place - 1]], ids[:, place])
    return [
        Record(id=f"{name}-{i}", user=f"{name}-{i // EACH}", text=" ".join(f"word{w}" for w in row))
        for i, row in enumerate(ids.tolist())
    ]


def measure(folder: Path, words: int) -> dict[str, float]:
    """Processor seconds of a whole audit with two references, and of asking the three models."""
    recipe = load_recipe("word-gru", RECIPE)
    models = {}
    for i, part in enumerate(("target", "reference-0", "reference-1")):
        train(recipe, Corpus.of(texts(20_000, seed=i + 1, name=part)), folder / part, threads=1, seed=i)
        models[part] = str(folder / part)
    corpus = Corpus.of(texts(words), name="people")
    plan = Plan(audit=LeakageAudit(top_k=3), models=models, corpora={"audited": corpus}, work=folder, threads=1)
    asking, ask = [], pipeline.score_corpus

    def timed(*arguments: object, **options: object) -> object:
        began = time.process_time()
        try:
            return ask(*arguments, **options)
        finally:
            asking.append(time.process_time() - began)

    pipeline.score_corpus = timed
    began = time.process_time()
    result = pipeline.run(plan, folder / "run")
    whole = time.process_time() - began
    pipeline.score_corpus = ask
    return {"whole": whole, "asking": sum(asking), "sequences": result.finding("unique_sequences").value}
