"""Section 4.3 and Table 3, same domain, with ten shadows as in the paper: word prediction."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import cache

from common.outcomes import Outcome
from laboratory import MANY, TEN, Laboratory
from studies.ten_shadows import compared


def study(lab: Laboratory) -> Iterator[Outcome]:
    scale = f"{MANY} members and ten shadows as in the paper, with 25 comments of each user (paper: 247 on average)."
    scenes = {"word prediction": cache(lambda: lab.scene(replace(lab.words(), shadows=TEN)))}
    return compared(lab, "ten_shadows_reddit", scenes, scale)
