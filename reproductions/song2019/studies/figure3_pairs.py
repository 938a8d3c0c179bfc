"""Figure 3 of translation and dialogue: how many texts are queried, and how they are chosen."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from itertools import product

from common.outcomes import Outcome
from comparing import Comparison
from laboratory import PAIRS, Laboratory
from studies.figure3_queries import SELECT

QUERIES = {"translation": (1, 2, 4), "dialogue": (1, 2, 4, 8, 16, 32)}
"""A talk has four sentences here."""


def study(lab: Laboratory) -> Iterator[Outcome]:
    found = Comparison(lab, "figure3_pairs")
    scale = (
        f"{lab.pairs_scale} Ten shadows. The paper prints curves: with 32 texts all above 0.9; with one text of the "
        "rarest words dialogue is told well, and translation is not."
    )
    for name in PAIRS:
        scene = cache(lambda name=name: lab.scene(lab.pair(name)))
        for select, queries in product(SELECT, QUERIES[name]):
            found.add(f"{name}, {queries} texts, {select}", scene, queries=queries, select=select)
            yield found.outcome("Figure 3: the number of queries, translation and dialogue", scale)
