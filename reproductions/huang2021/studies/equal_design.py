"""Power where the calibration set is as good as the images: sets found and cleared, by size and share in."""

from __future__ import annotations

from collections.abc import Iterator

from cells import Row
from common.outcomes import Figure, Outcome
from counting import scale, share_of
from laboratory import Laboratory
from tables import MNIST, SHARES, SMALLEST_SHARED, cells

GOOD = 100
"""The quality of the calibration set, in percent."""


def study(lab: Laboratory) -> Outcome:
    rows = [row for row in cells(lab, MNIST) if row["method"] == "calibrated" and row["query"] != MNIST.far]
    return Outcome(
        title="Power with a good calibration set (k = 100)",
        scale=scale(MNIST, rows),
        figures=[*list_counts([row for row in rows if row["quality"] == GOOD])],
    )


def list_counts(rows: list[Row]) -> Iterator[Figure]:
    """How many sets of each size and share are called still there, and how many gone."""
    for size in MNIST.query_sizes:
        for share in SHARES if size >= SMALLEST_SHARED else (0.0, 1.0):
            chosen = [row for row in rows if (row["size"], share_of(MNIST, row)) == (size, share)]
            for name, outcome in (("still there", "found"), ("gone", "not_found")):
                count = sum(row["outcome"] == outcome for row in chosen)
                yield Figure(f"{size} images, {share:.0%} in: {name}", None, f"{count} of {len(chosen)}")
