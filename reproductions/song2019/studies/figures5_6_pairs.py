"""Figures 5 and 6 of translation and dialogue: log-probabilities and ranks of frequent and of rare words."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from common.outcomes import Figure, Outcome
from comparing import REVISION
from laboratory import PAIRS, Laboratory
from studies.figures5_6_frequency import by_frequency

SHARES = {"translation": {"own": 0.895, "others": 0.904}, "dialogue": {"own": 0.931, "others": 0.941}}
"""The paper's: which share of the text the most frequent fifth of the words is."""


def study(lab: Laboratory) -> Iterator[Outcome]:
    figures: list[Figure] = []
    for name in PAIRS:
        figures += lab.keep_figures("figures5_6_pairs", name, REVISION, partial(measured, lab, name))
        yield Outcome(
            title="Figures 5 and 6: frequent and rare words, translation and dialogue",
            scale=f"{lab.pairs_scale} The paper prints curves. Words that the target does not know are out.",
            figures=list(figures),
        )


def measured(lab: Laboratory, name: str) -> list[Figure]:
    """The figures of one task."""
    return by_frequency(lab, lab.pair(name), SHARES[name], f"{name}, ")[0]
