"""The statistics of `calibrated`: error rates, intervals and power hold what they claim."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as some
from scipy import special, stats

from recollect.audits.removal.calibrated import Case
from recollect.audits.removal.judging import unexplained
from recollect.audits.removal.near import neighbours, smallest
from recollect.audits.removal.rates import PEERS, Near, Rate, another, line, never_seen
from recollect.corpora.record import Record
from recollect.errors import NotEnoughData
from recollect.stats.significance import binomial_p

SURE, UNSURE = 0.002, 0.09
"""How often models are unsure of members and of records never seen, as on MNIST."""


def drawn(rng, *, size, share, controls=600, members=1000, unsure=UNSURE, firmly=1.0):
    """A case in which this share of the set is still in, and held less firmly than by calibration models."""
    inside = round(share * size)
    held = firmly * SURE + (1 - firmly) * unsure
    hits = rng.binomial(inside, held) + rng.binomial(size - inside, unsure)
    return Case(
        unsure=int(hits),
        size=size,
        members=Rate(value=rng.binomial(members, SURE) / members, size=members),
        never=Rate(value=rng.binomial(controls, unsure) / controls, size=controls),
    )


def wrong(cases, verdict):
    """Whether so many of the cases have a verdict that it cannot be by an error rate of 5 %."""
    found = sum(case.verdict == verdict for case in cases)
    return binomial_p(found, len(cases), 0.05) < 0.001


@pytest.mark.parametrize("unsure", [0.03, UNSURE, 0.5, 0.95])
@pytest.mark.parametrize("size", [5, 20, 50, 200, 2000])
def test_neither_wrong_verdict_comes_more_often_than_stated(size, unsure):
    rng = np.random.default_rng([size, int(100 * unsure)])
    assert not wrong([drawn(rng, size=size, share=0, unsure=unsure) for _ in range(150)], "still there")
    for share in (0.5, 1):
        assert not wrong([drawn(rng, size=size, share=share, unsure=unsure) for _ in range(150)], "gone")


@pytest.mark.parametrize("models", [2, 8])
def test_gone_is_right_where_models_differ_in_how_firmly_they_hold_members(models):
    # some are hardly surer of their members than of others, and the target may be one of those
    rng = np.random.default_rng(models)

    def half_in():
        held = UNSURE * special.expit(rng.normal(0, 1.5, models + 1))
        pooled = [rng.binomial(500, rate) / 500 for rate in held[:-1]]
        hits = rng.binomial(2000, held[-1]) + rng.binomial(2000, UNSURE)
        members = Rate(value=float(np.mean(pooled)), size=1000.0, models=tuple(pooled))
        return Case(unsure=int(hits), size=4000, members=members, never=Rate(value=UNSURE, size=1e9))

    cases = [half_in() for _ in range(300)]
    assert not wrong(cases, "gone")
    assert wrong([replace(case, members=replace(case.members, models=())) for case in cases], "gone")
    # sets are told nevertheless where all models hold members alike
    alike = Rate(value=SURE, size=1000.0, models=(SURE,) * models)
    assert Case(unsure=72, size=800, members=alike, never=Rate(value=UNSURE, size=1000.0)).verdict == "gone"


def test_another_models_share_lies_where_a_normal_one_would():
    low, high = another((0.1, 0.2, 0.3), 0.9)
    scale = [2 * math.asin(math.sqrt(share)) for share in (0.1, 0.2, 0.3)]
    reach = 2.919986 * np.std(scale, ddof=1) * math.sqrt(4 / 3)
    assert high == pytest.approx(math.sin((np.mean(scale) + reach) / 2) ** 2, rel=1e-5)
    assert low == pytest.approx(math.sin((np.mean(scale) - reach) / 2) ** 2, rel=1e-4)
    assert Rate(value=0.2, size=1e6, models=(0.1, 0.2, 0.3)).estimate(0.9).interval.high == high


@pytest.mark.parametrize("size", [200, 2000])
def test_gone_is_right_of_a_target_that_holds_its_members_half_as_firmly(size):
    rng = np.random.default_rng(size)
    assert not wrong([drawn(rng, size=size, share=1, firmly=0.5) for _ in range(200)], "gone")
    # and not of one that hardly holds them: what the docs warn of is so
    assert wrong([drawn(rng, size=2000, share=1, firmly=0.1) for _ in range(50)], "gone")


@pytest.mark.parametrize("share", [0, 0.25, 0.5, 0.75, 1])
@pytest.mark.parametrize("size", [40, 200, 2000])
def test_the_share_still_in_lies_within_its_interval(size, share):
    rng = np.random.default_rng([size, int(100 * share)])
    missed = 0
    for _ in range(50):
        found = drawn(rng, size=size, share=share).share_in(0.95)
        missed += share not in found.interval
    assert binomial_p(missed, 50, 0.05) >= 0.001


def test_where_no_share_fits_none_is_left():
    rates = {"members": Rate(value=0.002, size=1000), "never": Rate(value=0.1, size=600)}
    beyond, between = (Case(unsure=unsure, size=200, **rates) for unsure in (90, 10))
    assert beyond.shares_left(0.95) == []
    assert beyond.share_in(0.95).interval.low == beyond.share_in(0.95).value == 0
    left = between.shares_left(0.95)
    interval = between.share_in(0.95).interval
    assert (min(left), max(left)) == (interval.low, interval.high)
    assert [note.code for note in unexplained(beyond, 0.95)] == ["no_share_fits"]
    assert unexplained(between, 0.95) == unexplained(None, 0.95) == []


def test_large_sets_are_told_either_way():
    rng = np.random.default_rng(1)
    assert all(drawn(rng, size=2000, share=1).verdict == "still there" for _ in range(50))
    assert sum(drawn(rng, size=2000, share=0).verdict == "gone" for _ in range(50)) >= 45
    assert all(drawn(rng, size=2000, share=0.75).verdict == "still there" for _ in range(50))


@settings(deadline=None, max_examples=60)
@given(some.integers(1, 12), some.data())
def test_the_tests_are_fishers(size, data):
    unsure = data.draw(some.integers(0, size))
    pool, hits = 30, data.draw(some.integers(1, 29))
    lost = data.draw(some.integers(0, hits - 1))
    case = Case(
        unsure=unsure, size=size, members=Rate(value=lost / pool, size=pool), never=Rate(value=hits / pool, size=pool)
    )
    table = [[unsure, size - unsure], [hits, pool - hits]]
    assert case.p_still == pytest.approx(stats.fisher_exact(table, alternative="less").pvalue)
    table[1] = [lost, pool - lost]
    assert case.p_removed == pytest.approx(stats.fisher_exact(table, alternative="greater").pvalue)


def test_power_is_how_often_a_verdict_comes():
    case = Case(unsure=0, size=60, members=Rate(value=0.01, size=1000), never=Rate(value=0.3, size=500))
    found, cleared = case.power()
    verdicts = [Case(**{**vars(case), "unsure": hits}).verdict for hits in range(61)]
    by_hand = {
        verdict: sum(stats.binom.pmf(hits, 60, rate) for hits, said in enumerate(verdicts) if said == verdict)
        for verdict, rate in (("still there", 0.01), ("gone", 0.3))
    }
    assert found == pytest.approx(by_hand["still there"])
    assert cleared == pytest.approx(by_hand["gone"])


def test_the_curve_of_power_is_that_of_sets_of_each_size_and_of_this_one():
    case = drawn(np.random.default_rng(3), size=137, share=1)
    curve = case.power_curve()
    assert 137 in curve["size"]
    assert curve["size"] == sorted(curve["size"])
    for size, still, gone in zip(*curve.values(), strict=True):
        assert (still, gone) == replace(case, size=int(size), unsure=0).power()
    assert curve["still_there"][0] < 0.5 < curve["still_there"][-1]


def test_so_many_as_would_do_really_do():
    case = Case(unsure=1, size=20, members=Rate(value=0.001, size=1000), never=Rate(value=0.09, size=700))
    assert case.verdict == "cannot tell"
    enough = case.enough()
    assert enough is not None
    assert min(Case(**{**vars(case), "size": enough, "unsure": 0}).power()) >= 0.8
    assert min(Case(**{**vars(case), "size": enough // 2, "unsure": 0}).power()) < 0.8


def test_where_members_look_like_anybody_nothing_is_told():
    case = Case(unsure=3, size=100, members=Rate(value=0.1, size=500), never=Rate(value=0.1, size=500))
    assert (case.verdict, case.power(), case.enough()) == ("cannot tell", (0.0, 0.0), None)
    with pytest.raises(NotEnoughData, match="no surer"):
        case.share_in(0.95)


def test_p_gone_is_the_level_at_which_the_verdict_turns():
    case = Case(unsure=40, size=500, members=Rate(value=0.001, size=1000), never=Rate(value=0.09, size=700))
    p = case.p_gone
    assert 0 < p < 0.05
    assert Case(**{**vars(case), "alpha": p * 1.01}).excludes(0.5)
    assert not Case(**{**vars(case), "alpha": p * 0.99}).excludes(0.5)


def test_a_lower_rate_makes_still_there_harder_to_say_and_the_interval_wider():
    case = Case(unsure=8, size=200, members=Rate(value=0.0, size=1000), never=Rate(value=0.1, size=600))
    careful = Case(**{**vars(case), "least": Rate(value=0.05, size=600)})
    assert careful.p_still > case.p_still
    assert careful.share_in(0.95).interval.low < case.share_in(0.95).interval.low
    assert careful.share_in(0.95).interval.high == case.share_in(0.95).interval.high


def naive_line(members, never):
    """The slow twin: every control's score, and one above all."""
    levels = sorted({*never, math.nextafter(max(never), math.inf)})

    def height(level):
        lost = (sum(value < level for value in members) + 1) / (len(members) + 2)
        return 2 * math.asin(math.sqrt(np.mean(np.array(never) < level))) - 2 * math.asin(math.sqrt(lost))

    return max(levels, key=lambda level: (round(height(level), 12), -level))


@settings(deadline=None, max_examples=60)
@given(
    some.lists(some.integers(0, 9), min_size=2, max_size=20), some.lists(some.integers(0, 9), min_size=2, max_size=20)
)
def test_the_line_is_where_both_sides_differ_most(members, never):
    found = line(np.array(members, dtype=float), np.array(never, dtype=float))
    assert found == naive_line(members, never)


def images(rng, count, *, shift=0.0, name="a", labels=2):
    return [
        Record(id=f"{name}{i:03d}", array=rng.normal(shift, 1, (3, 3)).astype(np.float32), label=i % labels)
        for i in range(count)
    ]


def test_neighbours_are_those_of_all_pairs():
    rng = np.random.default_rng(0)
    audited, controls = images(rng, 12), images(rng, 30, name="c")
    found = neighbours(audited, controls, 3)
    for place, record in enumerate(audited):
        same = [i for i, other in enumerate(controls) if other.label == record.label]
        by_hand = sorted(same, key=lambda i: np.linalg.norm(controls[i].array - record.array))[:3]
        assert found.audited[place].tolist() == by_hand
    for place, record in enumerate(controls):
        same = [i for i, other in enumerate(controls) if other.label == record.label and i != place]
        by_hand = sorted(same, key=lambda i: np.linalg.norm(controls[i].array - record.array))[:3]
        assert found.controls[place].tolist() == by_hand


@settings(deadline=None, max_examples=100)
@given(
    some.integers(1, 3), some.lists(some.lists(some.sampled_from([0, 1, 2, np.inf, np.nan]), min_size=5, max_size=5))
)
def test_the_smallest_are_those_of_a_stable_sort(count, rows):
    table = np.array(rows, dtype=np.float64).reshape(-1, 5)
    assert smallest(table, count).tolist() == np.argsort(table, axis=1, kind="stable")[:, :count].tolist()


def test_sets_of_another_kind_are_noticed_and_alike_ones_hardly_ever():
    rng = np.random.default_rng(0)
    alarms = [neighbours(images(rng, 40), images(rng, 60, name="c"), 3).shifted for _ in range(60)]
    assert binomial_p(sum(alarms), 60, 0.01) >= 0.001
    moved = neighbours(images(rng, 40, shift=4), images(rng, 60, name="c"), 3)
    assert moved.shifted
    assert moved.far.all()


def test_controls_of_another_kind_stand_for_nobody():
    # half of the controls are elsewhere, where the target is unsure of everything
    rng = np.random.default_rng(0)
    controls = [*images(rng, 100, name="c"), *images(rng, 100, shift=6, name="d")]
    unsure = np.array([i % 10 == 0 for i in range(100)] + [True] * 100)
    found = never_seen(unsure, neighbours(images(rng, 50), controls, 3), plain=True)
    assert found.value < 0.3
    assert never_seen(unsure, None).value == 0.55


def test_how_plain_neighbours_are_is_put_right():
    # one easy control is everybody's neighbour; the controls' own neighbours show by how much that misleads
    unsure = np.array([False, True, True, True])
    audited, among = np.array([[0], [0], [0], [1]]), np.array([[1], [0], [0], [0]])
    near = Near(audited=audited, controls=among, distances=(np.zeros(4), np.ones(4)))
    assert never_seen(unsure, near, plain=True).value == 0.25
    assert never_seen(unsure, near).value == 0.25 * 0.75 / 0.25


def test_a_rate_is_worth_as_many_controls_as_it_depends_on():
    # by how much it moves with each control, tried one by one, against the formula
    rng = np.random.default_rng(3)
    near = neighbours(images(rng, 40), images(rng, 150, name="c"), 3)
    unsure = rng.random(150) * 0.5
    step = 1e-6
    moved = [never_seen(unsure + step * np.eye(150)[i], near).value for i in range(150)]
    slope = (np.array(moved) - never_seen(unsure, near).value) / step
    assert never_seen(unsure, near).value > never_seen(unsure, near, plain=True).value
    assert never_seen(unsure, near).size == pytest.approx(1 / np.square(slope).sum(), rel=1e-3)


def test_peers_are_the_controls_as_far_from_other_controls():
    rng = np.random.default_rng(4)
    near = neighbours(images(rng, 7), images(rng, 200, name="c"), 3)
    by_hand = np.zeros(200)
    order = sorted(range(200), key=lambda i: near.distances[1][i])
    kept = near.distances[0][~near.far]
    for far in kept:
        nearer = sum(near.distances[1] < far)
        first = min(max(nearer - PEERS // 2, 0), 200 - PEERS)
        by_hand[order[first : first + PEERS]] += 1 / (PEERS * len(kept))
    assert near.peers == pytest.approx(by_hand)


def spoilt_world(seed, *, size):
    """A set never seen, like the better half of the controls; the others are noisy, and mostly unsure."""
    rng = np.random.default_rng(seed)

    def made(count, noise):
        plain = rng.normal(0, 1, (count, 3)) @ _SHAPES
        # what lies farther out is harder
        unsure = rng.random(count) < (0.6 if noise else 0.02 + 0.03 * np.square(plain).mean(axis=1))
        return plain + rng.normal(0, 2 * noise + 0.1, plain.shape), unsure

    parts = {"a": made(size, 0), "c": made(150, 0), "d": made(150, 1)}
    records = {
        name: [Record(id=f"{name}{i:03d}", array=row.reshape(6, 6), label=0) for i, row in enumerate(rows)]
        for name, (rows, _) in parts.items()
    }
    near = neighbours(records["a"], [*records["c"], *records["d"]], 5)
    return parts["a"][1], np.concatenate([parts["c"][1], parts["d"][1]]), near


_SHAPES = np.random.default_rng(9).normal(0, 1, (3, 36))


@pytest.mark.parametrize("size", [5, 20, 60])
def test_noisy_controls_whose_neighbours_are_clean_ones_accuse_nobody(size):
    members = Rate(value=0.002, size=500.0)
    alarms, rates = 0, []
    for seed in range(120):
        audited, controls, near = spoilt_world(seed, size=size)
        kept = audited[~near.far]
        never = never_seen(controls, near)
        rates.append(never.value - audited.mean())
        alarms += Case(unsure=int(kept.sum()), size=len(kept), members=members, never=never).p_still <= 0.05
    assert binomial_p(alarms, 120, 0.05) >= 0.001
    assert abs(np.mean(rates)) < 0.06
