"""Table 3: what the adversary knows of the surrounding text moves the exposure.

Three kinds of secret, a model for each: nine digits between two unique phrases of five characters (the first four rows
ask the same models), and digits with dashes between them. Several kinds in one model would compete for its first guess.
"""

from __future__ import annotations

from dataclasses import replace
from statistics import fmean

from common.outcomes import Figure, Outcome
from laboratory import TEN, Laboratory, Row, Trained, secret_of, small

from recollect.audits.exposure.audit import ExposureAudit
from recollect.corpora.canaries.insertion import CanarySettings

BEFORE, AFTER = "qzjxv", "wkqvy"
NINE, GROUPS, SINGLE = "{digits:9}", "{digits:3}-{digits:2}-{digits:4}", "-".join(["{digits:1}"] * 9)
KNOWN = {
    "nine digits": (NINE, 5.0, 6.1),
    "⟨s⟩ nine digits": (f"{BEFORE}{NINE}", 6.3, 7.1),
    "nine digits ⟨e⟩": (f"{NINE}{AFTER}", 5.0, 6.8),
    "⟨s⟩ nine digits ⟨e⟩": (f"{BEFORE}{NINE}{AFTER}", 6.1, 7.5),
    "3-2-4 digits": (GROUPS, 5.1, 9.5),
    "nine single digits with dashes": (SINGLE, 5.2, 11.1),
}
"""What is known, and the paper's exposure after 5 and 10 epochs."""
EPOCHS = (5, TEN)
MODELS = 1
AUDIT = ExposureAudit(draws=1024, max_steps=30_000)


def study(lab: Laboratory) -> Outcome:
    figures, details = [], {}
    for what, (format, *paper) in KNOWN.items():
        planted = format if format in (GROUPS, SINGLE) else f"{BEFORE}{NINE}{AFTER}"
        models = [
            lab.trained(small(seed=seed, epochs=TEN, plantings=plantings(planted, seed))) for seed in range(MODELS)
        ]
        for epoch, printed in zip(EPOCHS, paper, strict=True):
            rows = [measured(lab, model, epoch, format) for model in models]
            details[f"{what}, epoch {epoch}"] = rows
            estimated = fmean(row["skew_normal_bits"] for row in rows)
            figures.append(Figure(f"{what}, epoch {epoch}: estimated exposure, bits", printed, estimated))
    return Outcome(
        title="Table 3: exposure by what is known of the context",
        scale=f"2 % of the treebank; of each kind of secret {MODELS} model where the paper has ten.",
        figures=figures,
        details=details,
    )


def plantings(format: str, seed: int) -> tuple[CanarySettings, ...]:
    return (CanarySettings(format=format, secrets=1, controls=0, seed=seed),)


def measured(lab: Laboratory, model: Trained, epoch: int, format: str) -> Row:
    """The exposure of the planted secret, with just as much of the text around it as is known."""
    text = secret_of(model.canaries[0])
    text = text if format.startswith(BEFORE) else text.removeprefix(BEFORE)
    text = text if format.endswith(AFTER) else text.removesuffix(AFTER)
    return lab.exposure(model.after(epoch), replace(AUDIT, format=format, secrets=(text,)))
