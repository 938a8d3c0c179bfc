"""Section 6 and Figure 8: a target trained with user-level differential privacy."""

from __future__ import annotations

from common.outcomes import Figure, Outcome
from comparing import Comparison, Printed
from frequencies import bands, measured
from laboratory import MANY, Laboratory, Scene, in_random_order

from recollect.recipes.reading import load_recipe

MORE = 200
"""Users besides the audited members who train the private target."""
EPOCHS = 2
"""Of 25 rounds each."""


def study(lab: Laboratory) -> Outcome:
    plain, order = lab.scene(lab.words()), in_random_order(lab.reddit)
    users = lab.reddit.of_users(order[:MANY] + order[1500 : 1500 + MORE], name="users of the private target")
    recipe = load_recipe("word-lstm-user-dp", [f"training.epochs={EPOCHS}"])
    private = Scene(people=plain.people, target=lab.model(recipe, users), shadows=plain.shadows, taught=plain.taught)
    found = Comparison(lab)
    found.add("private target", private, Printed(auc=0.5, accuracy=0.5))
    own, others = lab.quality(private.target, plain.people.members), lab.quality(private.target, plain.people.others)
    found.figures.append(Figure("private target: accuracy, training users", 0.15, own["accuracy"]))
    found.figures.append(Figure("private target: accuracy, other users", None, others["accuracy"]))
    ranks = bands(measured(lab, private.target, private.people))
    for band, row in ranks.items():
        found.figures.append(Figure(f"words {band}: median rank, training users", None, row["own_rank"]))
        found.figures.append(Figure(f"words {band}: median rank, other users", None, row["others_rank"]))
    return Outcome(
        title="Section 6: a private target",
        scale=f"{MANY + MORE:,} users (paper: 5,000), {25 * EPOCHS} rounds (paper: 300), the same ε, clipping and "
        "sampling rate; the audit's shadows are those of the target without privacy.",
        figures=found.figures,
        details={**found.details, "ranks": ranks},
    )
