"""The share still in: a mixture of two means, its interval and both tests."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from recollect.audits.removal.mixture import STILL_THERE_SHARE, Mixture
from recollect.audits.removal.mixture_means import MixtureMean, compare_mixture_means
from recollect.errors import NotEnoughData
from recollect.stats.significance import binomial_p

MEMBERS, NON_MEMBERS = (6, 2), (2, 6)
"""Of beta distributions of member probabilities: they overlap, as with mild memorisation."""


def draw(rng, *, share, audited=40, controls=80, models=8):
    """A world in which this share of the audited is in."""
    inside = round(share * audited)
    ours = np.concatenate([rng.beta(*MEMBERS, inside), rng.beta(*NON_MEMBERS, audited - inside)])
    theirs = rng.beta(*NON_MEMBERS, controls)
    trained = rng.beta(*MEMBERS, (models, controls // 2))
    one, other = MixtureMean.of(ours), MixtureMean.of(theirs)
    members = MixtureMean.of(trained.ravel()[:controls], models=tuple(trained.mean(axis=1)))
    return Mixture(audited=one, unseen=other, members=members, p_above=compare_mixture_means(one, other))


def simulate(share, worlds=200, **sizes):
    rng = np.random.default_rng([round(100 * share), worlds])
    return [draw(rng, share=share, **sizes) for _ in range(worlds)]


@pytest.mark.parametrize("sizes", [{}, {"audited": 10}, {"audited": 100, "controls": 40}])
def test_the_interval_covers_a_share_of_zero_as_often_as_it_claims(sizes):
    covered = [0.0 in world.estimate_share(0.95).interval for world in simulate(0.0, **sizes)]
    assert binomial_p(len(covered) - sum(covered), len(covered), 0.05) >= 0.001


@pytest.mark.parametrize("share", [0.25, 0.5, 1.0])
def test_the_interval_covers_other_shares_as_often_as_it_claims(share):
    covered = [share in world.estimate_share(0.95).interval for world in simulate(share)]
    assert binomial_p(len(covered) - sum(covered), len(covered), 0.05) >= 0.001


@pytest.mark.parametrize("audited", [10, 20, 50])
def test_the_interval_covers_half_in_where_most_scores_are_the_same(audited):
    """As with easy images: members have 1, and so have four in five of the others; a set may show no variance."""
    rng, covered = np.random.default_rng(audited), 0
    for _ in range(200):
        ours = np.concatenate([np.ones(audited // 2), rng.random(audited - audited // 2) < 0.8])
        one, other = MixtureMean.of(ours.astype(float)), MixtureMean.of((rng.random(60) < 0.8).astype(float))
        members = MixtureMean.of(np.ones(60), models=tuple(1 - 0.01 * rng.random(8)))
        p_value = compare_mixture_means(one, other)
        mixture = Mixture(audited=one, unseen=other, members=members, p_above=p_value)
        covered += not mixture.identifiable or 0.5 in mixture.estimate_share(0.95).interval
    assert binomial_p(200 - covered, 200, 0.05) >= 0.001


@pytest.mark.parametrize("share", [0.0, 0.5, 1.0])
def test_the_interval_covers_the_share_in_a_target_that_memorises_a_fifth_less(share):
    """As in the demo, whose target is trained on more records than calibration models: all in, and 58 to 92 % told."""
    covered, ruled_out = 0, 0
    for world in simulate(share, 200, audited=200, controls=500):
        weaker = world.audited.value - 0.2 * share * world.gap
        found = replace(world, audited=replace(world.audited, value=weaker))
        covered += share in found.estimate_share(0.95).interval
        ruled_out += share == 1.0 and found.p_all_in <= 0.05
    assert binomial_p(200 - covered, 200, 0.05) >= 0.001
    assert binomial_p(ruled_out, 200, 0.05) >= 0.001


def test_a_set_of_which_nothing_is_in_is_still_told_from_one_that_is_all_in():
    worlds = simulate(0.0, 20, audited=200, controls=500)
    assert all(world.p_all_in <= 0.001 for world in worlds)
    assert all(world.bound_share(0.05) < 0.2 for world in worlds)


@pytest.mark.parametrize("audited", [5, 20, 100])
def test_a_set_of_which_nothing_is_in_is_called_still_there_as_rarely_as_stated(audited):
    alarms = sum(world.p_above <= 0.05 for world in simulate(0.0, audited=audited))
    assert binomial_p(alarms, 200, 0.05) >= 0.001


def test_a_set_of_which_half_is_in_is_called_gone_as_rarely_as_stated():
    wrong = sum(world.excludes_share(0.5, 0.05) for world in simulate(0.5))
    assert binomial_p(wrong, 200, 0.05) >= 0.001


def test_sets_that_are_all_in_or_all_out_are_told_as_often_as_the_power_says():
    inside, outside = simulate(1.0, 100, audited=10), simulate(0.0, 100, audited=10)
    found = np.mean([world.p_above <= 0.05 for world in inside])
    gone = np.mean([world.excludes_share(0.5, 0.05) for world in outside])
    power = np.mean([world.compute_power() for world in outside], axis=0)
    assert found > 0.9
    assert power == pytest.approx([found, gone], abs=0.15)


def test_the_share_lies_where_the_mean_lies_between_the_others():
    found = simulate(0.25, 1, audited=4000, controls=4000)[0].estimate_share(0.95)
    assert found.value == pytest.approx(0.25, abs=0.03)
    assert found.interval.high - found.interval.low < 0.15


def test_zero_is_left_in_the_interval_where_the_test_does_not_rule_it_out():
    world = simulate(1.0, 1)[0]
    assert world.estimate_share(0.95).interval.low > 0
    assert replace(world, p_above=0.03).estimate_share(0.95).interval.low == 0


def test_models_that_differ_widen_the_interval():
    rng = np.random.default_rng(0)
    values = rng.random(50)
    alone, several = MixtureMean.of(values), MixtureMean.of(values, models=(0.3, 0.7, 0.5))
    assert several.compute_margin(0.025) > 2 * alone.compute_margin(0.025)


def test_weights_count_as_fewer_records():
    weights = np.array([0.5, 0.5, 0.0, 0.0])
    assert MixtureMean.of(np.arange(4.0), weights).size == pytest.approx(2)
    assert MixtureMean.of(np.arange(4.0), weights).value == pytest.approx(0.5)


def test_members_that_look_like_non_members_give_no_share():
    world = simulate(0.5, 1)[0]
    with pytest.raises(NotEnoughData):
        replace(world, members=world.unseen).estimate_share(0.95)
    assert replace(world, members=world.unseen).find_sufficient_size() is None


def test_more_records_make_the_bound_tighter():
    small, large = simulate(0.0, 1, audited=10)[0], simulate(0.0, 1, audited=400)[0]
    assert large.bound_share(0.05) < small.bound_share(0.05)
    assert large.find_detectable_share() < small.find_detectable_share()


def test_where_the_correction_is_in_doubt_the_interval_allows_for_both():
    world = simulate(0.5, 1)[0]
    doubtful = replace(world, unseen_alternatives=(replace(world.unseen, value=world.unseen.value + 0.1),))
    one, other = (each.estimate_share(0.95).interval for each in (world, doubtful))
    assert other.low < one.low
    assert other.high == one.high


@pytest.mark.parametrize(("value", "told"), [(1 + 1e-15, 1.0), (1.2, 1.0), (-0.2, 0.0), (0.5, 0.5)])
def test_a_mean_that_rounding_or_a_correction_moved_beyond_a_probability_is_told_as_one(value, told):
    found = MixtureMean(value=value, variance=0.0, size=40.0).estimate(0.95, of="records")
    assert found.value == told
    assert (found.interval.low, found.interval.high) == (told, told)


@pytest.mark.parametrize(
    ("size", "controls", "unseen", "members"), [(100, 100, (1, 6), (6, 1)), (20, 100, (2, 4), (4, 2))]
)
def test_the_smallest_detectable_share_is_found_in_four_of_five_sets(size, controls, unseen, members):
    ours, theirs = stats.beta(*members), stats.beta(*unseen)
    mixture = Mixture(
        audited=MixtureMean(value=theirs.mean(), variance=theirs.var(), size=size),
        unseen=MixtureMean(value=theirs.mean(), variance=theirs.var(), size=controls),
        members=MixtureMean(value=ours.mean(), variance=ours.var(), size=controls),
        p_above=0.5,
    )
    inside = math.ceil(mixture.find_detectable_share() * size)
    rng, runs, missed = np.random.default_rng(0), 200, 0
    for _ in range(runs):
        still, rest = rng.beta(*members, inside), rng.beta(*unseen, size - inside + controls)
        values = np.concatenate([still, rest])
        drawn = rng.permuted(np.tile(values, (199, 1)), axis=1)[:, :size].sum(axis=1)
        p = (1 + np.count_nonzero(drawn >= values[:size].sum())) / 200
        missed += p > STILL_THERE_SHARE * mixture.alpha
    assert binomial_p(missed, runs, 0.2) > 0.001, missed / runs
