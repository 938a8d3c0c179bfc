"""Two small targets of different people: one on which the calibrated score was chosen, one that confirmed it."""

from __future__ import annotations

from common.outcomes import Outcome
from comparing import Comparison
from laboratory import FEW, FEW_SHADOWS, Laboratory

TARGETS = {"the first target": 0, "the second target": 100}
SETTINGS = {
    "all words": {},
    "top-500": {"top_k": 500},
    "top-50": {"top_k": 50},
    "top-5": {"top_k": 5},
    "top-1": {"top_k": 1},
    "1 text, rarest": {"queries": 1, "select": "rarest"},
    "4 texts, rarest": {"queries": 4, "select": "rarest"},
    "1 text, random": {"queries": 1, "select": "random"},
    "4 texts, random": {"queries": 4, "select": "random"},
}


def study(lab: Laboratory) -> Outcome:
    found = Comparison(lab)
    for target, skip in TARGETS.items():
        scene = lab.scene(lab.small(skip))
        for name, settings in SETTINGS.items():
            found.add(f"{target}, {name}", scene, **settings)
    return Outcome(
        title="Two small targets",
        scale=f"{FEW} members of Reddit and {FEW} others each, {FEW_SHADOWS} shadows of {FEW} users, 179 of whom "
        "the target is asked to calibrate.",
        figures=found.figures,
        details=found.details,
    )
