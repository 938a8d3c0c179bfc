"""Table 1: what a private model gives away of its users, and models with differential privacy, from either start."""

from __future__ import annotations

from pathlib import Path

from common.outcomes import Figure, Number, Outcome
from laboratory import (
    OTHERS,
    PRIVATE,
    PUBLIC,
    PUBLIC_BUDGETS,
    RANDOM_BUDGETS,
    SCALE,
    Laboratory,
    Row,
    at_budget,
    private_start,
    value,
)

MORE = 5
"""At the likeliest word alone, models with differential privacy say next to nothing; so here is also this many."""
PAPER: dict[str, tuple[Number, Number, Number, Number]] = {
    "private": (69.4, 23.7, 3757, 17.75),
    "DP from random, ε = 3.28": (290.0, 14.5, 0, None),
    "DP from random, ε = 4.68": (130.3, 19.6, 5, None),
    "DP from random, ε = 6.2": (107.8, 20.8, 11, 0.64),
    "public": (757.5, 13.1, 159, None),
    "DP from public, ε = 2.98": (183.1, 19.7, 157, 0.29),
    "DP from public, ε = 6.68": (92.8, 22.2, 246, 1.33),
}
"""Validation perplexity, accuracy in percent, unique sequences, leakage epsilon."""


def study(lab: Laboratory) -> Outcome:
    pairs: dict[str, tuple[Path, ...]] = {"private": (lab.trained(PRIVATE), lab.trained(OTHERS))}
    pairs["public"] = (lab.trained(PUBLIC),)
    for name, public, budgets in (("random", False, RANDOM_BUDGETS), ("public", True, PUBLIC_BUDGETS)):
        model, reference = (lab.trained(private_start(group, public=public)) for group in ("private", "reference"))
        for epsilon in budgets:
            pairs[f"DP from {name}, ε = {epsilon:g}"] = at_budget(model, epsilon), at_budget(reference, epsilon)
    figures, details = [], {}
    for name, paper in PAPER.items():
        good = lab.good(pairs[name][0])
        rows = {k: lab.leakage(*pairs[name], top_k=k) for k in (1, MORE)}
        figures += [
            Figure(f"{name}: validation perplexity", paper[0], good["perplexity"]),
            Figure(f"{name}: validation accuracy, %", paper[1], 100 * good["accuracy"]),
            *described(name, rows[1], paper),
            *described(f"{name}, top {MORE}", rows[MORE], (None,) * 4),
        ]
        details[name] = {**good, **{f"top {k}": row for k, row in rows.items()}}
    return Outcome(title="Table 1: what models give away of their users", scale=SCALE, figures=figures, details=details)


def described(name: str, row: Row, paper: tuple[Number, Number, Number, Number]) -> list[Figure]:
    """What leaks: the paper's cells, and what stands beside them here."""
    low, high = row["findings"].get("leakage_excess", {}).get("interval") or (None, None)
    unit = "words" if name.startswith("public") else "nats"
    return [
        Figure(f"{name}: unique sequences", paper[2], value(row, "unique_sequences")),
        Figure(f"{name}: ε_l", paper[3], value(row, "leakage_epsilon")),
        Figure(f"{name}: ε_l of users not seen", None, value(row, "leakage_epsilon_null")),
        Figure(f"{name}: excess, {unit}", None, value(row, "leakage_excess")),
        Figure(f"{name}: excess, lower limit", None, low),
        Figure(f"{name}: excess, upper limit", None, high),
        Figure(f"{name}: users flagged, share", None, value(row, "flagged_users")),
    ]
