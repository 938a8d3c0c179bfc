"""Table 3: what the adversary knows of the surrounding text moves the exposure.

Three secrets stand in each model: nine digits between two unique phrases of five characters, and digits with dashes
between them. The paper trains a model for each kind; here one model has all three, so that they compare within it.
"""

from __future__ import annotations

from dataclasses import replace
from statistics import fmean

from laboratory import Laboratory, Trained, secret_of, small
from outcomes import Figure, Outcome

from recollect.audits.exposure.audit import ExposureAudit
from recollect.corpora.canaries.planting import Planting

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
MODELS = 3
EPOCHS = (5, 10)
AUDIT = ExposureAudit(draws=1024, max_steps=30_000)


def study(lab: Laboratory) -> Outcome:
    models = [lab.trained(setting(seed)) for seed in range(MODELS)]
    figures, details = [], {}
    for what, (format, *paper) in KNOWN.items():
        for epoch, printed in zip(EPOCHS, paper, strict=True):
            rows = [measured(lab, model, epoch, format) for model in models]
            details[f"{what}, epoch {epoch}"] = rows
            figures.append(Figure(f"{what}, epoch {epoch}", printed, fmean(row["exposure_bits"] for row in rows)))
    return Outcome(
        title="Table 3: exposure by what is known of the context",
        scale=f"{MODELS} models of 2 % of the treebank instead of ten of all of it; all kinds of secret in each model.",
        figures=figures,
        details=details,
    )


def setting(seed: int):
    kinds = {"nine": f"{BEFORE}{NINE}{AFTER}", "groups": GROUPS, "single": SINGLE}
    plantings = tuple(Planting(format=f, secrets=1, controls=0, name=n, seed=seed) for n, f in kinds.items())
    return small(seed=seed, epochs=EPOCHS[-1], plantings=plantings)


def measured(lab: Laboratory, model: Trained, epoch: int, format: str):
    """The exposure of the secret that fits the format, with just as much of the text around it."""
    nine, groups, single = (secret_of(manifest) for manifest in model.canaries)
    text = {GROUPS: groups, SINGLE: single}.get(format)
    if text is None:
        text = nine.removeprefix("" if BEFORE in format else BEFORE).removesuffix("" if AFTER in format else AFTER)
    return lab.exposure(model.after(epoch), replace(AUDIT, format=format, secrets=(text,)))
