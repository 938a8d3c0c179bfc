"""Figure 2 with 100, 500 and 900 users: of 4,000 most are others and shadow users, so that more cannot be had."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache, partial

from common.outcomes import Outcome
from comparing import Comparison
from laboratory import MANY_SHADOWS, WORDS, Laboratory, People, Scene, Task, in_random_order
from studies.figure2_users import SETTINGS

from recollect.recipes.recipe_file import load_recipe

USERS = (100, 500, 900)
CALIBRATING = 300


def study(lab: Laboratory) -> Iterator[Outcome]:
    found = Comparison(lab, "figure2_more_users")
    scale = (
        f"25 comments of each user (paper: 247), {MANY_SHADOWS} shadows of as many users (paper: ten), {CALIBRATING} "
        "calibration users. The paper prints curves: all metrics at least 0.95 below 1,000 users."
    )
    for users in USERS:
        scene = cache(partial(scene_of, lab, users))
        for name, settings in SETTINGS.items():
            found.add(f"{users} users, {name}", scene, **settings)
            yield found.outcome("Figure 2: 100, 500 and 900 users", scale)


def scene_of(lab: Laboratory, users: int) -> Scene:
    """A target of so many users, with shadows of as many."""
    order = in_random_order(lab.reddit)
    people = People.of(lab.reddit, order, members=users, training=2 * users, calibrating=CALIBRATING)
    return lab.scene(Task(people=people, recipe=load_recipe(WORDS), shadows=MANY_SHADOWS))
