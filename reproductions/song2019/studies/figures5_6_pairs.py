"""Figures 5 and 6 of translation and dialogue: log-probabilities and ranks of frequent and of rare words."""

from __future__ import annotations

from common.outcomes import Outcome
from laboratory import Laboratory
from studies.figures5_6_frequency import by_frequency

SHARES = {"translation": {"own": 0.895, "others": 0.904}, "dialogue": {"own": 0.931, "others": 0.941}}
"""The paper's: which share of the text the most frequent fifth of the words is."""


def study(lab: Laboratory) -> Outcome:
    figures, details = [], {}
    for name, task in lab.pairs().items():
        found, details[name] = by_frequency(lab, task, SHARES[name], f"{name}, ")
        figures += found
    return Outcome(
        title="Figures 5 and 6: frequent and rare words, translation and dialogue",
        scale=f"{lab.pairs_scale} The paper prints curves. Words that the target does not know are out.",
        figures=figures,
        details=details,
    )
