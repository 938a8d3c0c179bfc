"""Table 2 of translation and dialogue: the shadows are GRUs with other numbers of units, trained by momentum SGD."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache, partial
from itertools import product
from statistics import fmean

from common.outcomes import Figure, Outcome
from comparing import Comparison
from laboratory import PAIRS, Laboratory, Scene
from printed import TABLE2, Printed

from recollect.files import read_json
from recollect.recipes.recipe_file import load_recipe

UNITS = (64, 160, 256, 352)
"""Of the paper's 64, 96, … 352."""
RECIPES = {"translation": "seq2seq-attention-shadow", "dialogue": "seq2seq-shadow"}
RATES = {"the paper's rate": 0.01, "ten times the rate": 0.1}
"""Learning rates. That the paper's teaches shadows of little text almost nothing was seen on Reddit, before."""


def study(lab: Laboratory) -> Iterator[Outcome]:
    found = Comparison(lab, "table2_pairs")
    scale = (
        f"{lab.pairs_scale} {len(UNITS)} GRU shadows with {', '.join(map(str, UNITS))} units, momentum SGD, in place "
        "of ten with 64 to 352."
    )
    for name, (said, rate) in product(PAIRS, RATES.items()):
        scene, label = cache(partial(other_shadows, lab, name, rate)), f"{name}, {said}"
        found.add(label, scene, TABLE2[name] if rate == RATES["the paper's rate"] else Printed())
        loss = found.kept(f"{label}, loss", list(UNITS), lambda scene=scene: mean_loss(scene()))
        found.figures.append(Figure(f"{label}: training loss of the shadows", None, loss))
        yield found.outcome("Table 2: shadows with other settings, translation and dialogue", scale)


def other_shadows(lab: Laboratory, name: str, rate: float) -> Scene:
    """The target of a task with shadows of other networks and another optimiser."""
    task = lab.pair(name)
    changes = [[f"units={n}", f"embedding={n}", f"learning_rate={rate}"] for n in UNITS]
    return lab.surrounded(lab.target(task), task.people, [load_recipe(RECIPES[name], each) for each in changes])


def mean_loss(scene: Scene) -> float:
    """The mean training loss of the shadows after their last epoch."""
    return fmean(read_json(folder / "curve.json")[-1]["training_loss"] for folder in scene.shadows.values())
