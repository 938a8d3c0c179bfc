"""Table 3, same domain: only the likeliest words are shown."""

from __future__ import annotations

from common.outcomes import Outcome
from comparing import Comparison, Printed
from laboratory import Laboratory

PAPER = {
    "word prediction": {
        1: (0.545, 0.549), 5: (0.550, 0.572), 10: (0.580, 0.602), 50: (0.605, 0.648),
        100: (0.725, 0.788), 500: (0.970, 0.998), 1000: (0.985, 0.999),
    },
    "translation": {
        1: (0.723, 0.785), 5: (0.748, 0.838), 10: (0.800, 0.880), 50: (0.928, 0.973),
        100: (0.948, 0.981), 500: (0.972, 0.988), 1000: (0.960, 0.984),
    },
    "dialogue": {
        1: (0.577, 0.618), 5: (0.575, 0.642), 10: (0.583, 0.645), 50: (0.605, 0.660),
        100: (0.647, 0.714), 500: (0.935, 0.975), 1000: (0.972, 0.995),
    },
}  # fmt: skip
"""Accuracy and AUC by task and the number of words shown."""


def study(lab: Laboratory) -> Outcome:
    found = Comparison(lab)
    for name, task in lab.tasks().items():
        scene = lab.scene(task)
        for k, (accuracy, auc) in PAPER[name].items():
            found.add(f"{name}, top-{k}", scene, Printed(auc=auc, accuracy=accuracy), top_k=k)
    return Outcome(
        title="Table 3: how many words the target shows",
        scale=lab.scale,
        figures=found.figures,
        details=found.details,
    )
