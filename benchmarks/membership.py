"""What signals cost beside the scoring they read: `python benchmarks/membership.py [--quick]`.

One GPT-2 small is asked about ragged texts into an answer store; then every signal that reads one pass of one model is
computed from it. RMIA and AUC are measured on made-up numbers. Processor time of one thread, in one run.
"""

from __future__ import annotations

import argparse
import tempfile
import tracemalloc
from pathlib import Path

import numpy as np
import torch
from _gpt2 import gpt2_small, ragged_texts, seconds

from recollect.corpora.corpus import Corpus
from recollect.models.answer_store.scoring import score_corpus
from recollect.models.hugging_face.causal import Causal
from recollect.models.model import Question
from recollect.signals.evidence import AUDITED, TARGET, Evidence
from recollect.signals.registry import make_signal
from recollect.signals.rmia import compute_dominated_share
from recollect.signals.signal import compute_scores
from recollect.stats.auc import auc
from recollect.stats.roc import roc_curve

ONE_PASS = ("loss", "zlib", "lowest-tokens", "min-k-plus-plus", "entropy")
MOST_OF_SCORING, MOST_MEGABYTES, MOST_SECONDS = 1.1, 64, 2.0


def signals(texts: int) -> float:
    """Scoring and all signals that read it, over scoring alone."""
    pretrained = gpt2_small()
    model, corpus = Causal(pretrained, Question()), Corpus.of(ragged_texts(pretrained, texts))
    model.answer(list(corpus)[:4])
    with tempfile.TemporaryDirectory() as folder:
        scoring = seconds(lambda: score_corpus(model, corpus, Path(folder)))
        store = score_corpus(model, corpus, Path(folder))
        evidence = Evidence(models={TARGET: model}, corpora={AUDITED: corpus}, answers={(TARGET, AUDITED): store})
        each = {name: seconds(lambda name=name: compute_scores(make_signal(name), evidence)) for name in ONE_PASS}
    for name, cost in each.items():
        print(f"  {name:18} {cost / scoring:.4f} of scoring")
    return 1 + sum(each.values()) / scoring


def rmia(records: int, population: int) -> tuple[float, float]:
    """Seconds and megabytes of comparing so many records with such a population."""
    rng = np.random.default_rng(0)
    ratios, others = rng.lognormal(size=records), rng.lognormal(size=population)
    taken = seconds(lambda: compute_dominated_share(ratios, others, gamma=2.0))
    tracemalloc.start()
    compute_dominated_share(ratios, others, gamma=2.0)
    megabytes = tracemalloc.get_traced_memory()[1] / 2**20
    tracemalloc.stop()
    return taken, megabytes


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="fewer texts: a first look")
    quick = parser.parse_args().quick
    torch.set_num_threads(1)
    cost = signals(24 if quick else 200)
    print(f"scoring and {len(ONE_PASS)} signals: {cost:.3f} of scoring alone (claimed: at most {MOST_OF_SCORING})")
    taken, megabytes = rmia(50_000, 10_000)
    print(f"RMIA, 50,000 × 10,000: {taken:.3f} s, {megabytes:.1f} MB (claimed: at most {MOST_MEGABYTES} MB)")
    rng = np.random.default_rng(1)
    members, others = rng.normal(0.5, 1, 500_000), rng.normal(0, 1, 500_000)
    area, curve = seconds(lambda: auc(members, others)), seconds(lambda: roc_curve(members, others))
    print(f"10⁶ scores: AUC with interval {area:.2f} s, ROC curve {curve:.2f} s (claimed: at most {MOST_SECONDS} s)")
    assert cost <= MOST_OF_SCORING
    assert megabytes <= MOST_MEGABYTES
    assert max(area, curve) <= MOST_SECONDS


if __name__ == "__main__":
    main()
