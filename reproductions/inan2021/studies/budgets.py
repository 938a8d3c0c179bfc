"""What a budget buys: models that differ in nothing but the noise, from none to that of a small ε.

The paper compares snapshots of one run, where a smaller ε is a shorter training as well. With some hundred users and
the paper's budgets nothing is left to compare, so noise begins here where it begins to matter: at an ε that promises
nothing.
"""

from __future__ import annotations

from pathlib import Path

from common.outcomes import Figure, Outcome
from laboratory import COMMENTS, FEW, SIZES, Few, Laboratory, Setting, value

BUDGETS = (None, 10_000_000, 1_000_000, 100_000)
"""ε; None clips, and adds no noise."""
STEPS = 120
"""Each of all users: one epoch."""
TOP = (1, 5)


def at_noise(group: Few, epsilon: float | None) -> Setting:
    """A model that spends such a budget within the same number of steps."""
    spent = ("privacy.noise=0", "privacy.epsilon=null") if epsilon is None else (f"privacy.epsilon={epsilon:g}",)
    pace = ("rate=1", f"training.epochs={STEPS}", "learning_rate=0.02", "sequences.length=30")
    # the tighter accountant does not count as far
    return Setting(
        group=group,
        recipe="word-gru-user-dp",
        changes=(*pace, "privacy.snapshots=[]", "privacy.accountant=rdp", *spent),
    )


def study(lab: Laboratory) -> Outcome:
    figures, details = [], {}
    for epsilon in BUDGETS:
        name = "no noise" if epsilon is None else f"ε = {epsilon:,}"
        models: list[Path] = [lab.trained(at_noise(group, epsilon)) for group in ("few private", "few reference")]
        good = lab.good(models[0])
        rows = {k: lab.leakage(*models, audited="few private", top_k=k) for k in TOP}
        figures.append(Figure(f"{name}: validation perplexity", None, good["perplexity"]))
        for k, row in rows.items():
            low, high = row["findings"].get("leakage_excess", {}).get("interval") or (None, None)
            figures += [
                Figure(f"{name}, top {k}: unique sequences", None, value(row, "unique_sequences")),
                Figure(f"{name}, top {k}: ε_l", None, value(row, "leakage_epsilon")),
                Figure(f"{name}, top {k}: ε_l of users not seen", None, value(row, "leakage_epsilon_null")),
                Figure(f"{name}, top {k}: excess, nats", None, value(row, "leakage_excess")),
                Figure(f"{name}, top {k}: excess, lower limit", None, low),
                Figure(f"{name}, top {k}: excess, upper limit", None, high),
                Figure(f"{name}, top {k}: users flagged, share", None, value(row, "flagged_users")),
            ]
        details[name] = {**good, **{f"top {k}": row for k, row in rows.items()}}
    return Outcome(
        title="What a budget buys",
        scale=f"{FEW} of the private users with {COMMENTS} comments each and {FEW} others for the reference, all of "
        f"them in each of {STEPS} steps; {SIZES['controls']} controls.",
        figures=figures,
        details=details,
    )
