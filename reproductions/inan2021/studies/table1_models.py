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
    rows = {name: lab.good(pairs[name][0]) | lab.leakage(*pairs[name]) for name in PAPER}
    return Outcome(
        title="Table 1: what models give away of their users",
        scale=SCALE,
        figures=[figure for name, row in rows.items() for figure in figures(name, row)],
        details=dict(rows),
    )


def figures(name: str, row: Row) -> list[Figure]:
    """The cells of one row: the paper's, and what stands beside them here."""
    perplexity, accuracy, sequences, epsilon = PAPER[name]
    low, high = (row["findings"]["leakage_excess"]["interval"]) or (None, None)
    return [
        Figure(f"{name}: validation perplexity", perplexity, row["perplexity"]),
        Figure(f"{name}: validation accuracy, %", accuracy, 100 * row["accuracy"]),
        Figure(f"{name}: unique sequences", sequences, value(row, "unique_sequences")),
        Figure(f"{name}: ε_l", epsilon, value(row, "leakage_epsilon")),
        Figure(f"{name}: ε_l of users not seen", None, value(row, "leakage_epsilon_null")),
        Figure(f"{name}: excess, {'words' if name == 'public' else 'nats'}", None, value(row, "leakage_excess")),
        Figure(f"{name}: excess, lower limit", None, low),
        Figure(f"{name}: excess, upper limit", None, high),
        Figure(f"{name}: users flagged, share", None, value(row, "flagged_users")),
    ]
