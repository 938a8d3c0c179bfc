"""Table 4: several secrets at once, each with a unique prefix, planted once or more often.

One secret, planted once, is the subject of section 6.6.
"""

from __future__ import annotations

from statistics import fmean

from common.outcomes import Figure, Outcome
from laboratory import EPOCHS, Laboratory, small

from recollect.audits.exposure.audit import ExposureAudit
from recollect.corpora.canaries.insertion import CanarySettings

PAPER = {(10, 1): 0.11, (10, 2): 0.38, (10, 5): 1.0}
"""Share of secrets that can be extracted, by number of secrets and of insertions."""
AUDIT = ExposureAudit(method="exact", draws=100, max_steps=20_000)


def study(lab: Laboratory) -> Outcome:
    figures, details = [], {}
    for (secrets, times), printed in PAPER.items():
        planting = CanarySettings(
            format="{digits:3}-{digits:2}-{digits:4}", secrets=secrets, repeat=(times,), controls=0, unique_prefix=5
        )
        model = lab.trained(small(plantings=(planting,)))
        rows = lab.exposures(model.folder, AUDIT, model.canaries[0])
        details[f"{secrets} secrets, {times} insertions"] = rows
        share = fmean(row["rank"] == 1 for row in rows)
        figures.append(Figure(f"{secrets} secrets, {times} insertions: share extractable", printed, share))
    return Outcome(
        title="Table 4: several secrets at once",
        scale=f"2 % of the treebank, {EPOCHS} epochs, one model for each row; 10 secrets, not up to 500.",
        figures=figures,
        details=details,
    )
