"""Section 6 and Figure 8: a target trained with user-level differential privacy."""

from __future__ import annotations

from common.outcomes import Figure, Outcome
from comparing import Comparison, Printed
from frequencies import bands, measured
from laboratory import MANY, Laboratory, Row, Scene, in_random_order

from recollect.recipes.recipe_file import load_recipe

MORE = 200
"""Users besides the audited members who train the private target."""
EPOCHS = 2
"""Of 25 rounds each."""
SMALLER = ("model.units=96", "model.embedding=48", "tokenizer.size=3000", "sequences.length=30")
RECIPES = {
    "private target": ("word-lstm-user-dp", (f"training.epochs={EPOCHS}",)),
    "smaller private target": (
        "word-gru-user-dp",
        (*SMALLER, "learning_rate=0.05", "privacy.rate=0.25", "training.epochs=12", "most_sequences=3"),
    ),
    "smaller target": ("word-gru", (*SMALLER, "learning_rate=0.01", "batch_size=32", "training.epochs=6")),
}
"""The paper's noise leaves nothing of the paper's network with so few users; a smaller one learns something in spite of
it, and stands beside the same without privacy."""


def study(lab: Laboratory) -> Outcome:
    plain, order = lab.scene(lab.words()), in_random_order(lab.reddit)
    users = lab.reddit.select_users(order[:MANY] + order[1500 : 1500 + MORE], name="users of the private target")
    found = Comparison(lab)
    for name, (recipe, changes) in RECIPES.items():
        target = lab.model(load_recipe(recipe, list(changes)), users)
        scene = Scene(people=plain.people, target=target, shadows=plain.shadows, taught=plain.taught)
        paper = Printed(auc=0.5, accuracy=0.5) if name == "private target" else Printed()
        found.add(name, scene, paper)
        found.figures.extend(described(lab, name, scene, found.details))
    return Outcome(
        title="Section 6: a private target",
        scale=f"{MANY + MORE:,} users (paper: 5,000), {25 * EPOCHS} rounds (paper: 300), the same ε, clipping and "
        "sampling rate; smaller: a GRU of 96 units and 3,000 words, 48 rounds, ε = 6.2. The audit's shadows are those "
        "of the target without privacy.",
        figures=found.figures,
        details=found.details,
    )


def described(lab: Laboratory, name: str, scene: Scene, details: dict[str, Row]) -> list[Figure]:
    """How good a target is, and where it ranks frequent and rare words."""
    own, others = (lab.quality(scene.target, people) for people in (scene.people.members, scene.people.others))
    figures = [
        Figure(f"{name}: accuracy, training users", 0.15 if name == "private target" else None, own["accuracy"]),
        Figure(f"{name}: accuracy, other users", None, others["accuracy"]),
    ]
    details[f"{name}, ranks"] = bands(measured(lab, scene.target, scene.people))
    for band, row in details[f"{name}, ranks"].items():
        figures.append(Figure(f"{name}, words {band}: median rank, training users", None, row["own_rank"]))
        figures.append(Figure(f"{name}, words {band}: median rank, other users", None, row["others_rank"]))
    return figures
