"""Table 7, all nine rows: six budgets with RMSprop, clipping alone with SGD, and both optimisers without privacy."""

from __future__ import annotations

from collections.abc import Iterator

from common.outcomes import Figure, Outcome
from laboratory import Laboratory, kept, small, told
from studies.table7_privacy import EPOCHS, LINES

SGD = ("training.optimiser=sgd", "training.learning_rate=1.0")
"""The rate is ours, and none was tried before."""
NO_PRIVACY = ("privacy.unit=none", "privacy.epsilon=null")
ROWS = {
    "RMSprop, ε = 0.65": (("privacy.epsilon=0.65",), 1.69, 1.1),
    "RMSprop, ε = 1.21": (("privacy.epsilon=1.21",), 1.59, 2.3),
    "RMSprop, ε = 5.26": (("privacy.epsilon=5.26",), 1.41, 1.8),
    "RMSprop, ε = 89": (("privacy.epsilon=89",), 1.34, 2.1),
    "RMSprop, ε = 2·10⁸": (("privacy.epsilon=2e8", "privacy.accountant=rdp"), 1.32, 3.2),
    "RMSprop, ε = 10⁹": (("privacy.epsilon=1e9", "privacy.accountant=rdp"), 1.26, 2.8),
    "SGD, clipping alone": ((*SGD, "privacy.epsilon=null", "privacy.noise=0"), 2.11, 3.6),
    "SGD, no privacy": ((*SGD, *NO_PRIVACY), 1.86, 9.5),
    "RMSprop, no privacy": (NO_PRIVACY, 1.17, 31.0),
}
"""Settings, and the paper's test loss and estimated exposure."""


def study(lab: Laboratory) -> Iterator[Outcome]:
    figures: list[Figure] = []
    for name, (changes, loss, bits) in ROWS.items():
        setting = small("training.batch_size=16", *changes, recipe="char-lstm-dp", epochs=EPOCHS, lines=LINES)
        row = kept(lab, "table7_rows", name, setting, told)
        figures += [
            Figure(f"{name}: test loss, nats", loss, row["test_loss"]),
            Figure(f"{name}: exposure, bits", None, row["exposure_bits"]),
            Figure(f"{name}: estimated exposure, bits", bits, row["skew_normal_bits"]),
        ]
        yield Outcome(
            title="Table 7: all nine rows",
            scale=f"1 % of the treebank, {EPOCHS} epochs instead of 100; one model each.",
            figures=list(figures),
        )
