"""The cells of the paper's tables: trainings, qualities of the calibration set, query sets and sizes, three methods.

Both parts of the paper, digits and chest X-rays, are made alike; `Part` says how they differ.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cache

from cells import Bench, Row, bench, everything, ks_row, part_of
from laboratory import QUALITIES, Drawn, Laboratory, Sizes, first, of_arrays, worsened

from recollect.audits.removal.audit import RemovalAudit
from recollect.corpora.corpus import Corpus
from recollect.recipes.recipe import Recipe
from recollect.recipes.recipe_file import load_recipe
from recollect.streams import stream

FAR = "fashion_mnist/images.npz"
"""Images of which no model saw anything alike."""
SHARES = (0.0, 0.25, 0.5, 0.75, 1.0)
SMALLEST_SHARED = 200
"""Smaller sets are all in or all out."""
AUDITS = {"calibrated": RemovalAudit(), "ema": RemovalAudit(method="ema")}
REVISIONS = {"calibrated": 9, "ks": 8}
"""Raised when cells of `calibrated` and `ema`, or of `ks`, are made otherwise."""
COLUMNS = ("query", "size", "method", "in", "draw", "outcome", "share", "rho_ema", "rho_ks")


@dataclass(frozen=True, kw_only=True)
class Part:
    """One of the two parts of the paper."""

    name: str
    letters: str
    """Query sets are called by the first letter and a number; the far set by the second."""
    files: tuple[str, ...]
    sizes: Sizes
    classes: int
    recipe: str
    changes: tuple[str, ...] = ()
    """What is otherwise than in the recipe."""
    models: int
    """Calibration models of each calibration set."""
    rotate: bool
    """Whether half of the spoilt calibration images are turned, rather than all of them made noisy."""
    query_sizes: tuple[int, ...]
    trainings: tuple[int, ...]

    @property
    def inside(self) -> tuple[str, ...]:
        """The query sets that trained the target."""
        return tuple(f"{self.letters[0]}{i + 1}" for i in range(self.sizes.folds))

    @property
    def outside(self) -> str:
        """The query set of the same source that did not."""
        return f"{self.letters[0]}{self.sizes.folds + 1}"

    @property
    def far(self) -> str:
        """The query set of another source."""
        return self.letters[1]

    @property
    def some(self) -> tuple[str, str, str]:
        """One query set of each sort."""
        return self.inside[0], self.outside, self.far

    def trainer(self) -> Recipe:
        """What trains all models."""
        return load_recipe(self.recipe, list(self.changes))


MNIST = Part(
    name="mnist",
    letters="MS",
    files=("mnist/train.npz",),
    sizes=Sizes(fold=2000, folds=5, calibration=1000, fresh=4000),
    classes=10,
    recipe="mlp",
    models=8,
    rotate=True,
    query_sizes=(2000, 500, 200, 50, 20, 5),
    trainings=(12, 13, 14, 15, 16),
)
XRAY = Part(
    name="xray",
    letters="CR",
    files=tuple(f"pneumoniamnist/{part}.npz" for part in ("train", "val", "test")),
    sizes=Sizes(fold=800, folds=3, calibration=2400, fresh=1050),
    classes=2,
    recipe="resnet18",
    models=4,
    changes=("widths=[16,32,64,128]", "learning_rate=0.001"),
    rotate=False,
    query_sizes=(800, 500, 200, 50, 20, 5),
    trainings=(8, 9, 10, 11, 12),
)


def cells(lab: Laboratory, part: Part) -> list[Row]:
    """Every cell of `ema` and `calibrated`."""
    *_, rows = growing_cells(lab, part)
    return rows


def ks_cells(lab: Laboratory, part: Part) -> list[Row]:
    """The cells of `ks`."""
    *_, rows = growing_ks_cells(lab, part)
    return rows


def growing_cells(lab: Laboratory, part: Part) -> Iterator[list[Row]]:
    """The cells of `ema` and `calibrated`, as many as there are after each training and quality."""
    return _growing(lab, part, part.name, _cells, REVISIONS["calibrated"])


def growing_ks_cells(lab: Laboratory, part: Part) -> Iterator[list[Row]]:
    """The cells of `ks`, as many as there are after each training and quality."""
    return _growing(lab, part, f"{part.name}-ks", _ks_cells, REVISIONS["ks"])


Make = Callable[[Laboratory, Part, int, int], list[Row]]


def _growing(lab: Laboratory, part: Part, name: str, make: Make, revision: int) -> Iterator[list[Row]]:
    """Cells as they are made, or found among the paper's results."""
    made_of = [revision, str(replace(part, trainings=()))]
    rows: list[Row] = []
    for seed in part.trainings:
        for quality in QUALITIES:
            kept = lab.keep(name, f"{seed}-{quality}", made_of, lambda s=seed, q=quality: make(lab, part, s, q))
            rows = [*rows, *({"training": seed, "quality": quality, **row} for row in kept)]
            yield rows


def slim(row: Row) -> Row:
    """What the tables need of a cell."""
    return {name: row[name] for name in COLUMNS if row.get(name) is not None}


@cache
def divided(lab: Laboratory, part: Part, seed: int) -> Drawn:
    """The images of one training."""
    return lab.drawn(part.files, part.sizes, seed)


@cache
def far_images(lab: Laboratory, part: Part, seed: int) -> Corpus:
    """Images of clothes drawn at random, as many as a fold has; their labels mean nothing to the target."""
    x, y = lab.images(FAR)
    some = stream(seed, "far", part.name).permutation(len(x))[: part.sizes.fold]
    return of_arrays(x[some], y[some] % part.classes, some + 100_000, "Fashion-MNIST")


@cache
def all_images(lab: Laboratory, part: Part, seed: int) -> Corpus:
    """All images of which the query sets of a training are made."""
    return everything(divided(lab, part, seed), far_images(lab, part, seed))


def target_of(lab: Laboratory, part: Part, seed: int) -> str:
    """The folder of the target of a training."""
    return str(lab.trained(part.trainer(), divided(lab, part, seed).training, seed))


def calibration_of(lab: Laboratory, part: Part, seed: int, quality: int) -> Corpus:
    """The calibration set of a quality."""
    return worsened(divided(lab, part, seed).calibration, quality, rotate=part.rotate, seed=seed)


def queries(lab: Laboratory, part: Part, seed: int) -> dict[str, Corpus]:
    """The query sets of a whole fold's size."""
    drawn = divided(lab, part, seed)
    folds = dict(zip(part.inside, drawn.folds, strict=True))
    return {**folds, part.outside: first(drawn.fresh, part.sizes.fold), part.far: far_images(lab, part, seed)}


def _cells(lab: Laboratory, part: Part, seed: int, quality: int) -> list[Row]:
    """The cells of one training and one calibration set."""
    calibration = calibration_of(lab, part, seed, quality)
    fleet = part.trainer(), part.models
    made = bench(lab, target_of(lab, part, seed), calibration, all_images(lab, part, seed), fleet)
    rows = []
    for name, query in queries(lab, part, seed).items():
        for size in part.query_sizes if name in part.some else part.query_sizes[:1]:
            some = query if size == len(query) else part_of(query, size, name, size, quality)
            rows += [{"query": name, "size": size, **each} for each in _methods(made, some)]
    rows += _drawn_cells(made, part, divided(lab, part, seed), quality)
    return [slim(row) for row in rows]


def _ks_cells(lab: Laboratory, part: Part, seed: int, quality: int) -> list[Row]:
    """What `ks` says of every query set of a whole fold: each costs a model."""
    target, calibration = target_of(lab, part, seed), calibration_of(lab, part, seed, quality)
    where: Row = {"size": part.sizes.fold, "method": "ks"}
    return [
        slim({**where, "query": name, **ks_row(lab, part.trainer(), target, calibration, query)})
        for name, query in queries(lab, part, seed).items()
    ]


def _methods(made: Bench, query: Corpus) -> list[Row]:
    """What `calibrated` and both tests of `ema` say."""
    audits = {**AUDITS, "ema, KS test": RemovalAudit(method="ema", test="ks")}
    return [{"method": name, **made.row(audit, query)} for name, audit in audits.items()]


def _drawn_cells(made: Bench, part: Part, drawn: Drawn, quality: int) -> list[Row]:
    """More query sets of each size, all in, all out, and in part; other ones at every quality."""
    rows = []
    for size, share, draw in _further(part):
        inside = round(share * size)
        parts = [
            *part_of(drawn.training, inside, "in", size, draw, quality),
            *part_of(drawn.fresh, size - inside, "out", size, draw, quality),
        ]
        query = Corpus.of(parts, name=f"{share:.0%} in")
        for name, audit in AUDITS.items():
            found = made.row(audit, query)
            rows.append({"query": "drawn", "in": share, "draw": draw, "size": size, "method": name, **found})
    return rows


def _further(part: Part) -> Iterator[tuple[int, float, int]]:
    """Size, share in and number of every further set; more of fresh images, of which more can be said wrongly."""
    for size in part.query_sizes:
        for share in SHARES if size >= SMALLEST_SHARED else (0.0, 1.0):
            for draw in range(2 if share == 0 and size < part.sizes.fold else 1):
                yield size, share, draw
