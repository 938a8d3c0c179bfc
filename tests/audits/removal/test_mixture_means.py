"""The means of which a mixture is made, above all that of non-members like the audited records."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from recollect.audits.removal.mixture import Mixture
from recollect.audits.removal.mixture_means import MixtureMean, compare_mixture_means, estimate_unseen
from recollect.audits.removal.neighbours import Neighbours
from recollect.stats.significance import binomial_p


def find_pairs(ours, theirs, count=3, *, itself=False):
    """The nearest of all pairs, and how far they are on average."""
    table = np.linalg.norm(ours[:, None] - theirs[None], axis=2)
    if itself:
        np.fill_diagonal(table, np.inf)
    order = np.argsort(table, axis=1)[:, :count]
    return order, np.take_along_axis(table, order, axis=1).mean(axis=1)


def draw_world(rng, *, audited=200, controls=300, spoilt=0.0):
    """Records around a centre, the harder the farther out; noise in other directions makes spoilt controls harder.

    Returns:
        Member probabilities of the audited and the controls, nothing being in, and the neighbours.
    """
    ours, theirs = (np.pad(rng.normal(size=(size, 12)), ((0, 0), (0, 12))) for size in (audited, controls))
    hard, harder = (0.3 * np.maximum(0, (side**2).sum(axis=1) / 12 - 0.6) ** 2 for side in (ours, theirs))
    bad = rng.random(controls) < spoilt
    theirs[bad, 12:] = rng.normal(size=(bad.sum(), 12)) * rng.uniform(0.5, 1, (bad.sum(), 1))
    harder[bad] += 0.3
    scores = [1.0 - (rng.random(len(side)) < np.minimum(side, 0.9)) for side in (hard, harder)]
    near, distance = find_pairs(ours, theirs)
    among, usual = find_pairs(theirs, theirs, itself=True)
    return *scores, Neighbours(audited=near, controls=among, distances=(distance, usual))


def test_the_mean_of_non_members_is_that_of_their_nearest_times_how_much_harder_peers_are():
    _, controls, near = draw_world(np.random.default_rng(0))
    doubt = 1 - controls
    kept = np.flatnonzero(~near.far)
    nearest = np.mean([doubt[i] for row in kept for i in near.audited[row]])
    own = sum(near.peer_weights[i] * doubt[i] for i in range(len(doubt)))
    theirs = sum(near.peer_weights[i] * doubt[near.controls[i]].mean() for i in range(len(doubt)))
    assert estimate_unseen(controls, near).value == pytest.approx(1 - nearest * own / theirs)
    assert estimate_unseen(controls, None) == MixtureMean.of(controls)


def test_its_margin_holds_the_mean_of_the_audited_as_often_as_it_claims():
    rng, missed = np.random.default_rng(1), 0
    for _ in range(200):
        ours, controls, near = draw_world(rng)
        unseen, mean = estimate_unseen(controls, near), MixtureMean.of(ours[~near.far])
        both = np.hypot(unseen.compute_margin(0.025), mean.compute_margin(0.025))
        missed += abs(unseen.value - mean.value) > both
    assert binomial_p(missed, 200, 0.05) >= 0.001


def test_spoilt_controls_never_make_it_too_high():
    """Then a set would be cleared for controls that are of another kind; too low, and it is cleared too seldom."""
    rng = np.random.default_rng(2)
    for spoilt in (0.1, 0.5):
        worlds = [draw_world(rng, spoilt=spoilt) for _ in range(60)]
        errors = [estimate_unseen(controls, near).value - ours[~near.far].mean() for ours, controls, near in worlds]
        assert np.mean(errors) < 2 * np.std(errors) / np.sqrt(len(errors))
        assert np.mean(errors) > np.mean([controls.mean() - ours.mean() for ours, controls, _ in worlds])


@pytest.mark.parametrize("controls", [np.ones(300), np.full(300, 0.4), np.zeros(300)])
def test_controls_that_all_score_alike_have_that_mean_and_no_variance(controls):
    near = draw_world(np.random.default_rng(3))[2]
    found = estimate_unseen(controls, near)
    assert found.value == pytest.approx(controls[0])
    assert found.variance == pytest.approx(0)
    assert np.isfinite(found.size)


def test_it_stays_a_probability_where_the_target_doubts_nearly_everything():
    rng = np.random.default_rng(4)
    for _ in range(50):
        near = draw_world(rng)[2]
        controls = (rng.random(300) < rng.choice([0.003, 0.01, 0.5, 0.99])).astype(float)
        found = estimate_unseen(controls, near)
        assert 0 <= found.value <= 1
        assert np.isfinite([found.value, found.variance, found.size, found.compute_margin(0.05)]).all()


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
