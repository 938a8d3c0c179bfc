"""Table 1, all nine architectures, three models of each."""

from __future__ import annotations

from collections.abc import Iterator

from common.outcomes import Figure, Outcome
from laboratory import SEEDS, TEN, Laboratory, over_seeds
from several import summarised

PAPER = {
    "GRU 1 × 370": (1.18, 36, "char-gru", ("layers=1", "units=370", "embedding=162")),
    "GRU 2 × 235": (1.18, 37, "char-gru", ()),
    "LSTM 1 × 320": (1.17, 38, "char-lstm", ("layers=1", "units=320", "embedding=144")),
    "LSTM 2 × 200": (1.16, 35, "char-lstm", ()),
    "CNN 1 × 436": (1.29, 24, "char-cnn", ("layers=1", "units=436", "embedding=136")),
    "CNN 2 × 188": (1.28, 19, "char-cnn", ("layers=2", "units=188", "embedding=133")),
    "CNN 4 × 122": (1.25, 22, "char-cnn", ()),
    "WaveNet 2 × 188": (1.24, 18, "char-wavenet", ("layers=2", "units=188", "embedding=133")),
    "WaveNet 4 × 122": (1.25, 20, "char-wavenet", ()),
}
"""Test loss, estimated exposure, recipe, and what is otherwise than in it; embeddings are ours, for about 620,000
parameters."""
SLOWER = {"char-cnn": ("training.learning_rate=0.003",)}
"""Chosen after looking: at 0.01 the CNN of four layers does not learn."""


def study(lab: Laboratory) -> Iterator[Outcome]:
    figures: list[Figure] = []
    for name, (loss, bits, recipe, changes) in PAPER.items():
        rows = over_seeds(lab, "table1_nine", name, *changes, *SLOWER.get(recipe, ()), recipe=recipe)
        figures += summarised(name, rows, loss=loss, bits=bits)
        yield Outcome(
            title="Table 1: nine architectures of equal size",
            scale=f"2 % of the treebank, {TEN} epochs, {len(SEEDS)} models of each; CNNs with a rate of their own, "
            "chosen after looking (†).",
            figures=list(figures),
        )
