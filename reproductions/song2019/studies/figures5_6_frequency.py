"""Figures 5 and 6: log-probabilities and ranks of frequent and of rare words, for training users and for others."""

from __future__ import annotations

import numpy as np
from common.outcomes import Figure, Outcome
from frequencies import bands, measured
from laboratory import MANY, Laboratory, Row, Task

SHARES = {"own": 0.869, "others": 0.881}
"""The paper's: which share of the text the most frequent fifth of the words is."""


def study(lab: Laboratory) -> Outcome:
    figures, ranks = by_frequency(lab, lab.words(), SHARES)
    return Outcome(
        title="Figures 5 and 6: frequent and rare words",
        scale=f"Word prediction, {MANY} users; the paper prints curves. Words that the target does not know are out.",
        figures=figures,
        details={"bands": ranks},
    )


def by_frequency(lab: Laboratory, task: Task, shares: dict[str, float], label: str = "") -> tuple[list[Figure], Row]:
    """The figures of one task, and the bands of frequency that they were made of.

    Args:
        lab: Where models are kept.
        task: Whose target is asked.
        shares: The paper's shares of the most frequent fifth of the words.
        label: What every figure's name begins with.
    """
    table, figures = measured(lab, lab.target(task), task.people), []
    fifth = len(set(table["own"][:, 0].tolist())) // 5
    for name, words in table.items():
        frequent = words[:, 0] <= fifth
        who = label + {"own": "training users", "others": "other users"}[name]
        figures += [
            Figure(f"{who}: share of the most frequent fifth", shares[name], float(frequent.mean())),
            Figure(f"{who}: mean log-probability, most frequent fifth", None, float(words[frequent, 2].mean())),
            Figure(f"{who}: mean log-probability, the rest", None, float(words[~frequent, 2].mean())),
            Figure(f"{who}: median rank, most frequent fifth", None, float(np.median(words[frequent, 1]))),
            Figure(f"{who}: median rank, the rest", None, float(np.median(words[~frequent, 1]))),
        ]
    ranks = bands(table)
    for band, row in ranks.items():
        figures.append(Figure(f"{label}words {band}: median rank, training users", None, row["own_rank"]))
        figures.append(Figure(f"{label}words {band}: median rank, other users", None, row["others_rank"]))
    return figures, ranks
