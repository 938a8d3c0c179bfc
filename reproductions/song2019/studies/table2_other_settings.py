"""Table 2: the shadows are made with other settings than the target."""

from __future__ import annotations

from common.outcomes import Outcome
from comparing import Comparison, Printed
from laboratory import FEW, WORDS, Laboratory

from recollect.recipes.reading import load_recipe

UNITS = (64, 96)
"""Of the paper's 64, 96, … 352."""


def study(lab: Laboratory) -> Outcome:
    people = lab.few()
    target = lab.model(load_recipe(WORDS), people.members)
    recipes = [load_recipe("word-gru-shadow", [f"model.units={n}", f"model.embedding={n}"]) for n in UNITS]
    scene, found = lab.surrounded(target, people, recipes), Comparison(lab)
    found.add("all words", scene, Printed(auc=0.993, accuracy=0.990))
    found.add("top-50", scene, top_k=50)
    return Outcome(
        title="Table 2: shadows with other settings",
        scale=f"{FEW} members; {len(UNITS)} GRU shadows with {' and '.join(map(str, UNITS))} units, trained by "
        "momentum SGD, in place of ten with 64 to 352.",
        figures=found.figures,
        details=found.details,
    )
