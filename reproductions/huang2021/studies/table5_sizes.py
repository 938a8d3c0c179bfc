"""Table 5: query sets of 2,000 down to 5 images; errors of EMA and of `calibrated`."""

from __future__ import annotations

from common.outcomes import Figure, Outcome
from laboratory import Laboratory
from mnist import SIZES, cells, errors, scale

PAPER = {2000: 0, 500: 0, 200: 1, 50: 6, 20: 6, 5: 6}
"""Of the six cells of M6 at each size, those in which EMA's printed score is above 0.1."""


def study(lab: Laboratory) -> Outcome:
    rows = cells(lab)
    figures = []
    for size in SIZES:
        for method in ("ema", "calibrated"):
            for share, said, truth in ((0.0, "never in", "gone"), (1.0, "all in", "still there")):
                some = [row for row in rows if _is(row, size, method, share)]
                wrong, open_ = errors(some, truth)
                printed = f"{PAPER[size]} of 6" if (method, share) == ("ema", 0.0) else None
                figures.append(Figure(f"{method}, {size} images {said}: wrong, of {len(some)}", printed, wrong))
                if method == "calibrated":
                    figures.append(Figure(f"{method}, {size} images {said}: cannot tell", None, open_))
    return Outcome(
        title="Table 5: smaller query sets",
        scale=f"{scale(rows)} M1, M6 and further sets drawn from trained and from fresh images.",
        figures=figures,
    )


def _is(row: dict[str, object], size: int, method: str, share: float) -> bool:
    """Whether a cell is of this size, by this method, and of sets of which this share is in."""
    inside = {"M1": 1.0, "M6": 0.0}.get(str(row["query"]), row.get("in"))
    return (row["size"], row["method"], inside) == (size, method, share)
