"""Table 2: the shadows are made with other settings than the target."""

from __future__ import annotations

from common.outcomes import Figure, Outcome
from comparing import Comparison
from laboratory import FEW, WORDS, Laboratory
from printed import TABLE2, Printed

from recollect.files import read_json
from recollect.recipes.recipe_file import load_recipe

UNITS = (64, 96)
"""Of the paper's 64, 96, … 352."""
RATES = {"the paper's rate": 0.01, "ten times the rate": 0.1}
"""Learning rates. Our users wrote a tenth of what the paper's did, and are a sixth as many: at the paper's rate the
shadows learn little more than which words are frequent."""


def study(lab: Laboratory) -> Outcome:
    people, found = lab.few(), Comparison(lab)
    target = lab.model(load_recipe(WORDS), people.members)
    for name, rate in RATES.items():
        paper = TABLE2["word prediction"] if rate == RATES["the paper's rate"] else Printed()
        changes = [[f"units={n}", f"embedding={n}", f"learning_rate={rate}"] for n in UNITS]
        scene = lab.surrounded(target, people, [load_recipe("word-gru-shadow", each) for each in changes])
        losses = [read_json(folder / "curve.json")[-1]["training_loss"] for folder in scene.shadows.values()]
        found.figures.append(Figure(f"{name}: training loss of the shadows, mean", None, sum(losses) / len(losses)))
        found.add(f"{name}, all words", scene, paper)
        found.add(f"{name}, top-50", scene, top_k=50)
    return Outcome(
        title="Table 2: shadows with other settings",
        scale=f"{FEW} members; {len(UNITS)} GRU shadows with {' and '.join(map(str, UNITS))} units, trained by "
        "momentum SGD, in place of ten with 64 to 352.",
        figures=found.figures,
        details=found.details,
    )
