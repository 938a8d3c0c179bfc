"""How much of a set is still in: estimates and intervals where 0, 25, 50, 75 and 100 % are."""

from __future__ import annotations

from common.outcomes import Figure, Outcome
from laboratory import Laboratory
from mnist import SHARES, cells, scale


def study(lab: Laboratory) -> Outcome:
    rows = [row for row in cells(lab) if row["query"] == "drawn" and row["method"] == "calibrated" and row["share"]]
    figures = []
    for size in (2000, 500, 200):
        for share in SHARES:
            some = [row for row in rows if (row["size"], row["in"]) == (size, share)]
            found = [row["share"] for row in some]
            held = sum(low <= share <= high for _, low, high in found)
            mean = sum(value for value, _, _ in found) / len(found)
            figures += [
                Figure(f"{size} images, {share:.0%} in: mean estimate", None, mean),
                Figure(f"{size} images, {share:.0%} in: intervals that hold it, of {len(some)}", None, held),
            ]
    return Outcome(title="Partial removal", scale=scale(rows), figures=figures)
