"""The cells of the benchmark's tables: five trainings, six qualities of the calibration set, three methods."""

from __future__ import annotations

from functools import cache

import numpy as np
from cells import Bench, Row, bench, everything, part_of, with_query_model
from laboratory import (
    MNIST,
    MNIST_FILES,
    QUALITIES,
    TRAININGS,
    Drawn,
    Laboratory,
    first,
    mnist_recipe,
    of_arrays,
    worsened,
)

from recollect.audits.removal.audit import RemovalAudit
from recollect.corpora.corpus import Corpus
from recollect.digests import digest
from recollect.files import read_json, write_json

SIZES = (2000, 500, 200, 50, 20, 5)
KS_TRAININGS = 0
"""Trainings of which `ks` is asked, too: it needs a model for every query set."""
DRAWS = 3
"""Query sets of each smaller size that are drawn from trained and from fresh images, in every training."""
SHARES = (0.0, 0.25, 0.5, 0.75, 1.0)
SMALLER = ("M1", "M6", "S")
"""Query sets of which smaller parts are asked about, too."""
FRESH = 4000
"""Fresh images that query sets are drawn from."""


def cells(lab: Laboratory) -> list[Row]:
    """Every cell, from the work folder where it is kept."""
    rows: list[Row] = []
    for seed in range(TRAININGS):
        for quality in QUALITIES:
            file = lab.work / "cells" / f"mnist-{seed}-{quality}-{digest(REVISION)}.json"
            if not file.exists():
                write_json(file, _cells(lab, seed, quality))
                lab.say(f"  MNIST, training {seed}, quality {quality}")
            rows += read_json(file)
    return rows


REVISION = 1
"""Raised when cells are made otherwise."""


@cache
def far_images(lab: Laboratory) -> Corpus:
    """2,000 images that are no digits: Fashion-MNIST, in place of SVHN."""
    x, y = lab.images("fashion_mnist/images.npz")
    return of_arrays(x[:2000], y[:2000], np.arange(2000) + 100_000, "Fashion-MNIST")


@cache
def divided(lab: Laboratory, seed: int) -> Drawn:
    """The images of one training."""
    drawn = lab.drawn(MNIST_FILES, MNIST, seed)
    return Drawn(folds=drawn.folds, fresh=first(drawn.fresh, FRESH), calibration=drawn.calibration)


def _cells(lab: Laboratory, seed: int, quality: int) -> list[Row]:
    """The cells of one training and one calibration set."""
    recipe, drawn, far = mnist_recipe(), divided(lab, seed), far_images(lab)
    target = str(lab.trained(recipe, drawn.training, seed))
    calibration = worsened(drawn.calibration, quality, rotate=True, seed=seed)
    made = bench(lab, recipe, target, calibration, everything(drawn, far))
    where: Row = {"training": seed, "quality": quality}
    queries = {f"M{i + 1}": fold for i, fold in enumerate(drawn.folds)}
    queries |= {"M6": first(drawn.fresh, 2000), "S": far}
    rows = []
    for name, query in queries.items():
        for size in SIZES if name in SMALLER else SIZES[:1]:
            some = query if size == len(query) else part_of(query, size, name, size)
            rows += [{**where, "query": name, "size": size, **each} for each in _methods(made, some)]
        if seed < KS_TRAININGS:
            found = with_query_model(lab, recipe, made, query, seed).row(RemovalAudit(method="ks"), query)
            rows.append({**where, "query": name, "size": 2000, "method": "ks", **found})
    rows += [{**where, **row} for row in _drawn_cells(made, drawn)]
    return rows


def _methods(made: Bench, query: Corpus) -> list[Row]:
    """What `calibrated` and both tests of `ema` say."""
    audits = {
        "calibrated": RemovalAudit(),
        "ema": RemovalAudit(method="ema"),
        "ema, KS test": RemovalAudit(method="ema", test="ks"),
    }
    return [{"method": name, **made.row(audit, query)} for name, audit in audits.items()]


def _drawn_cells(made: Bench, drawn: Drawn) -> list[Row]:
    """More query sets of each size, all in, all out, and in part."""
    rows = []
    for size in SIZES:
        for draw in range(DRAWS if size < 2000 else 1):
            for share in SHARES if size >= 200 else (0.0, 1.0):
                inside = round(share * size)
                parts = [
                    *part_of(drawn.training, inside, "in", size, draw),
                    *part_of(drawn.fresh, size - inside, "out", size, draw),
                ]
                query = Corpus.of(parts, name=f"{share:.0%} in")
                for name, audit in (("calibrated", RemovalAudit()), ("ema", RemovalAudit(method="ema"))):
                    found = made.row(audit, query)
                    rows.append({"query": "drawn", "in": share, "draw": draw, "size": size, "method": name, **found})
    return rows


def errors(rows: list[Row], truth: str) -> tuple[int, int]:
    """How many cells have a wrong verdict, and how many none; the truth is "still there" or "gone"."""
    right = {"still there": "found", "gone": "not found"}[truth]
    open_ = sum(row["outcome"] == "cannot tell" for row in rows)
    return sum(row["outcome"] not in {right, "cannot tell"} for row in rows), open_


def scale(rows: list[Row]) -> str:
    """How many trainings the rows come from."""
    trainings = len({row["training"] for row in rows})
    return (
        f"{trainings} trainings of the paper's size: perceptron 256–256, 10,000 images, 1,000 calibration images of "
        "six qualities, eight calibration models."
    )
