"""Table 4: one, ten and fifty secrets, planted once, twice, five and ten times; three models a cell."""

from __future__ import annotations

from statistics import fmean

from common.outcomes import Figure, Outcome
from laboratory import EPOCHS, SEEDS, Laboratory, small
from studies.table4_secrets import AUDIT

from recollect.corpora.canaries.insertion import CanarySettings

PAPER = {
    (1, 1): 0.80, (10, 1): 0.11, (50, 1): 0.02,
    (1, 2): 1.0, (10, 2): 0.38, (50, 2): 0.18,
    (1, 5): 1.0, (10, 5): 1.0, (50, 5): 1.0,
    (1, 10): 1.0, (10, 10): 1.0, (50, 10): 1.0,
}  # fmt: skip
"""Share of secrets that can be extracted, by number of secrets and of insertions. Hundreds would be more text than the
rest of so small a training set."""


def study(lab: Laboratory) -> Outcome:
    figures, details = [], {}
    for (secrets, times), printed in PAPER.items():
        shares = []
        for seed in SEEDS:
            planting = CanarySettings(
                format="{digits:3}-{digits:2}-{digits:4}",
                secrets=secrets,
                repeat=(times,),
                controls=0,
                unique_prefix=5,
                seed=seed,
            )
            model = lab.trained(small(seed=seed, plantings=(planting,)))
            rows = lab.exposures(model.folder, AUDIT, model.canaries[0])
            shares.append(fmean(row["rank"] == 1 for row in rows))
            details[f"{secrets} secrets, {times} insertions, seed {seed}"] = rows
        name = f"{secrets} secrets, {times} insertions"
        figures += [
            Figure(f"{name}: share extractable, mean of {len(SEEDS)}", printed, fmean(shares)),
            Figure(f"{name}: lowest", None, min(shares)),
            Figure(f"{name}: highest", None, max(shares)),
        ]
    return Outcome(
        title="Table 4: twelve cells",
        scale=f"2 % of the treebank, {EPOCHS} epochs, {len(SEEDS)} models a cell; 12 of 20 cells. A secret counts as "
        "extractable if its rank was counted to be 1.",
        figures=figures,
        details=details,
    )
