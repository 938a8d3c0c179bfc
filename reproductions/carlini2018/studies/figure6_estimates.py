"""Figures 5 and 6: the paper's estimate against the true rank, and the steps that shortest path needs to find it.

Each point is one model as it was after one epoch; the paper's points are models of their own.
"""

from __future__ import annotations

import math
from statistics import fmean, median

from common.outcomes import Figure, Outcome
from laboratory import COUNTED, NUMBER, Laboratory, Row, Trained, base_models, secret_of

from recollect.audits.exposure.extraction import ExtractionAudit

EPOCHS = (3, 6, 9, 12, 15)
SEARCH = ExtractionAudit(format=NUMBER, top=1, max_steps=50_000, show_text=True)


def study(lab: Laboratory) -> Outcome:
    points = [point(lab, model, epoch) for model in base_models(lab) for epoch in EPOCHS]
    counted = [each for each in points if each["method"] == "exact"]
    first = [each for each in counted if each["rank"] == 1]
    wide = [each for each in counted if each["estimated_bits"] >= math.log2(1e9)]
    return Outcome(
        title="Figures 5 and 6: estimated against true exposure, and steps of the search",
        scale=f"{len(points)} points: models on 2 % of the treebank, after several epochs each.",
        figures=[
            Figure("points whose rank was counted to the end", None, len(counted)),
            Figure("median of (estimated − true) exposure of these, bits", "near 0", median_of(counted)),
            Figure("largest difference where the rank is not 1, bits", None, largest_below(counted)),
            Figure("estimated ≥ 30 bits: share that is truly rank 1", "most", share(wide, lambda e: e["rank"] == 1)),
            Figure(
                "rank 1: median steps of shortest path, with proof",
                1e5,
                median([e["steps"] for e in first] or [math.nan]),
            ),
            Figure("rank 1: share found and proven", 1.0, share(first, lambda e: e["found"] and e["proven"])),
        ],
        details={"points": points},
    )


def point(lab: Laboratory, model: Trained, epoch: int) -> Row:
    """One model after one epoch."""
    folder = model.after(epoch)
    row = lab.exposure(folder, COUNTED, model.canaries[0])
    search = lab.measure(folder, SEARCH)
    names = ("rank", "method", "exposure_bits", "lower", "upper", "log_perplexity_bits")
    return {
        "epoch": epoch,
        **{name: row[name] for name in names},
        "estimated_bits": row["skew_normal_bits"],
        "steps": search["steps"],
        "found": any(found["secret"] == secret_of(model.canaries[0]) for found in search["rows"]),
        "proven": search["proven"] >= 1,
    }


def share(points: list[Row], holds) -> float | None:
    return fmean(map(holds, points)) if points else None


def median_of(points: list[Row]) -> float | None:
    return median(each["estimated_bits"] - each["exposure_bits"] for each in points) if points else None


def largest_below(points: list[Row]) -> float | None:
    """Where the secret is rank 1 the true exposure cannot grow and the estimate can: such points do not count."""
    differences = [abs(each["estimated_bits"] - each["exposure_bits"]) for each in points if each["rank"] > 1]
    return max(differences, default=None)
