"""How much each unit has: its records, their tokens and their periods, in columns; and whether two sides have alike."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from recollect.stats.significance import holm

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]

TOLERANCE = 1.1
"""Totals of tokens whose ratio is at most this count as the same amount."""
ATYPICAL_SHARE = 0.25
"""In this share of exchangeable designs, at most, some unit is matched for having less than most controls have.

Two groups can be compared by a test; of a single unit nobody knows whether its amount is what such units usually have.
So one unit is compared as it is only from the lower quartile on, one of twenty from the lower eightieth on."""


@dataclass(frozen=True, kw_only=True)
class Piece:
    """One record of a unit, as far as its amount goes."""

    record: str
    tokens: int
    period: str | None = None
    """The calendar period of its date; None where dates are unknown."""


@dataclass(frozen=True, kw_only=True)
class Unit:
    """What is compared: a user with all records, or a record."""

    name: str
    pieces: tuple[Piece, ...]
    owner: str | None = None
    """Whose it is, where several units may belong to one user; None if it stands for itself."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Amounts:
    """The pieces of many units in columns, those of one unit next to each other."""

    units: tuple[str, ...]
    owners: tuple[str, ...]
    """Whose each unit is."""
    pieces: tuple[str, ...]
    """The records' ids."""
    unit_of: Ints
    """The index of the unit that each piece belongs to."""
    tokens: Ints
    """Of each piece."""
    period: Ints
    """Of each piece, as an index into the sorted periods of both sides; −1 where it is unknown."""

    @classmethod
    def of(cls, units: Sequence[Unit], periods: Sequence[str] = ()) -> Amounts:
        """The columns of some units, sorted by name, and their pieces by record: the order given does not matter.

        Args:
            units: The units; each has at least one piece, and each piece at least one token.
            periods: All periods of both sides, in order.
        """
        codes = {period: i for i, period in enumerate(periods)}
        units = sorted(units, key=lambda unit: unit.name)
        pieces = [piece for unit in units for piece in sorted(unit.pieces, key=lambda piece: piece.record)]
        return cls(
            units=tuple(unit.name for unit in units),
            owners=tuple(unit.name if unit.owner is None else unit.owner for unit in units),
            pieces=tuple(piece.record for piece in pieces),
            unit_of=np.repeat(np.arange(len(units)), [len(unit.pieces) for unit in units]).astype(np.int64),
            tokens=np.array([piece.tokens for piece in pieces], dtype=np.int64),
            period=np.array([-1 if p.period is None else codes[p.period] for p in pieces], dtype=np.int64),
        )

    def __len__(self) -> int:
        return len(self.units)

    @cached_property
    def counts(self) -> Ints:
        """How many pieces each unit has."""
        return np.bincount(self.unit_of, minlength=len(self)).astype(np.int64)

    @cached_property
    def totals(self) -> Floats:
        """How many tokens each unit has."""
        return self.sum_by_unit(self.tokens)

    def sum_by_unit(self, values: NDArray[np.generic]) -> Floats:
        """The sum over each unit's pieces."""
        return np.bincount(self.unit_of, weights=values, minlength=len(self)).astype(np.float64)

    def count_periods(self, periods: int) -> Ints:
        """How many pieces each unit has in each period, the unknown first [units, 1 + periods]."""
        table = np.zeros((len(self), 1 + periods), dtype=np.int64)
        np.add.at(table, (self.unit_of, self.period + 1), 1)
        return table


@dataclass(frozen=True, kw_only=True, eq=False)
class Difference:
    """In what the amounts of the audited and of the controls differ."""

    p_values: dict[str, float]
    """By covariate: the p-value of "both sides have as much", corrected for the number of covariates (Holm)."""
    atypical: Bools
    """The audited units that have less than nearly all controls, or far more than any."""

    def is_equal(self, alpha: float) -> bool:
        """Whether no covariate differs at this significance level, so that nothing has to be cut."""
        return all(p > alpha for p in self.p_values.values())


def compare_amounts(audited: Amounts, controls: Amounts, *, periods: int) -> Difference:
    """Whether the audited have as many records, tokens per record and the same periods as the controls.

    Each covariate is tested by location and by dispersion (Mann–Whitney of users, two-sided).

    Args:
        audited: The audited units.
        controls: The controls.
        periods: How many periods there are.
    """
    p_values, atypical = dict[str, float](), np.zeros(len(audited), dtype=np.bool_)
    for name, (ours, theirs) in _list_covariates(audited, controls, periods).items():
        if not len(theirs) or not len(ours) or np.ptp(np.concatenate([ours, theirs])) == 0:
            continue
        middle = float(np.median(theirs))
        for how, mine, others in (
            ("location", ours, theirs),
            ("dispersion", np.abs(ours - middle), np.abs(theirs - middle)),
        ):
            p_values[f"{name}_{how}"] = _compare(_average(mine, audited.owners), _average(others, controls.owners))
        if name in ("records", "tokens"):
            atypical |= find_atypical(ours, theirs, both_sides=name == "tokens")
        elif name == "periods":
            atypical |= find_atypical(1 - ours, 1 - theirs, both_sides=False)
    corrected = holm(list(p_values.values()))
    return Difference(p_values=dict(zip(p_values, corrected.tolist(), strict=True)), atypical=atypical)


def find_atypical(ours: Floats, theirs: Floats, *, both_sides: bool) -> Bools:
    """Which amounts are lower than those of nearly all controls, or more than 10 % outside their range.

    >>> find_atypical(np.array([1.0]), np.arange(20.0), both_sides=False).tolist()
    [True]

    Args:
        ours: One amount per audited unit.
        theirs: One per control.
        both_sides: Whether amounts that are higher than those of nearly all controls count, too: means of more records
            scatter less, and are no false positive; but long texts may score higher than short ones.
    """
    share = ATYPICAL_SHARE / max(1, len(ours))
    outside = (ours * TOLERANCE < theirs.min()) | (ours > theirs.max() * TOLERANCE)
    low = (1 + np.searchsorted(np.sort(theirs), ours, side="right")) / (1 + len(theirs)) <= share
    high = (1 + np.searchsorted(np.sort(-theirs), -ours, side="right")) / (1 + len(theirs)) <= share
    return np.asarray(outside | low | (high & both_sides))


def _list_covariates(audited: Amounts, controls: Amounts, periods: int) -> dict[str, tuple[Floats, Floats]]:
    """What is compared of each unit: records, tokens per record, and where dates are known the periods."""
    found = {
        "records": (audited.counts.astype(np.float64), controls.counts.astype(np.float64)),
        "tokens": (audited.totals / audited.counts, controls.totals / controls.counts),
    }
    if periods > 1:
        ours, theirs = (side.count_periods(periods) for side in (audited, controls))
        pooled = theirs.sum(axis=0) / max(1, theirs.sum())
        found["periods"] = (_measure_distance(ours, pooled), _measure_distance(theirs, pooled))
        found["dates"] = (_average_period(ours), _average_period(theirs))
    return found


def _measure_distance(counts: Ints, pooled: Floats) -> Floats:
    """The total variation distance of each unit's periods from those of all controls."""
    return np.asarray(np.abs(counts / counts.sum(axis=1, keepdims=True) - pooled).sum(axis=1) / 2)


def _average_period(counts: Ints) -> Floats:
    """The mean period of each unit, as a number that starts at 1."""
    known = np.maximum(1, counts[:, 1:].sum(axis=1))
    return np.asarray((counts[:, 1:] @ np.arange(1, counts.shape[1])) / known)


def _average(values: Floats, owners: Sequence[str]) -> Floats:
    """One value per owner: the mean over the owner's units."""
    codes = {owner: i for i, owner in enumerate(dict.fromkeys(owners))}
    if len(codes) == len(owners):
        return values
    index = np.fromiter((codes[owner] for owner in owners), dtype=np.int64, count=len(owners))
    return np.asarray(np.bincount(index, weights=values) / np.bincount(index))


def _compare(ours: Floats, theirs: Floats) -> float:
    """The two-sided p-value of "both sides are alike"."""
    if np.ptp(np.concatenate([ours, theirs])) == 0:
        return 1.0
    return float(stats.mannwhitneyu(ours, theirs, alternative="two-sided").pvalue)
