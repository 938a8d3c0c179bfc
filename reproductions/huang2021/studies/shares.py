"""How much of a set is still in: estimates and intervals where 0, 25, 50, 75 and 100 % are."""

from __future__ import annotations

from collections.abc import Iterator

from cells import Row
from common.outcomes import Figure, Outcome
from counting import scale, share_of
from laboratory import Laboratory
from tables import MNIST, SHARES, SMALLEST_SHARED, cells


def study(lab: Laboratory) -> Outcome:
    rows = [row for row in cells(lab, MNIST) if row["method"] == "calibrated" and row["query"] != MNIST.far]
    sizes = [size for size in MNIST.query_sizes if size >= SMALLEST_SHARED]
    figures = [figure for size in sizes for share in SHARES for figure in _of(rows, size, share)]
    return Outcome(title="Partial removal", scale=scale(MNIST, rows), figures=figures)


def _of(rows: list[Row], size: int, share: float) -> Iterator[Figure]:
    """Mean estimate, and how many intervals hold the truth."""
    chosen = [row for row in rows if (row["size"], share_of(MNIST, row)) == (size, share) and row.get("share")]
    found = [row["share"] for row in chosen]
    label = f"{size} images, {share:.0%} in"
    yield Figure(f"{label}: mean estimate", None, sum(value for value, _, _ in found) / len(found))
    held = sum(low <= share <= high for _, low, high in found)
    yield Figure(f"{label}: intervals that hold it, of {len(found)}", None, held)
