"""A target that shows few words is queried with pieces of every text as well: what that tells, and what it costs."""

from __future__ import annotations

from common.outcomes import Figure, Outcome
from laboratory import Laboratory

from studies import bloggers

WIDTH = 8
"""Words of a piece; chosen on 120 of the 600 audited people of the large target, on whom 4 did no better."""
SHOWN = (1, 5, 50)


def study(lab: Laboratory) -> Outcome:
    tasks = {
        "300 users": lab.words(),
        "the first small target": lab.small(),
        "the second small target": lab.small(100),
        "bloggers": bloggers.task(lab),
    }
    figures, details = [], {}
    for name, task in tasks.items():
        scene = lab.scene(task)
        for k in SHOWN:
            for how, width in (("whole texts", None), ("pieces, too", WIDTH)):
                what = f"{name}, top-{k}, {how}"
                row = details[what] = lab.audit(scene, method="calibrated", top_k=k, pieces=width)
                figures.append(Figure(f"{what}: AUC", None, row["auc"]))
                figures.append(Figure(f"{what}: recall of decisions", None, row.get("recall")))
                figures.append(Figure(f"{what}: FPR", None, row.get("false_positive_rate")))
    return Outcome(
        title="Asked in pieces, too",
        scale=f"{lab.scale} Pieces of {WIDTH} words; small targets and bloggers as in the studies of their own.",
        figures=figures,
        details=details,
    )
