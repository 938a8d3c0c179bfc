"""Figure 2: how many users the target was trained on."""

from __future__ import annotations

from common.outcomes import Outcome
from comparing import Comparison
from laboratory import FEW, MANY, WORDS, Laboratory, People, Task, in_random_order

from recollect.recipes.reading import load_recipe

FEWEST, SHADOWS = 25, 2
SETTINGS = {"everything": {}, "top-50": {"top_k": 50}, "4 texts at random": {"queries": 4, "select": "random"}}


def study(lab: Laboratory) -> Outcome:
    later = in_random_order(lab.reddit)[1500:]
    fewest = People.of(lab.reddit, later, members=FEWEST, training=2 * FEWEST, calibrating=100)
    scenes = {
        FEWEST: lab.scene(Task(people=fewest, recipe=load_recipe(WORDS), shadows=SHADOWS)),
        FEW: lab.scene(lab.small()),
        MANY: lab.scene(lab.words()),
    }
    found = Comparison(lab)
    for users, scene in scenes.items():
        for name, settings in SETTINGS.items():
            found.add(f"{users} users, {name}", scene, **settings)
    return Outcome(
        title="Figure 2: the number of users",
        scale=f"{FEWEST}, {FEW} and {MANY} users (paper: 100 to 10,000; AUC near 1 up to 1,000, 0.9 with 4,000), with "
        "25 comments each.",
        figures=found.figures,
        details=found.details,
    )
