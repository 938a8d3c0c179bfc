"""Section 4.3: all words shown, all texts of a person queried, on three tasks."""

from __future__ import annotations

from common.outcomes import Outcome
from comparing import Comparison
from laboratory import Laboratory
from printed import PERFECT


def study(lab: Laboratory) -> Outcome:
    found = Comparison(lab)
    for name, task in lab.tasks().items():
        found.add(name, lab.scene(task), PERFECT)
    return Outcome(
        title="The unrestricted audit of three tasks",
        scale=lab.scale,
        figures=found.figures,
        details=found.details,
    )
