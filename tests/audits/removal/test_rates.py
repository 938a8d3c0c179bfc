"""Rates of low confidence: of another model, of unseen records, and what they are worth."""

from __future__ import annotations

import math

import numpy as np
import pytest

from recollect.audits.removal.mixture import Mixture
from recollect.audits.removal.neighbours import Neighbours, find_neighbours
from recollect.audits.removal.rates import Rate, estimate_unseen_rate, measure_member_rate, predict_another_model
from recollect.audits.removal.scores import UnitScores
from recollect.corpora.record import Record
from recollect.signals.scores import Scores
from recollect.stats.significance import binomial_p


def test_another_models_share_lies_where_a_normal_one_would():
    low, high = predict_another_model((0.1, 0.2, 0.3), 0.9)
    scale = [2 * math.asin(math.sqrt(share)) for share in (0.1, 0.2, 0.3)]
    reach = 2.919986 * np.std(scale, ddof=1) * math.sqrt(4 / 3)
    assert high == pytest.approx(math.sin((np.mean(scale) + reach) / 2) ** 2, rel=1e-5)
    assert low == pytest.approx(math.sin((np.mean(scale) - reach) / 2) ** 2, rel=1e-4)
    assert Rate(value=0.2, size=1e6, models=(0.1, 0.2, 0.3)).estimate(0.9).interval.high == high


def test_the_rate_of_members_is_measured_for_each_model():
    names = ("m0/a", "m0/b", "m1/a", "m1/c")
    members = Scores(names, tuple(name[3:] for name in names), np.array([0.0, 2.0, 2.0, 2.0]))
    nobody = Scores((), (), np.empty(0))
    scores = UnitScores(audited=nobody, controls=nobody, members=members, non_members=nobody, dropped={})
    rate = measure_member_rate(scores, 1.0)
    assert (rate.value, rate.size, rate.models) == (0.25, 3, (0.5, 0.0))


def test_controls_of_another_kind_stand_for_nobody(images):
    # half of the controls are elsewhere, where the target has low confidence in everything
    rng = np.random.default_rng(0)
    controls = [*images(rng, 100, name="c"), *images(rng, 100, shift=6, name="d")]
    low = np.array([i % 10 == 0 for i in range(100)] + [True] * 100)
    found = estimate_unseen_rate(low, find_neighbours(images(rng, 50), controls, 3), corrected=False)
    assert found.value < 0.3
    assert estimate_unseen_rate(low, None).value == 0.55


def test_no_rate_is_above_one_by_rounding():
    # 9, 11, 20 … equal weights add up to more than 1 in floating point
    for count in range(3, 60):
        places = np.arange(count)[:, None]
        near = Neighbours(audited=places, controls=places, distances=(np.zeros(count), np.ones(count)))
        found = estimate_unseen_rate(np.ones(count, dtype=bool), near)
        assert found.value <= 1
        mixture = Mixture(low_confidence=1, size=9, members=Rate(value=0.0, size=99), unseen=found)
        assert np.isfinite(mixture.compute_power()).all()


def test_easier_neighbours_are_corrected_for():
    # one easy control is everybody's neighbour; the controls' own neighbours show by how much that biases the rate
    low = np.array([False, True, True, True])
    audited, among = np.array([[0], [0], [0], [1]]), np.array([[1], [0], [0], [0]])
    near = Neighbours(audited=audited, controls=among, distances=(np.zeros(4), np.ones(4)))
    assert estimate_unseen_rate(low, near, corrected=False).value == 0.25
    assert estimate_unseen_rate(low, near).value == 0.25 * 0.75 / 0.25


def test_a_rate_is_worth_as_many_controls_as_it_depends_on(images):
    # by how much it moves with each control, tried one by one, against the formula
    rng = np.random.default_rng(3)
    near = find_neighbours(images(rng, 40), images(rng, 150, name="c"), 3)
    low = rng.random(150) * 0.5
    step = 1e-6
    moved = [estimate_unseen_rate(low + step * np.eye(150)[i], near).value for i in range(150)]
    slope = (np.array(moved) - estimate_unseen_rate(low, near).value) / step
    assert estimate_unseen_rate(low, near).value > estimate_unseen_rate(low, near, corrected=False).value
    assert estimate_unseen_rate(low, near).size == pytest.approx(1 / np.square(slope).sum(), rel=1e-3)


def spoilt_world(seed, *, size):
    """A set never seen, like the better half of the controls; the others are noisy, and mostly of low confidence."""
    rng = np.random.default_rng(seed)

    def made(count, noise):
        plain = rng.normal(0, 1, (count, 3)) @ _SHAPES
        # what is farther out is harder
        low = rng.random(count) < (0.6 if noise else 0.02 + 0.03 * np.square(plain).mean(axis=1))
        return plain + rng.normal(0, 2 * noise + 0.1, plain.shape), low

    parts = {"a": made(size, 0), "c": made(150, 0), "d": made(150, 1)}
    records = {
        name: [Record(id=f"{name}{i:03d}", array=row.reshape(6, 6), label=0) for i, row in enumerate(rows)]
        for name, (rows, _) in parts.items()
    }
    near = find_neighbours(records["a"], [*records["c"], *records["d"]], 5)
    return parts["a"][1], np.concatenate([parts["c"][1], parts["d"][1]]), near


_SHAPES = np.random.default_rng(9).normal(0, 1, (3, 36))


@pytest.mark.parametrize("size", [5, 20, 60])
def test_noisy_controls_whose_neighbours_are_clean_ones_accuse_nobody(size):
    members = Rate(value=0.002, size=500.0)
    alarms, rates = 0, []
    for seed in range(120):
        audited, controls, near = spoilt_world(seed, size=size)
        kept = audited[~near.far]
        never = estimate_unseen_rate(controls, near)
        rates.append(never.value - audited.mean())
        alarms += (
            Mixture(low_confidence=int(kept.sum()), size=len(kept), members=members, unseen=never).p_still_there <= 0.05
        )
    assert binomial_p(alarms, 120, 0.05) >= 0.001
    assert abs(np.mean(rates)) < 0.06
