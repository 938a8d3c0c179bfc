"""The means of which a mixture is made, above all that of non-members like the audited records."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from recollect.audits.common.result_builder import ResultBuilder
from recollect.audits.removal.audit import RemovalAudit
from recollect.audits.removal.mixture import Mixture
from recollect.audits.removal.mixture_means import MixtureMean, compare_mixture_means, correct_by_ratio
from recollect.audits.removal.result import _add_mixture_findings
from recollect.stats.significance import binomial_p


def draw_world(rng, all_pairs, *, audited=200, controls=400, spoilt=0.0):
    """Records around a centre, the harder the farther out; noise in other directions makes spoilt controls harder.

    Returns:
        Member probabilities of the audited and the controls, nothing being in, and the neighbours.
    """
    ours, theirs = (np.pad(rng.normal(size=(size, 12)), ((0, 0), (0, 12))) for size in (audited, controls))
    hard, harder = (np.maximum(0, (side**2).sum(axis=1) / 12 - 0.6) ** 2 for side in (ours, theirs))
    bad = rng.random(controls) < spoilt
    theirs[bad, 12:] = rng.normal(size=(bad.sum(), 12)) * rng.uniform(0.5, 1, (bad.sum(), 1))
    harder[bad] += 0.3
    scores = [1.0 - (rng.random(len(side)) < np.minimum(side, 0.9)) for side in (hard, harder)]
    return *scores, all_pairs(ours, theirs)


def test_the_mean_of_non_members_is_that_of_their_nearest_times_how_much_harder_peers_are(all_pairs):
    _, controls, near = draw_world(np.random.default_rng(0), all_pairs)
    doubt = 1 - controls
    kept = np.flatnonzero(~near.far)
    nearest = np.mean([doubt[i] for row in kept for i in near.audited[row]])
    own = sum(near.peer_weights[i] * doubt[i] for i in range(len(doubt)))
    theirs = sum(near.peer_weights[i] * doubt[near.controls[i]].mean() for i in range(len(doubt)))
    assert correct_by_ratio(controls, near).value == pytest.approx(1 - nearest * own / theirs)


def test_its_margin_holds_the_mean_of_the_audited_as_often_as_it_claims(all_pairs):
    rng, missed = np.random.default_rng(1), 0
    for _ in range(80):
        ours, controls, near = draw_world(rng, all_pairs)
        unseen, mean = correct_by_ratio(controls, near), MixtureMean.of(ours[~near.far])
        both = np.hypot(unseen.compute_margin(0.025), mean.compute_margin(0.025))
        missed += abs(unseen.value - mean.value) > both
    assert binomial_p(missed, 80, 0.05) >= 0.001


def test_spoilt_controls_never_make_it_too_high(all_pairs):
    """Then a set would be cleared for controls that are of another kind; too low, and it is cleared too seldom."""
    rng = np.random.default_rng(2)
    for spoilt in (0.1, 0.5):
        worlds = [draw_world(rng, all_pairs, spoilt=spoilt) for _ in range(30)]
        errors = [correct_by_ratio(controls, near).value - ours[~near.far].mean() for ours, controls, near in worlds]
        assert np.mean(errors) < 2 * np.std(errors) / np.sqrt(len(errors))
        assert np.mean(errors) > np.mean([controls.mean() - ours.mean() for ours, controls, _ in worlds])


def test_controls_that_all_score_alike_have_that_mean_and_no_variance(all_pairs):
    near = draw_world(np.random.default_rng(3), all_pairs)[2]
    found = correct_by_ratio(np.full(400, 0.4), near)
    assert found.value == pytest.approx(0.4)
    assert found.variance == pytest.approx(0)


@pytest.mark.parametrize("controls", [np.ones(400), np.repeat([0.0, 1.0], [5, 395]), np.full(400, 1.2)])
def test_nothing_is_corrected_by_too_few_doubted_controls_or_by_scores_that_are_no_probabilities(controls, all_pairs):
    assert correct_by_ratio(controls, draw_world(np.random.default_rng(3), all_pairs)[2]) is None


def test_it_stays_a_probability_and_rests_on_no_more_controls_than_there_are(all_pairs):
    rng = np.random.default_rng(4)
    for _ in range(50):
        near = draw_world(rng, all_pairs)[2]
        found = correct_by_ratio((rng.random(400) < rng.choice([0.003, 0.01, 0.5, 0.8])).astype(float), near)
        assert found is not None
        assert 0 <= found.value <= 1
        assert 0 < found.size <= 400
        assert np.isfinite([found.value, found.variance, found.compute_margin(0.05)]).all()


def test_equal_means_are_told_from_each_other_by_no_rounding():
    weights = np.bincount(np.random.default_rng(1).integers(0, 1000, 60), minlength=1000) / 60
    sides = MixtureMean.of(np.ones(20)), MixtureMean.of(np.ones(1000), weights)
    assert sides[0].value != sides[1].value or sides[1].value == 1
    assert compare_mixture_means(*sides) == compare_mixture_means(*sides[::-1]) == 0.5


@pytest.mark.parametrize("doubted", [0.01, 0.04, 0.1])
@pytest.mark.parametrize("size", [2, 5, 20, 50])
def test_few_records_of_which_the_target_is_certain_are_accused_as_rarely_as_stated(doubted, size):
    """They have no variance of their own: that of non-members counts, or one in two such sets would be accused."""
    rng, alarms = np.random.default_rng([size, round(1000 * doubted)]), 0
    for _ in range(400):
        ours, theirs = (MixtureMean.of((rng.random(n) >= doubted).astype(float)) for n in (size, 500))
        alarms += compare_mixture_means(ours.with_variance_of(theirs), theirs) <= 0.05
    assert binomial_p(alarms, 400, 0.05) >= 0.001


@pytest.mark.parametrize("records", [20, 100])
def test_a_share_of_one_is_covered_where_a_quarter_of_the_members_scores_as_non_members(records):
    rng, missed, none = np.random.default_rng(records), 0, 0
    for _ in range(300):
        forgotten = rng.random(records) < 0.25
        ours = np.where(forgotten, rng.beta(20, 20, records), rng.beta(18, 2, records))
        one, other = MixtureMean.of(ours), MixtureMean.of(rng.beta(20, 20, 400))
        means = tuple(rng.beta(18, 2, (8, 200)).mean(axis=1))
        members = MixtureMean.of(rng.beta(18, 2, (400, 4)).mean(axis=1), models=means)
        found = Mixture(audited=one, unseen=other, members=members, p_above=compare_mixture_means(one, other))
        missed += 1.0 not in found.estimate_share(0.95).interval
        none += found.p_all_in <= 0.05
    assert binomial_p(missed, 300, 0.05) >= 0.001
    assert binomial_p(none, 300, 0.05) >= 0.001


@pytest.mark.parametrize(("audited", "weaker"), list(product([20, 60, 200], [0.0, 0.25])))
def test_a_set_half_in_is_called_gone_as_rarely_as_stated_where_most_scores_are_the_same(audited, weaker):
    """Members have 1, but for a weaker target's, and so have nine in ten of the others."""
    rng, wrong = np.random.default_rng([audited, round(100 * weaker)]), 0
    for _ in range(400):
        inside = rng.random(audited // 2) >= 0.1 * weaker
        ours = np.concatenate([inside, rng.random(audited - audited // 2) >= 0.1]).astype(float)
        one, other = MixtureMean.of(ours), MixtureMean.of((rng.random(1000) >= 0.1).astype(float))
        members = MixtureMean.of(np.ones(1000), models=tuple(1 - 0.002 * rng.random(8)))
        mixture = Mixture(audited=one, unseen=other, members=members, p_above=compare_mixture_means(one, other))
        wrong += mixture.excludes_share(0.5, 0.05)
    assert binomial_p(wrong, 400, 0.05) >= 0.001


def test_the_p_value_of_gone_is_that_of_the_mixture_that_decides():
    """For records that are harder than their controls that is the mixture of members alone, which rules out less."""
    rng = np.random.default_rng(7)
    one, other, members = (MixtureMean.of(rng.beta(a, b, 80)) for a, b in ((2, 6), (2, 6), (6, 2)))
    by_controls = Mixture(audited=one, unseen=other, members=members, p_above=0.5)
    by_members = Mixture(
        audited=one, unseen=MixtureMean(value=0.0, variance=0.0, size=np.inf), members=members, p_above=1.0
    )
    builder = ResultBuilder(RemovalAudit())
    _add_mixture_findings(builder, by_controls, by_members, unit="record", confidence=0.95)
    told = {finding.name: finding.value for finding in builder.findings}
    assert told["p_gone"] == by_members.p_gone > by_controls.p_gone
    assert told["p_all_in"] == by_members.p_all_in
