"""How much each unit has: its records, their tokens and their periods, in columns; and whether two sides have alike."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from recollect.stats.significance import holm
from recollect.stats.tied_ranks import mann_whitney_p

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]

TOLERANCE = 1.1
"""Totals of tokens whose ratio is at most this count as the same amount."""
ATYPICAL_SHARE = 0.25
"""In this share of exchangeable designs, at most, some unit is matched for having less than most controls have.

Two groups can be compared by a test; of a single unit nobody knows whether its amount is what such units usually have.
So one unit is compared as it is only from the lower quartile on, one of twenty from the lower eightieth on."""

EXTREME_SHARE = 0.05
"""In this share of exchangeable designs, at most, some unit is matched by period for being early or late."""
_DATES = ("dates", "date_distances")


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

    def select(self, kept: Ints) -> Amounts:
        """The units of which anything is kept, with as many tokens of each piece as are kept [pieces]."""
        chosen = np.flatnonzero(kept)
        units, unit_of = np.unique(self.unit_of[chosen], return_inverse=True)
        return Amounts(
            units=tuple(self.units[i] for i in units.tolist()),
            owners=tuple(self.owners[i] for i in units.tolist()),
            pieces=tuple(self.pieces[i] for i in chosen.tolist()),
            unit_of=unit_of.astype(np.int64),
            tokens=kept[chosen],
            period=self.period[chosen],
        )

    @cached_property
    def counts(self) -> Ints:
        """How many pieces each unit has."""
        return np.bincount(self.unit_of, minlength=len(self)).astype(np.int64)

    @cached_property
    def starts(self) -> Ints:
        """The index of each unit's first piece."""
        return np.asarray(np.cumsum(self.counts) - self.counts)

    @cached_property
    def totals(self) -> Floats:
        """How many tokens each unit has."""
        return self.sum_by_unit(self.tokens)

    @cached_property
    def dated_shares(self) -> Floats:
        """The share of the pieces that have a time, of each owner."""
        return _average_amounts_by_owner(self.sum_by_unit(self.period >= 0) / self.counts, self.owners)

    def sum_by_unit(self, values: NDArray[np.generic]) -> Floats:
        """The sum over each unit's pieces."""
        return np.bincount(self.unit_of, weights=values, minlength=len(self)).astype(np.float64)


@dataclass(frozen=True, kw_only=True, eq=False)
class AmountDifference:
    """In what the amounts and dates of the audited and of the controls differ."""

    p_values: dict[str, float]
    """By covariate: the p-value of "both sides have alike", corrected for the number of covariates (Holm)."""
    atypical: Bools
    """The audited units that have less than nearly all controls, or far more than any."""
    untimely: Bools
    """The audited units whose records are earlier or later than those of nearly all controls."""

    def is_equal(self, alpha: float) -> bool:
        """Whether no covariate differs at this significance level, so that nothing has to be cut."""
        return all(p > alpha for p in self.p_values.values())

    def is_timely(self, alpha: float) -> bool:
        """Whether dates do not differ, so that periods need not be matched."""
        return all(p > alpha for name, p in self.p_values.items() if name in _DATES)


def compare_amounts(audited: Amounts, controls: Amounts, *, periods: int) -> AmountDifference:
    """Whether the audited have as many records, tokens per record and the same dates as the controls.

    Amounts are tested by location and by dispersion, dates by their mean and by their distance from the middle of the
    controls' dates (Mann–Whitney of users, two-sided).

    Args:
        audited: The audited units.
        controls: The controls.
        periods: How many periods there are.
    """
    p_values = dict[str, float]()
    atypical, untimely = (np.zeros(len(audited), dtype=np.bool_) for _ in range(2))
    for name, (ours, theirs) in _list_compared_amounts(audited, controls, periods).items():
        if not len(theirs) or not len(ours) or np.ptp(np.concatenate([ours, theirs])) == 0:
            continue
        means = [
            _average_amounts_by_owner(values, side.owners) for values, side in ((ours, audited), (theirs, controls))
        ]
        p_values[name] = _compare_amount(*means)
        if name in _DATES:
            untimely |= _find_extreme_dates(ours, theirs) if name == "dates" else False
            continue
        middle = float(np.median(theirs))
        p_values[f"{name}_dispersion"] = _compare_amount(*(np.abs(each - middle) for each in means))
        atypical |= find_atypical(ours, theirs, both_sides=name == "tokens")
    corrected = holm(list(p_values.values()))
    by_name = dict(zip(p_values, corrected.tolist(), strict=True))
    return AmountDifference(p_values=by_name, atypical=atypical, untimely=untimely)


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


def compare_dated_shares(ours: Floats, theirs: Floats) -> bool:
    """Whether both sides have times, and alike: only then can amounts of different periods be distinguished.

    Where mostly one side lacks them, units without a time would seem to be of another period.

    >>> compare_dated_shares(np.ones(20), np.ones(40)), compare_dated_shares(np.zeros(20), np.ones(40))
    (True, False)

    Args:
        ours: The share of records that have a time, of each audited owner.
        theirs: The same of the controls.
    """
    if not ours.any() or not theirs.any():
        return False
    return _compare_amount(ours, theirs) > EXTREME_SHARE


def _find_extreme_dates(ours: Floats, theirs: Floats) -> Bools:
    """Among the amounts: which dates are earlier or later than nearly all of the controls'."""
    count = 1 + len(theirs)
    early = (1 + np.searchsorted(np.sort(theirs), ours, side="right")) / count
    late = (1 + np.searchsorted(np.sort(-theirs), -ours, side="right")) / count
    outside = (ours < theirs.min()) | (ours > theirs.max())
    return np.asarray(outside | (2 * np.minimum(early, late) <= EXTREME_SHARE / max(1, len(ours))))


def _list_compared_amounts(audited: Amounts, controls: Amounts, periods: int) -> dict[str, tuple[Floats, Floats]]:
    """The amounts that are compared of each unit: records, tokens per record, and where they are known the dates."""
    found = {
        "records": (audited.counts.astype(np.float64), controls.counts.astype(np.float64)),
        "tokens": (audited.totals / audited.counts, controls.totals / controls.counts),
    }
    if periods > 1:
        known = [side.period >= 0 for side in (audited, controls)]
        if known[0].any() and known[1].any():
            middle = float(np.median(controls.period[known[1]]))
            for name, values in (
                ("dates", [side.period.astype(np.float64) for side in (audited, controls)]),
                ("date_distances", [np.abs(side.period - middle) for side in (audited, controls)]),
            ):
                # who has no date at all counts as being in the middle
                ours, theirs = (
                    _average_known_dates(side, each, mask, middle if name == "dates" else 0.0)
                    for side, each, mask in zip((audited, controls), values, known, strict=True)
                )
                found[name] = (ours, theirs)
    return found


def _average_known_dates(side: Amounts, values: Floats, known: Bools, otherwise: float) -> Floats:
    """Among the amounts: the mean date of each unit over the pieces that have one."""
    counts = side.sum_by_unit(known)
    return np.where(counts > 0, side.sum_by_unit(values * known) / np.maximum(counts, 1), otherwise)


def _average_amounts_by_owner(values: Floats, owners: Sequence[str]) -> Floats:
    """One value per owner: the mean over the owner's units."""
    codes = {owner: i for i, owner in enumerate(dict.fromkeys(owners))}
    if len(codes) == len(owners):
        return values
    index = np.fromiter((codes[owner] for owner in owners), dtype=np.int64, count=len(owners))
    return np.asarray(np.bincount(index, weights=values) / np.bincount(index))


def _compare_amount(ours: Floats, theirs: Floats) -> float:
    """The two-sided p-value of "both sides have the same amount".

    Normal where amounts tie, and then too small: one unit that has more than 20 others is significantly different
    though no exact test of 21 units says so. That is the safe side, for whoever differs is matched.
    """
    if np.ptp(np.concatenate([ours, theirs])) == 0:
        return 1.0
    return mann_whitney_p(ours, theirs, "two-sided")
