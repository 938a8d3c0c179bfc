"""Matching: equal designs stay as they are, all others are compared at the same amount."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from recollect.audits.common import matching as matching_module
from recollect.audits.common.amounts import TOLERANCE, Piece, Unit
from recollect.audits.common.group_ranks import rank_within_groups
from recollect.audits.common.matching import (
    DRAWS,
    Matching,
    combine_draws,
    match_amounts,
    match_units,
)
from recollect.stats.significance import binomial_p, conformal_p, superuniformity_p


def build_units(name, k, records, *, seed=0, mean=12.0, period=lambda i, j: None):
    rng = np.random.default_rng(seed)
    units = []
    for i in range(k):
        pieces = [
            Piece(record=f"{name}{i}-{j}", tokens=int(rng.geometric(1 / mean)), period=period(i, j))
            for j in range(records if isinstance(records, int) else int(rng.integers(*records)))
        ]
        units.append(Unit(name=f"{name}{i}", pieces=tuple(pieces)))
    return units


def total_tokens(side, kept):
    return np.bincount(side.unit_of, weights=kept, minlength=len(side))


def count_records(side, kept):
    return np.bincount(side.unit_of, weights=kept > 0, minlength=len(side))


def iter_cuts(matching: Matching):
    for stratum in matching.strata:
        for draw in range(stratum.draws):
            yield stratum, matching.cut(stratum, draw)


@pytest.mark.parametrize("records", [1, 30, (5, 60)])
def test_equal_designs_are_not_cut(records):
    matching = match_units(build_units("a", 40, records), build_units("c", 160, records, seed=1), seed=0)
    uncut = [stratum for stratum in matching.strata if stratum.records is None]
    assert matching.equal
    assert len(uncut) == 1
    assert len(uncut[0].members) >= 39
    cut = matching.cut(uncut[0])
    assert (cut.controls == matching.controls.tokens).all()
    assert cut.usable.tolist() == list(range(160))


@pytest.mark.parametrize("truncate", [True, False])
@pytest.mark.parametrize(("ours", "theirs"), [(1, 30), (5, 30), (30, 5), (30, (2, 15))])
def test_everybody_in_a_stratum_has_as_many_records_and_tokens_within_ten_percent(ours, theirs, truncate):
    matching = match_units(build_units("a", 12, ours), build_units("c", 80, theirs, seed=1), seed=0, truncate=truncate)
    assert not matching.equal
    assert matching.strata
    for stratum, cut in iter_cuts(matching):
        assert set(count_records(matching.controls, cut.controls)[cut.usable]) <= {stratum.records}
        assert set(count_records(matching.audited, cut.audited)[stratum.members]) == {stratum.records}
        tokens = total_tokens(matching.controls, cut.controls)[cut.usable]
        # a record cannot have half a token: truncation may miss by one of each
        slack = stratum.records / 2 if truncate else 0
        assert (tokens <= stratum.tokens * TOLERANCE**0.5 + slack).all()
        assert (tokens >= stratum.tokens / TOLERANCE**0.5 - slack).all()
        assert (cut.controls <= matching.controls.tokens).all()
        assert truncate or set(cut.controls[cut.controls > 0] - matching.controls.tokens[cut.controls > 0]) <= {0}


def test_who_has_less_is_whole_and_who_has_more_is_cut_many_times_to_what_half_of_the_controls_have():
    controls = build_units("c", 81, (2, 15), seed=1)
    half = sorted(len(unit.pieces) for unit in controls)[40]
    less = match_units(build_units("a", 3, 1), controls, seed=0)
    assert {(s.records, s.draws) for s in less.strata} == {(1, 1)}
    more = match_units(build_units("a", 3, 30), controls, seed=0)
    assert {(s.records, s.draws) for s in more.strata} == {(half, DRAWS)}
    chosen = {tuple(np.flatnonzero(cut.audited)) for _, cut in iter_cuts(more)}
    assert len(chosen) > DRAWS / 2


def test_one_unit_that_has_less_than_all_controls_is_matched_while_the_others_stay():
    audited = [*build_units("a", 30, 30), *build_units("z", 1, 2)]
    matching = match_units(audited, build_units("c", 120, 30, seed=1), seed=0)
    assert matching.equal
    assert [(s.records, len(s.members)) for s in matching.strata] == [(None, 30), (2, 1)]
    assert matching.audited.units[matching.strata[1].members[0]] == "z0"


def test_a_unit_that_no_control_can_be_compared_with_is_named():
    long = Unit(name="a", pieces=(Piece(record="a-0", tokens=5000),))
    controls = build_units("c", 40, 3)
    assert match_units([long], controls, seed=0, truncate=False).unmatched.tolist() == [0]
    assert not len(match_units([long], controls, seed=0).unmatched)
    assert match_units([long], [], seed=0).unmatched.tolist() == [0]


def test_the_controls_of_all_strata_together_are_different_ones():
    matching = match_units(build_units("a", 40, (1, 9)), build_units("c", 200, 30, seed=1), seed=0)
    owned = np.concatenate([stratum.own_controls for stratum in matching.strata])
    assert len(matching.strata) > 5
    assert len(owned) == len(set(owned.tolist())) == 200


def test_units_are_compared_at_the_same_periods():
    january = build_units("a", 10, 4, period=lambda i, j: "2024-01")
    both = build_units("c", 60, 12, seed=1, period=lambda i, j: f"2024-0{1 + j % 3}")
    matching = match_units(january, both, seed=0)
    periods = {piece.record: piece.period for unit in both for piece in unit.pieces}
    assert not matching.equal
    for _, cut in iter_cuts(matching):
        kept = Counter(periods[matching.controls.pieces[i]] for i in np.flatnonzero(cut.controls))
        assert set(kept) == {"2024-01"}
    march = build_units("c", 60, 12, seed=1, period=lambda i, j: "2024-03")
    assert len(match_units(january, march, seed=0).unmatched) == 10
    alike = match_units(build_units("a", 10, 12, seed=2, period=lambda i, j: f"2024-0{1 + j % 3}"), both, seed=0)
    assert alike.equal


def list_kept(matching, cut):
    """Everything that a cut keeps: unit, record and how many of its tokens, the audited first."""
    sides = (matching.audited, cut.audited), (matching.controls, cut.controls)
    return [
        (side.units[side.unit_of[i]], side.pieces[i], int(kept[i]))
        for side, kept in sides
        for i in np.flatnonzero(kept)
    ]


def test_the_order_of_units_and_records_does_not_matter_and_the_seed_does():
    audited, controls = build_units("a", 10, 2), build_units("c", 40, 9, seed=1)
    turned = [Unit(name=unit.name, pieces=unit.pieces[::-1]) for unit in controls[::-1]]
    kept = [
        [list_kept(m, cut) for _, cut in iter_cuts(m)]
        for m in (match_units(audited[::-1], turned, seed=0), *(match_units(audited, controls, seed=s) for s in (0, 1)))
    ]
    assert kept[0] == kept[1] != kept[2]


def draw_scores(rng, *sides):
    """The sum of the first n tokens of each record, by side: persons differ, and later tokens score lower."""
    found = []
    for side in sides:
        longest = int(side.tokens.max())
        tokens = 3 / np.arange(1, longest + 1) ** 0.5 + rng.standard_t(3, (len(side.tokens), longest))
        found.append(np.cumsum(tokens + rng.normal(0, 0.5, len(side))[side.unit_of][:, None], axis=1))
    return found


def score_units(side, kept, sums):
    """The mean over records of the mean over tokens: who has less scatters more."""
    each = np.where(kept > 0, sums[np.arange(len(kept)), kept - 1] / np.maximum(kept, 1), 0)
    return np.bincount(side.unit_of, weights=each, minlength=len(side)) / np.maximum(1, count_records(side, kept))


def judge(matching, sums):
    """The p-value of the only audited unit, matched and as it is."""
    (stratum,) = matching.strata
    found = []
    for cut in (matching.cut(stratum, draw) for draw in range(stratum.draws)):
        mine = score_units(matching.audited, cut.audited, sums[0])
        found.append(conformal_p(mine, score_units(matching.controls, cut.controls, sums[1])[cut.usable]))
    whole = [
        score_units(s, s.tokens, each) for s, each in zip((matching.audited, matching.controls), sums, strict=True)
    ]
    return float(combine_draws(np.array(found))[0]), float(conformal_p(*whole)[0])


@pytest.mark.parametrize(
    ("ours", "theirs", "mean"),
    [
        (1, 15, 12),
        (1, 1, 4),
        (6, 6, 30),
        *(pytest.param(*each, 12, marks=pytest.mark.slow) for each in ((5, 20), (20, 5), (6, 6))),
    ],
)
def test_the_p_value_of_a_single_unit_holds_in_unequal_designs(ours, theirs, mean):
    found = []
    for seed in range(50):
        audited = build_units("a", 1, ours, seed=10_000 + seed, mean=mean)
        matching = match_units(audited, build_units("c", 39, theirs, seed=20_000 + seed), seed=seed)
        sums = draw_scores(np.random.default_rng(30_000 + seed), matching.audited, matching.controls)
        found.append(judge(matching, sums))
    matched, plain = (np.array(each) for each in zip(*found, strict=True))
    assert superuniformity_p(matched) > 0.01
    if (ours, mean) == (1, 12):
        assert binomial_p(int((plain <= 0.05).sum()), len(plain), 0.05) < 0.001


@pytest.mark.parametrize("levels", [3, 40_000])
def test_ranks_within_groups_are_those_of_a_plain_sort(levels):
    rng = np.random.default_rng(levels)
    groups = (rng.integers(0, 4, 500), rng.integers(0, levels, 500))
    order = rng.integers(0, 20, 500) / 20
    found = rank_within_groups(groups, order)
    for i in range(500):
        same = [j for j in range(500) if all(group[j] == group[i] for group in groups)]
        assert found[i] == sorted(same, key=lambda j: (order[j], j)).index(i)


def test_ranks_within_groups_of_equal_size_are_those_of_a_plain_sort():
    rng = np.random.default_rng(0)
    group, order = np.repeat(np.array([0, 2, 3, 7]), 25), rng.integers(0, 10, 100) / 10
    shuffled = rng.permutation(100)
    for groups, values in (((group,), order), ((group[shuffled],), order[shuffled]), ((group[:-1],), order[:-1])):
        found = rank_within_groups(groups, values)
        for i in range(len(values)):
            same = [j for j in range(len(values)) if groups[0][j] == groups[0][i]]
            assert found[i] == sorted(same, key=lambda j: (values[j], j)).index(i)


@pytest.mark.parametrize("group", [np.repeat(np.arange(20), 30), np.random.default_rng(1).integers(0, 20, 600)])
def test_ranks_of_distinct_values_do_not_depend_on_how_they_are_sorted(group):
    order = np.random.default_rng(2).random((8, 600))
    assert np.array_equal(rank_within_groups((group,), order, distinct=True), rank_within_groups((group,), order))


@pytest.mark.parametrize("truncate", [True, False])
def test_the_first_choice_of_records_that_fits_is_taken_else_the_one_that_fits_best(truncate):
    matching = match_units(build_units("a", 3, 4), build_units("c", 40, 9, seed=1), seed=0, truncate=truncate)
    cutter, side, tokens = matching.cutter, matching.controls, 40.0
    kept, fits = cutter._cut_side("controls", (4,), tokens, 1)
    half, ranks = TOLERANCE**0.5, cutter._get_ranks("controls", 1, timed=False)
    for unit in range(len(side)):
        pieces = np.flatnonzero(side.unit_of == unit)
        best, miss = None, np.inf
        for rank in ranks:
            chosen = pieces[rank[pieces] < 4]
            total = side.tokens[chosen].sum()
            off = abs(np.log(total / tokens)) + (100 if truncate and total * half < tokens else 0)
            if miss > np.log(half) and off < miss:
                best, miss = chosen, off
        total = side.tokens[best].sum()
        long = total > tokens * half
        assert fits[unit] == (total * half >= tokens and (truncate or not long))
        scale = tokens / total if truncate and long else 1.0
        expected = [max(1, round(side.tokens[i] * scale)) if i in best else 0 for i in pieces]
        assert kept[pieces].tolist() == expected


def test_one_unit_with_ten_times_the_records_of_all_others_is_matched():
    matching = match_units(build_units("a", 1, 30), build_units("c", 20, 3, seed=1), seed=0)
    assert not matching.equal


@pytest.mark.parametrize("undated", ["a", "c"])
def test_units_whose_dates_are_missing_on_one_side_only_are_not_matched_by_period(undated):
    def date(i, j, name):
        return None if name == undated and (i, j) != (0, 0) else f"2026-{1 + (i + j) % 6:02}"

    sides = [
        build_units(name, k, 6, seed=k, period=lambda i, j, n=name: date(i, j, n)) for name, k in (("a", 20), ("c", 60))
    ]
    matching = match_units(sides[0], sides[1], seed=0)
    assert matching.equal
    assert not len(matching.unmatched)


@pytest.mark.parametrize("records", [30, (10, 60)])
def test_cuts_are_the_same_however_many_draws_are_kept_in_memory(records, monkeypatch):
    sides = [
        build_units(name, k, n, seed=k, mean=mean, period=lambda i, j: f"{(i + j) % 3}")
        for name, k, n, mean in (("a", 9, records, 6), ("c", 50, (3, 20), 9))
    ]
    kept = match_units(*sides, seed=0)
    monkeypatch.setattr(matching_module, "_MAX_RANKED", 0)
    anew = match_units(*sides, seed=0)
    assert len(kept.strata) > 1
    assert max(stratum.draws for stratum in kept.strata) == DRAWS
    for (_, one), (_, other) in zip(iter_cuts(kept), iter_cuts(anew), strict=True):
        assert (one.audited == other.audited).all()
        assert (one.controls == other.controls).all()
        assert (one.usable == other.usable).all()


def test_selected_amounts_are_matched_like_the_units_that_have_them():
    units = build_units("c", 60, (3, 20), seed=1, period=lambda i, j: None if j == 5 else f"2024-{1 + (i + j) % 5}")
    whole = match_units(units[:1], units, seed=0).controls
    playing = np.isin(whole.unit_of, np.arange(0, 60, 7))
    shorter = np.where(whole.period % 4 == 0, 0, np.minimum(whole.tokens, 9))
    kept = [np.where(playing, shorter, 0), np.where(playing, 0, whole.tokens)]
    names = {piece.record: piece.period for unit in units for piece in unit.pieces}
    listed = [[], []]
    for side, tokens in zip(listed, kept, strict=True):
        for i in np.unique(whole.unit_of[tokens > 0]):
            pieces = [
                Piece(record=whole.pieces[j], tokens=int(tokens[j]), period=names[whole.pieces[j]])
                for j in np.flatnonzero((whole.unit_of == i) & (tokens > 0))
            ]
            side.append(Unit(name=whole.units[i], pieces=tuple(pieces)))
    slow, fast = match_units(*listed, seed=3), match_amounts(*map(whole.select, kept), seed=3)
    assert slow.difference.p_values == fast.difference.p_values
    assert [(one.counts, one.tokens) for one in slow.strata] == [(one.counts, one.tokens) for one in fast.strata]
    for (_, one), (_, other) in zip(iter_cuts(slow), iter_cuts(fast), strict=True):
        assert (one.audited == other.audited).all()
        assert (one.controls == other.controls).all()
