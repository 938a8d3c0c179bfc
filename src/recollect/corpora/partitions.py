"""Ways to divide users (or records) among models, by named random streams.

None of them looks at the order of the records.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from recollect import labels
from recollect.checks import check_at_least, check_one_of
from recollect.corpora.cohorts import Cohorts, Unit
from recollect.corpora.corpus import Corpus
from recollect.errors import CorpusError, NotEnoughData, PlanError
from recollect.streams import stream

Assignment = dict[str, tuple[str, ...]]


def list_units(corpus: Corpus, unit: Unit) -> tuple[str, ...]:
    """The units that can be partitioned: the users of a corpus, or the ids of its records, in ascending order.

    Args:
        corpus: The corpus.
        unit: Whether users or records are to be divided.
    """
    check_one_of(("user", "record"), unit=unit)
    if unit == "record":
        return tuple(sorted(record.id for record in corpus))
    users = {record.user for record in corpus}
    if None in users:
        raise CorpusError(
            f"{corpus.name} has no users.",
            do="Name a user column, divide by record, or give it artificial users (artificial_users).",
            code="no_users",
        )
    return tuple(sorted(user for user in users if user is not None))


def build_cohorts(corpus: Corpus, members: Mapping[str, Collection[str]], *, unit: Unit, seed: int) -> Cohorts:
    """Cohorts of a corpus from a partition: the members of each model.

    Args:
        corpus: The corpus that was divided.
        members: The users (or record ids) that trained each model.
        unit: Whether they are users or records.
        seed: The seed with which they were drawn.
    """
    return Cohorts.of(members, units=list_units(corpus, unit), unit=unit, corpus=corpus.digest, seed=seed)


def draw_groups(
    units: Collection[str], sizes: Mapping[str, float | int], *, seed: int, name: str = labels.STREAM_GROUPS
) -> Assignment:
    """Partition units into random groups that do not overlap, each a share of all units or so many of them.

    >>> drawn = draw_groups(["ann", "bob", "cid", "dee"], {"target": 0.5, "controls": 1}, seed=0)
    >>> {group: len(chosen) for group, chosen in drawn.items()}
    {'target': 2, 'controls': 1}

    Args:
        units: What is divided.
        sizes: For each group a share (a float, up to 1.0) or a count (an int).
        seed: The seed of the run.
        name: The name of the random stream.
    """
    shuffled = _shuffle_units(units, seed, name)
    counts = _compute_group_sizes(sizes, len(shuffled))
    ends = np.cumsum([0, *counts])
    if ends[-1] > len(shuffled):
        raise NotEnoughData(
            f"The groups {', '.join(sizes)} need {ends[-1]:,} together, and there are {len(shuffled):,}.",
            do="Request smaller groups, or give a larger corpus.",
            code="too_few_units",
        )
    bounds = zip(sizes, ends[:-1], ends[1:], strict=True)
    return {group: tuple(sorted(shuffled[start:end])) for group, start, end in bounds}


def draw_balanced_groups(
    traits: Mapping[str, Sequence[float]],
    sizes: Mapping[str, int],
    *,
    seed: int,
    name: str = labels.STREAM_GROUPS,
    draws: int = 1000,
) -> Assignment:
    """Partition units into groups that are alike by design: of many random partitions the one with the best balance.

    Morgan & Rubin 2012, "Rerandomization to improve covariate balance in experiments". A partition is the better
    balanced, the smaller the largest distance is between the mean of a trait in a group and in all units, in standard
    errors. Nothing else decides who comes into which group.

    >>> traits = {"ann": [1.0], "bob": [1.1], "yan": [8.0], "zoe": [8.1]}
    >>> drawn = draw_balanced_groups(traits, {"target": 2, "controls": 2}, seed=0)
    >>> [sum(unit < "m" for unit in chosen) for chosen in drawn.values()]
    [1, 1]

    Args:
        traits: What is divided, and numbers that describe each unit without any model.
        sizes: How many units each group gets.
        seed: The seed of the run.
        name: The name of the random stream.
        draws: How many partitions are drawn.
    """
    check_at_least(1, draws=draws, **sizes)
    _require_units(traits, sum(sizes.values()), "These groups")
    units = sorted(traits)
    table = np.array([traits[unit] for unit in units], dtype=np.float64)
    scatter = table.std(axis=0)
    table = (table - table.mean(axis=0)) / np.where(scatter > 0, scatter, 1)
    ends = np.cumsum(list(sizes.values()))
    rng = stream(seed, name)

    def measure_imbalance(order: NDArray[np.int64]) -> float:
        """How far the worst trait of the worst group is off."""
        groups = np.split(order, ends)[: len(sizes)]
        return max(float(np.abs(table[group].mean(axis=0)).max()) * math.sqrt(len(group)) for group in groups)

    best = min((rng.permutation(len(units)) for _ in range(draws)), key=measure_imbalance)
    groups = zip(sizes, np.split(best, ends), strict=False)  # the last part is whoever is left over
    return {group: tuple(sorted(units[i] for i in chosen)) for group, chosen in groups}


def draw_halves(units: Collection[str], models: int, *, seed: int, name: str = labels.ROLE_SHADOW) -> Assignment:
    """Partition units for so many models: a random half for each, from `shadow-0` on.

    They come in pairs that share no unit, so that every unit trained one model of each pair and not the other:
    with two models or more, every unit has both a model that saw it and one that did not.

    Args:
        units: What is divided.
        models: How many models.
        seed: The seed of the run.
        name: The name of the random stream and of the models.
    """
    check_at_least(1, models=models)
    _require_units(units, 2, "halves")
    chosen: Assignment = {}
    for model in range(models):
        shuffled = _shuffle_units(units, seed, name, model // 2)
        middle = len(shuffled) // 2
        half = shuffled[middle:] if model % 2 else shuffled[:middle]
        chosen[f"{name}-{model}"] = tuple(sorted(half))
    return chosen


def draw_folds(units: Collection[str], count: int, *, seed: int, name: str = labels.STREAM_FOLDS) -> Assignment:
    """Partition units into folds: for each of `count` folds the units outside it, as the members of `fold-i`.

    Args:
        units: What is divided.
        count: How many folds, whose sizes differ by one at most.
        seed: The seed of the run.
        name: The name of the random stream and of the models.
    """
    check_at_least(2, count=count)
    _require_units(units, count, f"{count} folds")
    shuffled = _shuffle_units(units, seed, name)
    return {
        f"{name}-{fold}": tuple(sorted(unit for i, unit in enumerate(shuffled) if i % count != fold))
        for fold in range(count)
    }


def _shuffle_units(units: Collection[str], seed: int, *names: str | int) -> list[str]:
    """The units to partition in the random order of a named stream."""
    ordered = sorted(set(units))
    return [ordered[i] for i in stream(seed, *names).permutation(len(ordered))]


def _require_units(units: Collection[str], count: int, what: str) -> None:
    """Refuse to partition too few units."""
    if len(units) < count:
        raise NotEnoughData(
            f"{what} need at least {count} units, and there are {len(units)}.",
            do="Give more data.",
            code="too_few_units",
        )


def _compute_group_sizes(sizes: Mapping[str, float | int], total: int) -> list[int]:
    """The size of each group of a partition; rounded so that shares that make up 1 leave nobody out."""
    counts, share = [], 0.0
    for group, size in sizes.items():
        if isinstance(size, int):
            check_at_least(1, **{group: size})
            counts.append(size)
            continue
        if not 0 < size <= 1:
            raise PlanError(
                f"The share of {group} is {size}.",
                do="Give a share between 0 and 1, or a whole number.",
                code="out_of_range",
            )
        counts.append(round((share + size) * total) - round(share * total))
        share += size
        if not counts[-1]:
            raise NotEnoughData(
                f"A share of {size} of {total:,} leaves {group} empty.",
                do="Request a larger share, or give more data.",
                code="empty_group",
            )
    return counts
