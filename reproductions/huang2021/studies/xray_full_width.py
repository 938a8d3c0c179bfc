"""Table 3b with the paper's network: ResNet-18 of full width and a learning rate of 2·10⁻⁵, one training.

The other studies of X-rays have a quarter of the width and a rate of 10⁻³, and EMA calls folds removed that are in. Is
that EMA, or the training? Images and folds are those of one of their trainings, which had no part in any choice.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from cells import Row, bench
from common.outcomes import Figure, Outcome
from counting import by_query
from laboratory import QUALITIES, Laboratory
from tables import AUDITS, XRAY, Part, all_images, calibration_of, queries, slim, target_of

TRAINING = 8
PART = replace(XRAY, changes=(), models=1, trainings=(TRAINING,))
"""With the recipe as it is; EMA needs one calibration model."""
PAPER = {("ema", "C1–C3"): "0 of 30", ("ema", "C4"): "0 of 6", ("ema", "R"): "0 of 6"}


def study(lab: Laboratory) -> Iterator[Outcome]:
    rows: list[Row] = []
    for quality in QUALITIES:
        rows += judged(lab, PART, quality)
        yield outcome(rows)


def outcome(rows: list[Row]) -> Outcome:
    """What there is after some calibration sets."""
    figures = list(by_query(PART, rows, PAPER))
    for row in rows:
        paper = 1.0 if row["query"] in PART.inside else 0.0
        figures.append(Figure(f"k = {row['quality']}: ρ of {row['query']}", paper, row["rho_ema"]))
    return Outcome(
        title="Table 3b with ResNet-18 of full width",
        scale=f"One training ({TRAINING}): the paper's network, learning rate and epochs; PneumoniaMNIST, 28 × 28, in "
        "place of COVIDx; three folds of 800 in place of five; 2,400 calibration images in place of 4,000.",
        figures=figures,
    )


def judged(lab: Laboratory, part: Part, quality: int) -> list[Row]:
    """What EMA says of every query set beside one calibration set."""

    def make() -> list[Row]:
        calibration = calibration_of(lab, part, TRAINING, quality)
        fleet = part.trainer(), part.models
        made = bench(lab, target_of(lab, part, TRAINING), calibration, all_images(lab, part, TRAINING), fleet)
        where = {"size": part.sizes.fold, "method": "ema"}
        return [
            slim({**where, "query": name, **made.row(AUDITS["ema"], query)})
            for name, query in queries(lab, part, TRAINING).items()
        ]

    kept = lab.keep("xray_full_width", f"{TRAINING}-{quality}", str(part), make)
    return [{"training": TRAINING, "quality": quality, **row} for row in kept]
