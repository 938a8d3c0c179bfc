"""Table 1: recurrent and convolutional models of the same size."""

from __future__ import annotations

from laboratory import COUNTED, TEN, Laboratory, after_ten
from outcomes import Figure, Outcome

PAPER = {"char-lstm": (1.16, 35), "char-gru": (1.18, 37), "char-cnn": (1.25, 22), "char-wavenet": (1.25, 20)}
"""Test loss and estimated exposure of LSTM 2 × 200, GRU 2 × 235, CNN 4 × 122 and WaveNet 4 × 122."""


def study(lab: Laboratory) -> Outcome:
    figures, details = [], {}
    for recipe, (loss, bits) in PAPER.items():
        model, canaries = after_ten(lab) if recipe == "char-lstm" else after_ten(lab, recipe=recipe)
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
