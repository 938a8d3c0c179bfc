"""Table 1: recurrent and convolutional models of the same size."""

from __future__ import annotations

from common.outcomes import Figure, Outcome
from laboratory import COUNTED, TEN, Laboratory, after_ten

PAPER = {"char-lstm": (1.16, 35), "char-gru": (1.18, 37), "char-cnn": (1.25, 22), "char-wavenet": (1.25, 20)}
"""Test loss and estimated exposure of LSTM 2 × 200, GRU 2 × 235, CNN 4 × 122 and WaveNet 4 × 122."""
CHANGES = {"char-cnn": ("training.learning_rate=0.003",)}
"""At 0.01 it does not learn: its test loss is then 2.95."""


def study(lab: Laboratory) -> Outcome:
    figures, details = [], {}
    for recipe, (loss, bits) in PAPER.items():
        changed = {} if recipe == "char-lstm" else {"recipe": recipe}
        model, canaries = after_ten(lab, *CHANGES.get(recipe, ()), **changed)
        row = lab.exposure(model, COUNTED, canaries)
        details[recipe] = row
        figures += [
            Figure(f"{recipe}: test loss, nats", loss, lab.test_loss(model)),
            Figure(f"{recipe}: exposure, bits", None, row["exposure_bits"]),
            Figure(f"{recipe}: estimated exposure, bits", bits, row["skew_normal_bits"]),
        ]
    return Outcome(
        title="Table 1: architectures of equal size",
        scale=f"2 % of the treebank, {TEN} epochs, one model of each; 620,000 parameters as in the paper.",
        figures=figures,
        details=details,
    )
