"""Table 3b with the paper's network: ResNet-18 of full width and a learning rate of 2·10⁻⁵, one training.

The other studies of X-rays have a quarter of the width and a rate of 10⁻³, and EMA calls folds removed that are in. Is
that EMA, or the training? Images and folds are those of one of their trainings, which had no part in any choice.
"""

from __future__ import annotations

from dataclasses import replace

from cells import bench
from common.outcomes import Figure, Outcome
from counting import by_query
from laboratory import QUALITIES, Laboratory
from tables import AUDITS, XRAY, Part, all_images, calibration_of, queries, target_of

from recollect.digests import digest
from recollect.files import read_json, write_json

TRAINING = 8
PART = replace(XRAY, changes=(), models=1, trainings=(TRAINING,))
"""With the recipe as it is; EMA needs one calibration model."""
PAPER = {("ema", "C1–C3"): "0 of 25", ("ema", "C4"): "0 of 5", ("ema", "R"): "0 of 5"}


def study(lab: Laboratory) -> Outcome:
    rows = [row for quality in QUALITIES for row in judged(lab, PART, quality)]
    figures = list(by_query(PART, rows, PAPER))
    for row in rows:
        paper = 1.0 if row["query"] in PART.inside else 0.0
        printed = paper if row["quality"] > min(QUALITIES) else None
        figures.append(Figure(f"k = {row['quality']}: ρ of {row['query']}", printed, row["rho_ema"]))
    return Outcome(
        title="Table 3b with ResNet-18 of full width",
        scale=f"One training ({TRAINING}): the paper's network, learning rate and epochs; PneumoniaMNIST, 28 × 28, in "
        "place of COVIDx; three folds of 800 in place of five; 2,400 calibration images in place of 4,000.",
        figures=figures,
        details={"cells": rows},
    )


def judged(lab: Laboratory, part: Part, quality: int) -> list[dict[str, object]]:
    """What EMA says of every query set beside one calibration set; kept in the work folder."""
    file = lab.work / "cells" / f"xray-full-{TRAINING}-{quality}-{digest(str(part))}.json"
    if not file.exists():
        calibration = calibration_of(lab, part, TRAINING, quality)
        fleet = part.trainer(), part.models
        made = bench(lab, target_of(lab, part, TRAINING), calibration, all_images(lab, part, TRAINING), fleet)
        where = {"training": TRAINING, "quality": quality, "size": part.sizes.fold, "method": "ema"}
        found = [
            {**where, "query": name, **made.row(AUDITS["ema"], query)}
            for name, query in queries(lab, part, TRAINING).items()
        ]
        write_json(file, found)
        lab.say(f"  full width, quality {quality}")
    kept: list[dict[str, object]] = read_json(file)
    return kept
