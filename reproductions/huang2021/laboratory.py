"""What the studies share: images divided as in the paper, calibration sets of falling quality, and the models of both.

Everything is kept in the work folder under an address of all that it depends on, so that a run that was killed goes on,
and two studies that want the same model train it once.
"""

from __future__ import annotations

import itertools
import time
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
from common.bench import Bench
from numpy.typing import NDArray
from scipy import ndimage

from recollect.corpora.cohorts import Cohorts
from recollect.corpora.corpus import Corpus
from recollect.corpora.partitions import build_cohorts, draw_halves, list_units
from recollect.corpora.record import Record
from recollect.digests import digest
from recollect.recipes.fleet import Fleet, train_fleet
from recollect.recipes.layout_trial import WorkerLayout
from recollect.recipes.recipe import Recipe
from recollect.recipes.training.trainer import train
from recollect.signals.evidence import SHADOW
from recollect.streams import stream

QUALITIES = (100, 90, 80, 70, 60, 50)
"""The share of a calibration set that is left as it is, in percent: the paper's k."""
NOISE = 0.3
"""Standard deviation of the noise, where white is 1; the paper is silent."""

Images = NDArray[np.uint8]


@dataclass(frozen=True, kw_only=True)
class Sizes:
    """How many images of each sort there are."""

    fold: int
    folds: int
    calibration: int
    fresh: int
    """Of the same source, trained on by nobody: the paper's M6 or C6 are the first of them."""


@dataclass(frozen=True, kw_only=True)
class Drawn:
    """One division of the images."""

    folds: tuple[Corpus, ...]
    fresh: Corpus
    calibration: Corpus

    @cached_property
    def training(self) -> Corpus:
        """All folds."""
        return joined(self.folds, "the training images")


class Laboratory(Bench):
    """Images, models of them, and what is measured of them."""

    def images(self, name: str) -> tuple[Images, NDArray[np.int64]]:
        """The images and labels of a file."""
        with np.load(self.file(name)) as file:
            return file["x"], file["y"].astype(np.int64).ravel()

    def drawn(self, names: tuple[str, ...], sizes: Sizes, seed: int) -> Drawn:
        """The images of these files divided at random."""
        parts = [self.images(name) for name in names]
        x, y = np.concatenate([part[0] for part in parts]), np.concatenate([part[1] for part in parts])
        order = stream(seed, "drawn", *names).permutation(len(x))
        ends = np.cumsum([0, *[sizes.fold] * sizes.folds, sizes.calibration, sizes.fresh])
        if ends[-1] > len(x):
            raise ValueError(f"{ends[-1]} images are wanted of {len(x)}")
        groups = [order[a:b] for a, b in itertools.pairwise(ends)]
        made = [of_arrays(x[group], y[group], group, f"part {i}") for i, group in enumerate(groups)]
        return Drawn(folds=tuple(made[: sizes.folds]), calibration=made[-2], fresh=made[-1])

    def trained(self, recipe: Recipe, corpus: Corpus, seed: int) -> Path:
        """A model of a whole corpus."""
        folder = self.work / "models" / digest(recipe.digest, corpus.digest, seed, self.threads)
        if not (folder / "card.json").exists():
            began = time.monotonic()
            train(recipe, corpus, folder, seed=seed, threads=self.threads)
            self.say(f"  trained {recipe.name} on {len(corpus):,} records, {time.monotonic() - began:.0f} s")
        return folder

    def calibrated(self, recipe: Recipe, corpus: Corpus, count: int) -> tuple[dict[str, Path], Cohorts]:
        """So many calibration models of a calibration set, the same that the audit would have trained."""
        cohorts = halved(corpus, count)
        began = time.monotonic()
        fleet = Fleet(recipe=recipe, corpus=corpus, cohorts=cohorts)
        done = train_fleet(fleet, self.work, layout=WorkerLayout(workers=1, threads=self.threads), backend=self.cluster)
        if done.failures:
            raise RuntimeError(str(done.failures))
        if time.monotonic() - began > 1:
            self.say(f"  calibration models on {len(corpus):,} records, {time.monotonic() - began:.0f} s")
        return done.folders, cohorts


def halved(corpus: Corpus, count: int) -> Cohorts:
    """Which half of a calibration set trains which calibration model."""
    members = draw_halves(list_units(corpus, "record"), count, seed=0, name=SHADOW)
    return build_cohorts(corpus, members, unit="record", seed=0)


def of_arrays(x: Images, y: NDArray[np.int64], ids: NDArray[np.int64], name: str) -> Corpus:
    """A corpus of images."""
    rows = zip(ids.tolist(), x, y.tolist(), strict=True)
    return Corpus.of((Record(id=f"{i:05d}", array=image, label=label) for i, image, label in rows), name=name)


def joined(corpora: tuple[Corpus, ...], name: str) -> Corpus:
    """Several corpora as one."""
    return Corpus.of((record for corpus in corpora for record in corpus), name=name)


def first(corpus: Corpus, count: int, start: int = 0) -> Corpus:
    """So many records of a corpus."""
    return Corpus.of(list(corpus)[start : start + count], name=f"{count} of {corpus.name}")


def worsened(corpus: Corpus, quality: int, *, rotate: bool, seed: int) -> Corpus:
    """A calibration set of which only so many percent are as they were: the rest gets noise or is turned."""
    records, rng = list(corpus), stream(seed, "worsened", quality)
    order = rng.permutation(len(records))
    spoilt = order[: round(len(records) * (100 - quality) / 100)]
    turned = set(spoilt[: len(spoilt) // 2].tolist() if rotate else [])
    made = list(records)
    for place in spoilt.tolist():
        record = records[place]
        assert record.array is not None
        image = record.array.astype(np.float64)
        if place in turned:
            image = ndimage.rotate(image, rng.uniform(-180, 180), reshape=False, order=1)
        else:
            image = image + 255 * NOISE * rng.standard_normal(image.shape)
        spoiled = np.clip(np.rint(image), 0, 255).astype(np.uint8)
        made[place] = Record(id=record.id, array=spoiled, label=record.label)
    return Corpus.of(made, name=f"{corpus.name}, quality {quality}")
