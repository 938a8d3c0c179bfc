"""Section 4.3 and Table 3, same domain, with ten shadows as in the paper: translation and dialogue."""

from __future__ import annotations

from common.outcomes import Outcome
from comparing import Comparison
from laboratory import Laboratory, Task
from printed import PERFECT, TABLE3


def study(lab: Laboratory) -> Outcome:
    return compared(lab, lab.pairs(), f"{lab.pairs_scale} Ten shadows, as in the paper.")


def compared(lab: Laboratory, tasks: dict[str, Task], scale: str) -> Outcome:
    """The unrestricted audit and every output size, by both methods."""
    found = Comparison(lab)
    for name, task in tasks.items():
        scene = lab.scene(task)
        found.add(f"{name}, all words", scene, PERFECT)
        for k, printed in TABLE3[name].items():
            found.add(f"{name}, top-{k}", scene, printed, top_k=k)
    return Outcome(
        title=f"Ten shadows: {' and '.join(tasks)}", scale=scale, figures=found.figures, details=found.details
    )
