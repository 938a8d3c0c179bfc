"""Counts of right and wrong verdicts, and what several studies say alike."""

from __future__ import annotations

from collections.abc import Iterator

from cells import Row
from common.outcomes import Figure
from tables import Part

TOLERANCE = 0.5
"""From this share on a set is not gone, and a verdict "gone" is wrong; with nothing in, "still there" is."""


def share_of(part: Part, row: Row) -> float:
    """The share of a query set that trained the target."""
    return float(row.get("in", row["query"] in part.inside))


def wrong(part: Part, row: Row) -> bool:
    """Whether a verdict is wrong."""
    share = share_of(part, row)
    return (row["outcome"] == "found" and share == 0) or (row["outcome"] == "not found" and share >= TOLERANCE)


def counted(part: Part, label: str, rows: list[Row], printed: str | int | None = None) -> Iterator[Figure]:
    """How many verdicts are wrong and, with `calibrated`, how many sets nothing could be told of."""
    yield Figure(f"{label}: wrong, of {len(rows)}", printed, sum(wrong(part, row) for row in rows))
    if rows and rows[0]["method"] == "calibrated":
        yield Figure(f"{label}: cannot tell", None, sum(row["outcome"] == "cannot tell" for row in rows))


def by_query(part: Part, rows: list[Row], printed: dict[tuple[str, str], str]) -> Iterator[Figure]:
    """Errors of every method on query sets of a whole fold: those in, the one out, and the far one."""
    whole = [row for row in rows if row["size"] == part.sizes.fold and row["query"] != "drawn"]
    for method in ("ema", "ks", "calibrated"):
        for names in (part.inside, (part.outside,), (part.far,)):
            chosen = [row for row in whole if row["method"] == method and row["query"] in names]
            asked = sorted({row["query"] for row in chosen})
            said = f"{asked[0]}–{asked[-1]}" if len(asked) > 1 else names[0]
            if chosen:
                yield from counted(part, f"{method}, {said}", chosen, printed.get((method, said)))


def by_size(part: Part, rows: list[Row], printed: dict[int, str]) -> Iterator[Figure]:
    """Errors at every size, of sets never in and of sets all in."""
    near = [row for row in rows if row["query"] != part.far]
    for size in part.query_sizes:
        for method in ("ema", "calibrated"):
            for share, said in ((0.0, "never in"), (1.0, "all in")):
                chosen = [
                    row for row in near if (row["size"], row["method"], share_of(part, row)) == (size, method, share)
                ]
                paper = printed[size] if (method, share) == ("ema", 0.0) else None
                yield from counted(part, f"{method}, {size} images {said}", chosen, paper)


def by_training(part: Part, rows: list[Row]) -> Iterator[Figure]:
    """Wrong verdicts of `calibrated` in every training: sets of one training share the target and the controls."""
    mine = [row for row in rows if row["method"] == "calibrated"]
    for seed in part.trainings:
        some = [row for row in mine if row["training"] == seed]
        label = f"calibrated, training {seed}: wrong, of {len(some)}"
        yield Figure(label, None, sum(wrong(part, row) for row in some))
    never = [row for row in mine if share_of(part, row) == 0]
    inside = [row for row in mine if share_of(part, row) >= TOLERANCE]
    for said, some in (("never in", never), ("half or more in", inside)):
        rate = sum(wrong(part, row) for row in some) / len(some)
        yield Figure(f"calibrated, {said}: share of wrong verdicts, of {len(some)}", None, rate)


def ks_scores(part: Part, rows: list[Row], printed: dict[int, tuple[float, float, float]]) -> Iterator[Figure]:
    """ρ_KS of a query set that is in, one that is not, and the far one."""
    for row in sorted(rows, key=lambda row: -row["quality"]):
        place = part.some.index(row["query"])
        paper = printed[row["quality"]][place] if row["quality"] in printed else None
        yield Figure(f"ks, k = {row['quality']}: ρ of {row['query']}", paper, row["rho_ks"])


def scale(part: Part) -> str:
    """How large everything is."""
    size = part.sizes
    return (
        f"{len(part.trainings)} trainings: {size.fold * size.folds:,} training images, {size.calibration:,} "
        f"calibration images of each quality, {part.models} calibration models."
    )
