"""Figure 2 with 100, 500 and 900 users: of 4,000 most are others and shadow users, so that more cannot be had."""

from __future__ import annotations

from common.outcomes import Outcome
from comparing import Comparison
from laboratory import MANY_SHADOWS, WORDS, Laboratory, People, Task, in_random_order
from studies.figure2_users import SETTINGS

from recollect.recipes.recipe_file import load_recipe

USERS = (100, 500, 900)
CALIBRATING = 300


def study(lab: Laboratory) -> Outcome:
    found, order = Comparison(lab), in_random_order(lab.reddit)
    for users in USERS:
        people = People.of(lab.reddit, order, members=users, training=2 * users, calibrating=CALIBRATING)
        scene = lab.scene(Task(people=people, recipe=load_recipe(WORDS), shadows=MANY_SHADOWS))
        for name, settings in SETTINGS.items():
            found.add(f"{users} users, {name}", scene, **settings)
    return Outcome(
        title="Figure 2: 100, 500 and 900 users",
        scale=f"25 comments of each user (paper: 247), {MANY_SHADOWS} shadows of as many users (paper: ten), "
        f"{CALIBRATING} calibration users. The paper prints curves: all metrics at least 0.95 below 1,000 users.",
        figures=found.figures,
        details=found.details,
    )
