"""Counts of right and wrong verdicts, and what several studies say alike."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from cells import Row
from common.outcomes import Figure
from laboratory import QUALITIES
from tables import SMALLEST_SHARED, Part

ALPHA = 0.1
"""At or below this ρ_EMA a set is called removed."""
TOLERANCE = 0.5
"""From this share on a set is not gone, and a verdict "gone" is wrong; with nothing in, "still there" is."""


def share_of(part: Part, row: Row) -> float:
    """The share of a query set that trained the target."""
    return float(row.get("in", row["query"] in part.inside))


def wrong(part: Part, row: Row) -> bool:
    """Whether a verdict is wrong."""
    share = share_of(part, row)
    return (row["outcome"] == "found" and share == 0) or (
        row["outcome"] in ("not_found", "not found") and share >= TOLERANCE
    )


def counted(part: Part, label: str, rows: list[Row], printed: str | int | None = None) -> Iterator[Figure]:
    """How many verdicts are wrong and, with `calibrated`, how many sets nothing could be told of."""
    yield Figure(f"{label}: wrong, of {len(rows)}", printed, sum(wrong(part, row) for row in rows))
    if rows and rows[0]["method"] == "calibrated":
        yield Figure(
            f"{label}: cannot tell", None, sum(row["outcome"] in ("inconclusive", "cannot tell") for row in rows)
        )


Printed = Mapping[int, Mapping[str, float]]
"""What the paper prints: by quality or by size, and by query set. What cannot be read in our copy is left out."""


def printed_wrong(scores: Iterable[float], wrong_score: Callable[[float], bool]) -> str:
    """In how many of the cells that can be read the paper's own score leads to a wrong verdict.

    >>> printed_wrong([0.16, 0.0, 1.0], lambda rho: rho > 0.1)
    '2 of 3'
    """
    found = [wrong_score(score) for score in scores]
    return f"{sum(found)} of {len(found)}"


def of_sets(printed: Printed, names: Iterable[str]) -> list[float]:
    """The scores of these query sets that can be read."""
    chosen = tuple(names)
    return [row[name] for row in printed.values() for name in chosen if name in row]


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


def by_size(part: Part, rows: list[Row], printed: dict[int, dict[str, tuple[float, ...]]]) -> Iterator[Figure]:
    """Errors at every size, of sets never in, of the far set, and of sets all in.

    Args:
        part: Digits or X-rays.
        rows: All cells.
        printed: The paper's EMA scores that can be read of the set never in and of the far set, by size.
    """
    for size in part.query_sizes:
        for method in ("ema", "calibrated"):
            mine = [row for row in rows if (row["size"], row["method"]) == (size, method)]
            groups = {
                "never in": [row for row in mine if row["query"] != part.far and share_of(part, row) == 0],
                "far, never in": [row for row in mine if row["query"] == part.far],
                "all in": [row for row in mine if share_of(part, row) == 1],
            }
            for said, chosen in groups.items():
                scores = printed[size].get(said) if method == "ema" else None
                paper = None if scores is None else printed_wrong(scores, lambda rho: rho > ALPHA)
                yield from counted(part, f"{method}, {size} images {said}", chosen, paper)


def by_training(part: Part, rows: list[Row]) -> Iterator[Figure]:
    """Wrong verdicts of `calibrated` in every training: sets of one training share the target and the controls."""
    mine = [row for row in rows if row["method"] == "calibrated"]
    for seed in sorted({row["training"] for row in mine}):
        some = [row for row in mine if row["training"] == seed]
        label = f"calibrated, training {seed}: wrong, of {len(some)}"
        yield Figure(label, None, sum(wrong(part, row) for row in some))
    groups = {
        "never in": [row for row in mine if share_of(part, row) == 0],
        "half or more in": [row for row in mine if share_of(part, row) >= TOLERANCE],
    }
    for said, some in groups.items():
        count = sum(wrong(part, row) for row in some)
        yield Figure(f"calibrated, {said}: wrong, of {len(some)}", None, count)
        yield Figure(f"calibrated, {said}: share of wrong verdicts, of {len(some)}", None, count / len(some))


def told(part: Part, rows: list[Row]) -> Iterator[Figure]:
    """How often `calibrated` tells what is so, of sets of a whole fold, and how often intervals hold the truth."""
    mine = [row for row in rows if row["method"] == "calibrated"]
    whole = [row for row in mine if row["size"] == part.sizes.fold]
    inside = [row for row in whole if share_of(part, row) == 1]
    found = sum(row["outcome"] == "found" for row in inside)
    yield Figure(f"calibrated, {part.sizes.fold} images all in: still there, of {len(inside)}", None, found)
    out = [row for row in whole if share_of(part, row) == 0 and row["query"] != part.far]
    gone = sum(row["outcome"] in ("not_found", "not found") for row in out)
    yield Figure(f"calibrated, {part.sizes.fold} images never in: gone, of {len(out)}", None, gone)
    known = [row for row in mine if row.get("share") and row["query"] != part.far and row["size"] >= SMALLEST_SHARED]
    held = sum(row["share"][1] <= share_of(part, row) <= row["share"][2] for row in known)
    yield Figure(f"intervals of the share still in that hold it, of {len(known)}", None, held)


def ks_scores(part: Part, rows: list[Row], printed: Printed) -> Iterator[Figure]:
    """The mean ρ_KS of every query set at every quality, and its range over the trainings."""
    for quality in QUALITIES:
        for name in (*part.inside, part.outside, part.far):
            found = [row["rho_ks"] for row in rows if (row["quality"], row["query"]) == (quality, name)]
            label = f"ks, k = {quality}: ρ of {name}"
            if not found:
                continue
            yield Figure(f"{label}, mean of {len(found)}", printed.get(quality, {}).get(name), sum(found) / len(found))
            yield Figure(f"{label}, lowest", None, min(found))
            yield Figure(f"{label}, highest", None, max(found))


def scale(part: Part, rows: Sequence[Row]) -> str:
    """How large everything is, and how many of the trainings and qualities there are so far."""
    size, done = part.sizes, sorted({(row["training"], row["quality"]) for row in rows})
    seeds = sorted({seed for seed, _ in done})
    whole = len(done) == len(part.trainings) * len(QUALITIES)
    so_far = "" if whole else f" ({len(done)} of {len(part.trainings) * len(QUALITIES)} calibration sets so far)"
    several = "" if len(seeds) == 1 else "s"
    return (
        f"{len(seeds)} training{several}{so_far}: {size.fold * size.folds:,} training images, {size.calibration:,} "
        f"calibration images of each quality, {part.models} calibration models."
    )
