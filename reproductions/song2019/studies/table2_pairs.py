"""Table 2 of translation and dialogue: the shadows are GRUs with other numbers of units, trained by momentum SGD."""

from __future__ import annotations

from common.outcomes import Figure, Outcome
from comparing import Comparison
from laboratory import Laboratory
from printed import TABLE2, Printed

from recollect.files import read_json
from recollect.recipes.recipe_file import load_recipe

UNITS = (64, 160, 256, 352)
"""Of the paper's 64, 96, … 352."""
RECIPES = {"translation": "seq2seq-attention-shadow", "dialogue": "seq2seq-shadow"}
RATES = {"the paper's rate": 0.01, "ten times the rate": 0.1}
"""Learning rates. That the paper's teaches shadows of little text almost nothing was seen on Reddit, before."""


def study(lab: Laboratory) -> Outcome:
    found = Comparison(lab)
    for name, task in lab.pairs().items():
        target = lab.target(task)
        for said, rate in RATES.items():
            changes = [[f"units={n}", f"embedding={n}", f"learning_rate={rate}"] for n in UNITS]
            recipes = [load_recipe(RECIPES[name], each) for each in changes]
            scene = lab.surrounded(target, task.people, recipes)
            losses = [read_json(folder / "curve.json")[-1]["training_loss"] for folder in scene.shadows.values()]
            label = f"{name}, {said}"
            found.figures.append(Figure(f"{label}: training loss of the shadows", None, sum(losses) / len(losses)))
            found.add(label, scene, TABLE2[name] if rate == RATES["the paper's rate"] else Printed())
    return Outcome(
        title="Table 2: shadows with other settings, translation and dialogue",
        scale=f"{lab.pairs_scale} {len(UNITS)} GRU shadows with {', '.join(map(str, UNITS))} units, momentum "
        "SGD, in place of ten with 64 to 352.",
        figures=found.figures,
        details=found.details,
    )
