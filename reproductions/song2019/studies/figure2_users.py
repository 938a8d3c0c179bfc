"""Figure 2: how many users the target was trained on."""

from __future__ import annotations

from dataclasses import replace

from common.outcomes import Outcome
from comparing import Comparison
from laboratory import FEW, MANY, MANY_SHADOWS, Laboratory

SETTINGS = {
    "everything": {},
    "top-500": {"top_k": 500},
    "top-100": {"top_k": 100},
    "top-50": {"top_k": 50},
    "top-5": {"top_k": 5},
    "top-1": {"top_k": 1},
    "4 texts at random": {"queries": 4, "select": "random"},
    "1 text at random": {"queries": 1, "select": "random"},
    "4 texts at random, top-500": {"queries": 4, "select": "random", "top_k": 500},
}
"""With everything shown and asked nothing falls at these numbers; so less is."""


def study(lab: Laboratory) -> Outcome:
    found = Comparison(lab)
    for users, task in {FEW: lab.small(), MANY: lab.words()}.items():
        scene = lab.scene(replace(task, shadows=MANY_SHADOWS))
        for name, settings in SETTINGS.items():
            found.add(f"{users} users, {name}", scene, **settings)
    return Outcome(
        title="Figure 2: the number of users",
        scale=f"{FEW} and {MANY} users with 25 comments each (paper: 100 to 10,000 with 247; AUC near 1 up to 1,000, "
        f"0.9 with 4,000), {MANY_SHADOWS} shadows of as many users, where less than everything is asked or shown.",
        figures=found.figures,
        details=found.details,
    )
