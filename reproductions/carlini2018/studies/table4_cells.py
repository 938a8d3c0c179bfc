"""Table 4: one, ten and fifty secrets, planted once, twice, five and ten times; three models a cell."""

from __future__ import annotations

from collections.abc import Iterator
from statistics import fmean

from common.outcomes import Figure, Outcome
from laboratory import EPOCHS, SEEDS, Laboratory, Trained, kept, small
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


def study(lab: Laboratory) -> Iterator[Outcome]:
    figures: list[Figure] = []
    for (secrets, times), printed in PAPER.items():
        name, shares = f"{secrets} secrets, {times} insertions", []
        for seed in SEEDS:
            planting = CanarySettings(
                format="{digits:3}-{digits:2}-{digits:4}",
                secrets=secrets,
                repeat=(times,),
                controls=0,
                unique_prefix=5,
                seed=seed,
            )
            setting = small(seed=seed, plantings=(planting,))
            shares.append(kept(lab, "table4_cells", f"{name}, seed {seed}", setting, share_extractable))
        figures += [
            Figure(f"{name}: share extractable, mean of {len(SEEDS)}", printed, fmean(shares)),
            Figure(f"{name}: lowest", None, min(shares)),
            Figure(f"{name}: highest", None, max(shares)),
        ]
        yield Outcome(
            title="Table 4: twelve cells",
            scale=f"2 % of the treebank, {EPOCHS} epochs, {len(SEEDS)} models a cell; 12 of 20 cells. A secret counts "
            "as extractable if its rank was counted to be 1.",
            figures=list(figures),
        )


def share_extractable(lab: Laboratory, model: Trained) -> float:
    """Of which share of the secrets the rank was counted to be 1."""
    return fmean(row["rank"] == 1 for row in lab.exposures(model.folder, AUDIT, model.canaries[0]))
