"""Matching: a unit is compared only with units of the same amount, that is records, tokens and period.

The mean of two records scatters more than the mean of thirty, and a short text scores otherwise than a long one. So
whoever has less is compared with controls that are cut to as much, and whoever has more than most controls is cut,
several times. Where both sides have alike nothing is cut: see `match_units`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from recollect import labels
from recollect.audits.common.amounts import (
    TOLERANCE,
    AmountDifference,
    Amounts,
    Bools,
    Floats,
    Ints,
    Unit,
    compare_amounts,
    compare_dated_shares,
)
from recollect.audits.common.group_ranks import rank_within_groups
from recollect.streams import stream

DRAWS = 21
"""How often a unit that has more than most controls is cut; its p-value is twice the median of so many, at most 1."""
_TRIES = 8
"""Random choices of records of which the one whose tokens fit best is taken."""
_WINDOWS = 5
"""Choices of records that are neighbours by length, from the shortest to the longest ones."""
_MAX_RANKED = 1 << 19
"""So many pieces are ranked in all draws at once, each in 13 orders: about 50 MB. Of more, the latest draw is kept."""
_HALF = TOLERANCE**0.5
"""Everybody is brought within this factor of a stratum's tokens, and so within the tolerance of each other."""
_NEVER = 100.0
_STRETCHES = 4
"""Up to so many periods of the audited are matched one by one."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Cut:
    """One seeded cut of all units of a stratum: how much of every record is kept."""

    audited: Ints
    """Tokens kept of each piece of `Matching.audited`; 0 where it is left out, or where its unit is not in here."""
    controls: Ints
    """The same of each piece of `Matching.controls`."""
    usable: Ints
    """The indices of the controls that could be brought to the amount; of all others nothing is kept."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Stratum:
    """Audited units of one amount."""

    members: Ints
    """The indices of the audited units."""
    own_controls: Ints
    """Indices of controls that no other stratum has: for tests of all strata together."""
    counts: tuple[int, ...] | None
    """How many records of each period everybody in it is cut to; None where nothing is cut."""
    tokens: float | None
    """About how many tokens they have; None where nothing is cut."""
    draws: int
    """How many cuts there are: `DRAWS` where audited units lose records by it, else 1."""

    @property
    def records(self) -> int | None:
        """How many records everybody in it is cut to; None where nothing is cut."""
        return None if self.counts is None else sum(self.counts)


@dataclass(frozen=True, kw_only=True, eq=False)
class Matching:
    """Who is compared with whom, and with how much of whose records."""

    audited: Amounts
    controls: Amounts
    difference: AmountDifference
    """In what the two sides differ before anything is cut."""
    equal: bool
    """Whether both sides have alike as groups: then tests of the whole group need no cut."""
    strata: tuple[Stratum, ...]
    """Every audited unit that has comparable controls is in one of them."""
    unmatched: Ints
    """The indices of audited units that no control can be compared with."""
    cutter: MatchingCutter

    def cut(self, stratum: Stratum, draw: int = 0) -> Cut:
        """A cut of a stratum: the same for the same seed."""
        if stratum.counts is not None and stratum.tokens is not None:
            return self.cutter.cut(stratum.members, stratum.counts, stratum.tokens, draw)
        kept = np.where(np.isin(self.audited.unit_of, stratum.members), self.audited.tokens, 0)
        return Cut(audited=kept, controls=self.controls.tokens, usable=np.arange(len(self.controls)))


def match_units(
    audited: Sequence[Unit], controls: Sequence[Unit], *, seed: int, alpha: float = 0.05, truncate: bool = True
) -> Matching:
    """The matching: who is compared with whom.

    Nothing is cut where the audited, as a group, have as many records, tokens per record and the same dates as the
    controls (no test objects at α), except for single units that have less than nearly all controls, or are outside
    their range. All others are matched: to controls of at least as many records, cut to as many, whose tokens are
    brought within 10 % by choosing records that fit and, for models that read from left to right, by truncating longer
    ones. A unit that has more than half of the controls have is cut to that, `DRAWS` times. Where dates differ, as many
    records of each period are taken; if the audited wrote in more than four periods, periods are joined to four
    intervals of time in which they wrote alike. Where mostly one side lacks dates, they are not matched: an unknown
    period is not another one.

    Args:
        audited: The audited units.
        controls: The controls.
        seed: Of the run.
        alpha: The significance level at which amounts count as different.
        truncate: Whether records may be truncated: the scores of a prefix must be the first rows of the whole.
    """
    periods = sorted({p.period for unit in (*audited, *controls) for p in unit.pieces if p.period is not None})
    ours, theirs = Amounts.of(audited, periods), Amounts.of(controls, periods)
    return match_amounts(ours, theirs, seed=seed, alpha=alpha, truncate=truncate)


def match_amounts(ours: Amounts, theirs: Amounts, *, seed: int, alpha: float = 0.05, truncate: bool = True) -> Matching:
    """The matching of units whose amounts are given in columns; see `match_units`.

    Args:
        ours: The amounts of the audited units; periods are indices into the same periods as those of the controls.
        theirs: The amounts of the controls.
        seed: Of the run.
        alpha: The significance level at which amounts count as different.
        truncate: Whether records may be truncated.
    """
    periods = np.unique(np.concatenate([side.period[side.period >= 0] for side in (ours, theirs)]))
    if len(periods) and not compare_dated_shares(ours.dated_shares, theirs.dated_shares):
        periods = periods[:0]
    ours, theirs = (replace(side, period=_number_periods(side.period, periods)) for side in (ours, theirs))
    difference = compare_amounts(ours, theirs, periods=len(periods))
    equal = difference.is_equal(alpha)
    odd = difference.atypical | difference.untimely
    plain = ~odd if equal else np.zeros(len(ours), dtype=np.bool_)
    timed = difference.untimely if difference.is_timely(alpha) else np.ones(len(ours), dtype=np.bool_)
    cutter = MatchingCutter(
        audited=ours,
        controls=theirs,
        timed=timed & (len(periods) > 1),
        stretches=_join_periods(ours, theirs),
        seed=seed,
        truncate=truncate,
    )
    strata = [_build_uncut_stratum(np.flatnonzero(plain))] if plain.any() and len(theirs) else []
    strata, usable = cutter.build_strata(np.flatnonzero(~plain), strata)
    matched = np.concatenate([np.zeros(0, dtype=np.int64), *(stratum.members for stratum in strata)])
    return Matching(
        audited=ours,
        controls=theirs,
        difference=difference,
        equal=equal,
        strata=tuple(_divide_controls_among_strata(strata, usable, seed)),
        unmatched=np.setdiff1d(np.arange(len(ours)), matched),
        cutter=cutter,
    )


def _number_periods(period: Ints, periods: Ints) -> Ints:
    """Each period of a matching as an index into these, −1 where it is unknown or there are none."""
    if not len(periods):
        return np.full_like(period, -1)
    return np.where(period < 0, -1, np.searchsorted(periods, period)).astype(np.int64)


def combine_draws(p: Floats) -> Floats:
    """One p-value of several cuts of the same matched unit: twice the median, at most 1 (DiCiccio et al. 2020).

    Valid whatever the dependence between the cuts. With a single cut it is that cut's p-value.

    >>> combine_draws(np.array([[0.01, 0.5], [0.02, 0.9], [0.03, 0.7]])).tolist()
    [0.04, 1.0]

    Args:
        p: The p-values [cuts, units].
    """
    return np.asarray(p[0] if len(p) == 1 else np.minimum(1.0, 2 * np.median(p, axis=0)))


def _build_uncut_stratum(members: Ints) -> Stratum:
    """The stratum of a matching whose units are all compared as they are."""
    nobody = np.zeros(0, dtype=np.int64)
    return Stratum(members=members, own_controls=nobody, counts=None, tokens=None, draws=1)


def _divide_controls_among_strata(strata: Sequence[Stratum], usable: Bools, seed: int) -> list[Stratum]:
    """The strata of a matching with controls of their own: each control goes to one that can use it, at random.

    A stratum's chance is its number of audited units, so that no stratum of many is left with few controls.

    Args:
        strata: The strata.
        usable: Which control each of them can use [controls, strata].
        seed: Of the run.
    """
    weight = usable * np.array([len(stratum.members) for stratum in strata], dtype=np.float64)
    share = np.cumsum(weight, axis=1) / np.maximum(weight.sum(axis=1, keepdims=True), 1)
    drawn = stream(seed, *labels.STREAM_MATCHING_STRATA).random((len(weight), 1))
    chosen = np.where(usable.any(axis=1), (share <= drawn).sum(axis=1), -1)
    return [replace(stratum, own_controls=np.flatnonzero(chosen == i)) for i, stratum in enumerate(strata)]


@dataclass(frozen=True, kw_only=True, eq=False)
class MatchingCutter:
    """Brings units to common amounts."""

    audited: Amounts
    controls: Amounts
    timed: Bools
    """Which audited units are matched by period."""
    stretches: dict[str, Ints]
    """The stretch of time in which each piece was written, by side: periods, joined where they are many."""
    seed: int
    truncate: bool
    """Whether records may be truncated."""
    _ranks: dict[tuple[str, int, bool], Ints] = field(default_factory=dict, repr=False)
    _windows: dict[tuple[str, bool], Ints] = field(default_factory=dict, repr=False)
    _counts: dict[str, Ints] = field(default_factory=dict, repr=False)
    _first: dict[tuple[str, tuple[int, ...], float], tuple[Ints, Bools]] = field(default_factory=dict, repr=False)
    """How each side is cut the first time, which is asked for again and again."""

    def build_strata(self, members: Ints, before: list[Stratum]) -> tuple[list[Stratum], Bools]:
        """Some strata and those of these audited units; and who can use which control [controls, strata].

        Units without any usable control are in no stratum.
        """
        strata, usable = list(before), [np.ones(len(self.controls), dtype=np.bool_) for _ in before]
        levels = self._choose_levels(members) if len(members) and len(self.controls) else []
        for counts, tokens in sorted(set(levels)):
            chosen = members[[level == (counts, tokens) for level in levels]]
            fits = np.isin(np.arange(len(self.controls)), self.cut(chosen, counts, tokens, 0).usable)
            if fits.any():
                draws = DRAWS if (self.audited.counts[chosen] > sum(counts)).any() else 1
                nobody = np.zeros(0, dtype=np.int64)
                strata.append(Stratum(members=chosen, own_controls=nobody, counts=counts, tokens=tokens, draws=draws))
                usable.append(fits)
        return strata, np.stack(usable, axis=1) if usable else np.zeros((len(self.controls), 0), dtype=np.bool_)

    def cut(self, members: Ints, counts: tuple[int, ...], tokens: float, draw: int) -> Cut:
        """Audited units and all controls that can be brought to an amount."""
        wanted = np.zeros(len(self.audited), dtype=np.bool_)
        wanted[members] = True
        audited, _ = self._get_side_cut("audited", counts, tokens, draw)
        controls, fits = self._get_side_cut("controls", counts, tokens, draw)
        return Cut(
            audited=np.where(wanted[self.audited.unit_of], audited, 0),
            controls=np.where(fits[self.controls.unit_of], controls, 0),
            usable=np.flatnonzero(fits),
        )

    def _choose_levels(self, members: Ints) -> list[tuple[tuple[int, ...], float]]:
        """The amount that each audited unit is compared at: its own, or that which half of the controls have."""
        levels = dict[int, tuple[tuple[int, ...], float]]()
        for timed in (False, True):
            chosen = members[self.timed[members] == timed]
            if not len(chosen):
                continue
            ours = self._count("audited", timed=timed)[chosen]
            usual = np.maximum(1, _find_upper_median(self._count("controls", timed=timed)))
            counts = np.minimum(ours, usual).astype(np.int64)
            records = counts.sum(axis=1)
            totals = self.audited.totals[chosen] * records / ours.sum(axis=1)
            if self.truncate:
                tokens = records * _find_upper_median(self.controls.totals / self.controls.counts)
                totals = np.where(totals > tokens * TOLERANCE, tokens, totals)
            # everybody in a bin is brought to its middle, so that no two totals differ by more than the tolerance
            bins = np.rint(np.log(np.maximum(totals, 1)) / np.log(TOLERANCE))
            levels |= {
                int(unit): (tuple(row.tolist()), float(TOLERANCE**place))
                for unit, row, place in zip(chosen, counts, bins, strict=True)
            }
        return [levels[int(unit)] for unit in members]

    def _count(self, name: str, *, timed: bool) -> Ints:
        """How many records each unit has in each stretch of time; one column where that does not matter."""
        side = self._get_side(name)
        if not timed:
            return side.counts[:, None]
        if name not in self._counts:
            width = 1 + max(int(each.max(initial=0)) for each in self.stretches.values())
            cells = np.bincount(side.unit_of * width + self.stretches[name], minlength=len(side) * width)
            self._counts[name] = cells.reshape(len(side), width).astype(np.int64)
        return self._counts[name]

    def _get_side(self, name: str) -> Amounts:
        """The audited or the controls."""
        return self.audited if name == "audited" else self.controls

    def _get_side_cut(self, name: str, counts: tuple[int, ...], tokens: float, draw: int) -> tuple[Ints, Bools]:
        """A cut of one side; the first is kept."""
        if draw:
            return self._cut_side(name, counts, tokens, draw)
        key = (name, counts, tokens)
        if key not in self._first:
            self._first[key] = self._cut_side(name, counts, tokens, draw)
        return self._first[key]

    def _cut_side(self, name: str, counts: tuple[int, ...], tokens: float, draw: int) -> tuple[Ints, Bools]:
        """How much of each piece is kept, and which units come within 10 % of the amount."""
        side, timed = self._get_side(name), len(counts) > 1
        enough: Bools = np.all(self._count(name, timed=timed) >= np.array(counts), axis=1)
        limits = np.array(counts)[self.stretches[name]] if timed else np.int64(counts[0])
        picked = self._get_ranks(name, draw, timed=timed) < limits
        totals = np.maximum(np.add.reduceat(side.tokens * picked, side.starts, axis=1), 1)
        off = np.abs(np.log(totals / tokens))
        short = self.truncate & (totals * _HALF < tokens)
        off = np.where(short, off + _NEVER, off)  # what is too long can be truncated, what is too short cannot
        # random choices come first, and one that fits is not given up for one that fits better
        fitting = off <= np.log(_HALF)
        choice = np.where(fitting.any(axis=0), fitting.argmax(axis=0), off.argmin(axis=0))
        chosen = picked[choice[side.unit_of], np.arange(len(side.tokens))] & enough[side.unit_of]
        total = side.sum_by_unit(side.tokens * chosen)
        long = total > tokens * _HALF
        fits = enough & (total * _HALF >= tokens) & (self.truncate | ~long)
        scale = np.where(long & self.truncate, tokens / np.maximum(total, 1), 1.0)[side.unit_of]
        kept = np.where(chosen, np.maximum(1, np.rint(side.tokens * scale)), 0)
        return kept.astype(np.int64), fits

    def _get_ranks(self, name: str, draw: int, *, timed: bool) -> Ints:
        """Orders of each unit's pieces (in each stretch) [orders, pieces]: at random, then around certain lengths."""
        side, key = self._get_side(name), (name, draw, timed)
        if key not in self._ranks:
            for other in [other for other in self._ranks if other[0] == name and other[1] > 0]:
                if len(self._ranks) * len(side.tokens) > _MAX_RANKED:
                    del self._ranks[other]  # the first draw, which most strata use, is kept
            rng = stream(self.seed, *labels.STREAM_MATCHING_CUT, name, draw)
            groups = (self.stretches[name], side.unit_of) if timed else (side.unit_of,)
            orders = np.stack([rng.random(len(side.tokens)) for _ in range(_TRIES)])
            several = (side.counts > 1).any()
            ranks = rank_within_groups(groups, orders if several else orders[:1], distinct=True)
            windows = self._rank_by_length(name, groups, timed=timed) if several else ranks[:0]
            self._ranks[key] = np.concatenate([ranks, windows])
        return self._ranks[key]

    def _rank_by_length(self, name: str, groups: tuple[Ints, ...], *, timed: bool) -> Ints:
        """Orders of each unit's pieces around certain lengths, which are the same in every draw [windows, pieces]."""
        side, key = self._get_side(name), (name, timed)
        if key not in self._windows:
            length = rank_within_groups((side.unit_of,), side.tokens) / np.maximum(1, side.counts - 1)[side.unit_of]
            orders = [np.abs(length - place) for place in np.linspace(0, 1, _WINDOWS)]
            self._windows[key] = rank_within_groups(groups, np.stack(orders))
        return self._windows[key]


def _join_periods(audited: Amounts, controls: Amounts) -> dict[str, Ints]:
    """For a matching: the stretch of time of each piece, periods of the audited joined to four where they are many.

    Stretch 0 is unknown, stretch 1 is when none of the audited wrote.
    """
    known = np.sort(audited.period[audited.period >= 0])
    periods = np.unique(known)
    if len(periods) > _STRETCHES:
        ends = np.unique(known[[len(known) * i // _STRETCHES for i in range(1, _STRETCHES)]])
        joined = np.searchsorted(ends, periods, side="left")
    else:
        joined = np.arange(len(periods))
    found = {}
    for name, side in (("audited", audited), ("controls", controls)):
        if len(periods):
            place = np.clip(np.searchsorted(periods, side.period), 0, len(periods) - 1)
            if len(periods) > _STRETCHES:
                inside = (side.period >= periods[0]) & (side.period <= periods[-1])
            else:
                inside = periods[place] == side.period
            found[name] = np.where(side.period < 0, 0, np.where(inside, 2 + joined[place], 1)).astype(np.int64)
        else:
            found[name] = np.zeros(len(side.period), dtype=np.int64)
    return found


def _find_upper_median(values: Ints | Floats) -> Floats:
    """What at least half of the matched units reach, in each column.

    >>> _find_upper_median(np.array([1, 2, 3, 4])).tolist()
    3.0
    """
    ordered = np.sort(values, axis=0)
    return np.asarray(ordered[len(ordered) // 2], dtype=np.float64)
