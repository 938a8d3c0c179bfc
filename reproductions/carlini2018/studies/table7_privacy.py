"""Table 7: training with differential privacy, with and without noise, and without it."""

from __future__ import annotations

from common.outcomes import Figure, Outcome
from laboratory import COUNTED, Laboratory, small

EPOCHS = 20
LINES = 420
"""1 % of the treebank: gradients of single records are slow to compute."""
CASES = {
    "ε = 5.26": (("privacy.epsilon=5.26",), 1.41, 1.8),
    "clipping alone": (("privacy.epsilon=null", "privacy.noise=0"), 2.11, 3.6),
    "none": (("privacy.unit=none", "privacy.epsilon=null"), 1.17, 31.0),
}
"""Settings, and the paper's test loss and estimated exposure; its clipping alone was with SGD."""


def study(lab: Laboratory) -> Outcome:
    figures, details = [], {}
    for name, (changes, loss, bits) in CASES.items():
        model = lab.trained(
            small("training.batch_size=16", *changes, recipe="char-lstm-dp", epochs=EPOCHS, lines=LINES)
        )
        row = lab.exposure(model.folder, COUNTED, model.canaries[0])
        details[name] = {**row, "curve": model.curve[-1]}
        figures += [
            Figure(f"{name}: test loss, nats", loss, lab.test_loss(model.folder)),
            Figure(f"{name}: exposure, bits", None, row["exposure_bits"]),
            Figure(f"{name}: estimated exposure, bits", bits, row["skew_normal_bits"]),
        ]
    return Outcome(
        title="Table 7: differential privacy",
        scale=f"1 % of the treebank, {EPOCHS} epochs instead of 100; on so few records noise costs far more loss.",
        figures=figures,
        details=details,
    )
