"""Table 1: how well the targets predict the words of their own users and of others."""

from __future__ import annotations

from common.outcomes import Figure, Outcome
from laboratory import Laboratory

PAPER = {
    "word prediction": (0.184, 0.206, 102.22, 113.14),
    "translation": (0.587, 0.535, 6.36, 10.28),
    "dialogue": (0.283, 0.264, 45.57, 61.11),
}
"""Accuracy on training and on other users, perplexity on training and on other users."""


def study(lab: Laboratory) -> Outcome:
    figures, details = [], {}
    for name, task in lab.tasks().items():
        target, printed = lab.target(task), PAPER[name]
        own, others = lab.quality(target, task.people.members), lab.quality(target, task.people.others)
        figures += [
            Figure(f"{name}: accuracy, training users", printed[0], own["accuracy"]),
            Figure(f"{name}: accuracy, other users", printed[1], others["accuracy"]),
            Figure(f"{name}: perplexity, training users", printed[2], own["perplexity"]),
            Figure(f"{name}: perplexity, other users", printed[3], others["perplexity"]),
        ]
        details[name] = {"members": own, "others": others}
    return Outcome(
        title="Table 1: the targets",
        scale=lab.scale,
        figures=figures,
        details=details,
    )
