"""The statistics of `calibrated`: error rates, intervals and power hold what they claim."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as some
from scipy import special, stats

from recollect.audits.removal.decisions import decide_mixture, fits_no_share
from recollect.audits.removal.mixture import Mixture
from recollect.audits.removal.rates import Rate
from recollect.stats.significance import binomial_p
from recollect.testing.refusals import refused

LOW_MEMBERS, LOW_UNSEEN = 0.002, 0.09
"""How often models have low confidence in members and in unseen records, as on MNIST."""


def draw_mixture(rng, *, size, share, controls=600, members=1000, unseen=LOW_UNSEEN, strength=1.0):
    """A set of which this share is still in, and memorised less strongly than by calibration models."""
    inside = round(share * size)
    low = strength * LOW_MEMBERS + (1 - strength) * unseen
    hits = rng.binomial(inside, low) + rng.binomial(size - inside, unseen)
    return Mixture(
        low_confidence=int(hits),
        size=size,
        members=Rate(value=rng.binomial(members, LOW_MEMBERS) / members, size=members),
        unseen=Rate(value=rng.binomial(controls, unseen) / controls, size=controls),
    )


def wrong(cases, verdict):
    """Whether so many of the cases have a verdict that it cannot be by an error rate of 5 %."""
    found = sum(decide_mixture(case) == verdict for case in cases)
    return binomial_p(found, len(cases), 0.05) < 0.001


@pytest.mark.parametrize("unseen", [0.03, LOW_UNSEEN, 0.5, 0.95])
@pytest.mark.parametrize("size", [5, 20, 50, 200, 2000])
def test_neither_wrong_verdict_comes_more_often_than_stated(size, unseen):
    rng = np.random.default_rng([size, int(100 * unseen)])
    assert not wrong([draw_mixture(rng, size=size, share=0, unseen=unseen) for _ in range(150)], "still there")
    for share in (0.5, 1):
        assert not wrong([draw_mixture(rng, size=size, share=share, unseen=unseen) for _ in range(150)], "gone")


@pytest.mark.parametrize("models", [2, 8])
def test_gone_is_right_where_models_differ_in_how_strongly_they_memorise(models):
    # some are hardly more confident in their members than in others, and the target may be one of those
    rng = np.random.default_rng(models)

    def half_in():
        held = LOW_UNSEEN * special.expit(rng.normal(0, 1.5, models + 1))
        pooled = [rng.binomial(500, rate) / 500 for rate in held[:-1]]
        hits = rng.binomial(2000, held[-1]) + rng.binomial(2000, LOW_UNSEEN)
        members = Rate(value=float(np.mean(pooled)), size=1000.0, models=tuple(pooled))
        return Mixture(low_confidence=int(hits), size=4000, members=members, unseen=Rate(value=LOW_UNSEEN, size=1e9))

    cases = [half_in() for _ in range(300)]
    assert not wrong(cases, "gone")
    assert wrong([replace(case, members=replace(case.members, models=())) for case in cases], "gone")
    # sets are told nevertheless where all models memorise alike
    alike = Rate(value=LOW_MEMBERS, size=1000.0, models=(LOW_MEMBERS,) * models)
    assert (
        decide_mixture(Mixture(low_confidence=72, size=800, members=alike, unseen=Rate(value=LOW_UNSEEN, size=1000.0)))
        == "gone"
    )


@pytest.mark.parametrize("size", [200, 2000])
def test_gone_is_right_of_a_target_that_memorises_half_as_strongly(size):
    rng = np.random.default_rng(size)
    assert not wrong([draw_mixture(rng, size=size, share=1, strength=0.5) for _ in range(200)], "gone")
    # and not of one that hardly memorises them: what the docs warn of is so
    assert wrong([draw_mixture(rng, size=2000, share=1, strength=0.1) for _ in range(50)], "gone")


@pytest.mark.parametrize("share", [0, 0.25, 0.5, 0.75, 1])
@pytest.mark.parametrize("size", [40, 200, 2000])
def test_the_share_still_in_lies_within_its_interval(size, share):
    rng = np.random.default_rng([size, int(100 * share)])
    missed = 0
    for _ in range(50):
        found = draw_mixture(rng, size=size, share=share).estimate_share(0.95)
        missed += share not in found.interval
    assert binomial_p(missed, 50, 0.05) >= 0.001


def test_where_no_share_fits_none_is_left():
    rates = {"members": Rate(value=0.002, size=1000), "unseen": Rate(value=0.1, size=600)}
    beyond, between = (Mixture(low_confidence=low, size=200, **rates) for low in (90, 10))
    assert beyond.list_compatible_shares(0.95) == []
    assert beyond.estimate_share(0.95).interval.low == beyond.estimate_share(0.95).value == 0
    left = between.list_compatible_shares(0.95)
    interval = between.estimate_share(0.95).interval
    assert (min(left), max(left)) == (interval.low, interval.high)
    assert fits_no_share(beyond, 0.95)
    assert not fits_no_share(between, 0.95)


def test_large_sets_are_reported_either_way():
    rng = np.random.default_rng(1)
    assert all(decide_mixture(draw_mixture(rng, size=2000, share=1)) == "still there" for _ in range(50))
    assert sum(decide_mixture(draw_mixture(rng, size=2000, share=0)) == "gone" for _ in range(50)) >= 45
    assert all(decide_mixture(draw_mixture(rng, size=2000, share=0.75)) == "still there" for _ in range(50))


@settings(deadline=None, max_examples=60)
@given(some.integers(1, 12), some.data())
def test_the_tests_are_fishers(size, data):
    low = data.draw(some.integers(0, size))
    pool, hits = 30, data.draw(some.integers(1, 29))
    lost = data.draw(some.integers(0, hits - 1))
    case = Mixture(
        low_confidence=low,
        size=size,
        members=Rate(value=lost / pool, size=pool),
        unseen=Rate(value=hits / pool, size=pool),
    )
    table = [[low, size - low], [hits, pool - hits]]
    assert case.p_still_there == pytest.approx(stats.fisher_exact(table, alternative="less").pvalue)
    table[1] = [lost, pool - lost]
    assert case.p_all_in == pytest.approx(stats.fisher_exact(table, alternative="greater").pvalue)


def test_power_is_how_often_a_verdict_comes():
    case = Mixture(low_confidence=0, size=60, members=Rate(value=0.01, size=1000), unseen=Rate(value=0.3, size=500))
    found, cleared = case.compute_power()
    verdicts = [decide_mixture(Mixture(**{**vars(case), "low_confidence": hits})) for hits in range(61)]
    by_hand = {
        verdict: sum(stats.binom.pmf(hits, 60, rate) for hits, said in enumerate(verdicts) if said == verdict)
        for verdict, rate in (("still there", 0.01), ("gone", 0.3))
    }
    assert found == pytest.approx(by_hand["still there"])
    assert cleared == pytest.approx(by_hand["gone"])


def test_the_curve_of_power_is_that_of_sets_of_each_size_and_of_this_one():
    case = draw_mixture(np.random.default_rng(3), size=137, share=1)
    curve = case.compute_power_curve()
    assert 137 in curve["size"]
    assert curve["size"] == sorted(curve["size"])
    for size, still, gone in zip(*curve.values(), strict=True):
        assert (still, gone) == replace(case, size=int(size), low_confidence=0).compute_power()
    assert curve["still_there"][0] < 0.5 < curve["still_there"][-1]


def test_so_many_as_would_do_really_do():
    case = Mixture(low_confidence=1, size=20, members=Rate(value=0.001, size=1000), unseen=Rate(value=0.09, size=700))
    assert decide_mixture(case) == "inconclusive"
    enough = case.find_sufficient_size()
    assert enough is not None
    assert min(Mixture(**{**vars(case), "size": enough, "low_confidence": 0}).compute_power()) >= 0.8
    assert min(Mixture(**{**vars(case), "size": enough // 2, "low_confidence": 0}).compute_power()) < 0.8


def test_where_members_look_like_anybody_nothing_is_reported():
    case = Mixture(low_confidence=3, size=100, members=Rate(value=0.1, size=500), unseen=Rate(value=0.1, size=500))
    assert (decide_mixture(case), case.compute_power(), case.find_sufficient_size()) == (
        "inconclusive",
        (0.0, 0.0),
        None,
    )
    with refused("members_indistinguishable"):
        case.estimate_share(0.95)


def test_p_gone_is_the_level_at_which_the_verdict_turns():
    case = Mixture(low_confidence=40, size=500, members=Rate(value=0.001, size=1000), unseen=Rate(value=0.09, size=700))
    p = case.p_gone
    assert 0 < p < 0.05
    assert Mixture(**{**vars(case), "alpha": p * 1.01}).excludes(0.5)
    assert not Mixture(**{**vars(case), "alpha": p * 0.99}).excludes(0.5)


def test_a_lower_rate_makes_still_there_harder_to_say_and_the_interval_wider():
    case = Mixture(low_confidence=8, size=200, members=Rate(value=0.0, size=1000), unseen=Rate(value=0.1, size=600))
    careful = Mixture(**{**vars(case), "unseen_lowest": Rate(value=0.05, size=600)})
    assert careful.p_still_there > case.p_still_there
    assert careful.estimate_share(0.95).interval.low < case.estimate_share(0.95).interval.low
    assert careful.estimate_share(0.95).interval.high == case.estimate_share(0.95).interval.high
