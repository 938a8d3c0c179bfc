"""Section 7.3: a word-level model; the secret's digits are words of their own, as numerals or as English words."""

from __future__ import annotations

from common.outcomes import Figure, Outcome
from laboratory import Laboratory, small

from recollect.audits.exposure.audit import ExposureAudit
from recollect.corpora.canaries.insertion import CanarySettings

WORDS = "zero|one|two|three|four|five|six|seven|eight|nine"
FORMATS = {
    "numerals": ("the random number is " + " ".join(["{digits:1}"] * 9), 25),
    "English words": ("the random number is " + " ".join([f"{{choice:{WORDS}}}"] * 9), 12),
}
CHANGES = (
    "model.units=200",
    "model.embedding=200",
    "model.layers=2",
    "model.dropout=0.2",
    "training.optimiser=adam",
    "training.learning_rate=0.005",
    "training.clip=5.0",
)
EPOCHS = 15
AUDIT = ExposureAudit(draws=2048, max_steps=300_000)


def study(lab: Laboratory) -> Outcome:
    figures, details = [], {}
    for name, (format, printed) in FORMATS.items():
        planting = CanarySettings(format=format, secrets=1, controls=0)
        model = lab.trained(small(*CHANGES, recipe="word-lstm", epochs=EPOCHS, plantings=(planting,)))
        row = lab.exposure(model.folder, AUDIT, model.canaries[0])
        details[name] = row
        figures += [
            Figure(f"{name}: estimated exposure, bits", printed, row["skew_normal_bits"]),
            Figure(f"{name}: exposure, bits", None, row["exposure_bits"]),
        ]
    return Outcome(
        title="Section 7.3: words in place of characters",
        scale=f"2 × 200 units instead of 2 × 1500, 2 % of the treebank, its 5,000 commonest words, {EPOCHS} epochs.",
        figures=figures,
        details=details,
    )
