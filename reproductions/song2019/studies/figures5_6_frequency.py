"""Figures 5 and 6: log-probabilities and ranks of frequent and of rare words, for training users and for others."""

from __future__ import annotations

import numpy as np
from common.outcomes import Figure, Outcome
from frequencies import bands, measured
from laboratory import MANY, Laboratory

SHARES = {"own": 0.869, "others": 0.881}
"""The paper's: which share of the text the most frequent fifth of the words is."""


def study(lab: Laboratory) -> Outcome:
    task = lab.words()
    target = lab.target(task)
    table, figures = measured(lab, target, task.people), []
    fifth = len(set(table["own"][:, 0].tolist())) // 5
    for name, words in table.items():
        frequent = words[:, 0] <= fifth
        who = {"own": "training users", "others": "other users"}[name]
        figures += [
            Figure(f"{who}: share of the most frequent fifth", SHARES[name], float(frequent.mean())),
            Figure(f"{who}: mean log-probability, most frequent fifth", None, float(words[frequent, 2].mean())),
            Figure(f"{who}: mean log-probability, the rest", None, float(words[~frequent, 2].mean())),
            Figure(f"{who}: median rank, most frequent fifth", None, float(np.median(words[frequent, 1]))),
            Figure(f"{who}: median rank, the rest", None, float(np.median(words[~frequent, 1]))),
        ]
    ranks = bands(table)
    for band, row in ranks.items():
        figures.append(Figure(f"words {band}: median rank, training users", None, row["own_rank"]))
        figures.append(Figure(f"words {band}: median rank, other users", None, row["others_rank"]))
    return Outcome(
        title="Figures 5 and 6: frequent and rare words",
        scale=f"Word prediction, {MANY} users; the paper prints curves. Words that the target does not know are out.",
        figures=figures,
        details={"bands": ranks},
    )
