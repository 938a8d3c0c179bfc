"""Table 3, same domain: only the likeliest words are shown."""

from __future__ import annotations

from common.outcomes import Outcome
from comparing import Comparison
from laboratory import Laboratory
from printed import TABLE3


def study(lab: Laboratory) -> Outcome:
    found = Comparison(lab)
    for name, task in lab.tasks().items():
        scene = lab.scene(task)
        for k, printed in TABLE3[name].items():
            found.add(f"{name}, top-{k}", scene, printed, top_k=k)
    return Outcome(
        title="Table 3: how many words the target shows",
        scale=lab.scale,
        figures=found.figures,
        details=found.details,
    )
