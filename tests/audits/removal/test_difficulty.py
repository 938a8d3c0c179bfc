"""Difficulty: records that are easier or harder than their nearest controls are noticed, alike ones hardly ever."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from recollect.audits.removal.calibrated import compute_set_p_values
from recollect.audits.removal.difficulty import compare_difficulty
from recollect.signals.scores import Scores
from recollect.stats.significance import binomial_p


def draw(rng, all_pairs, *, chosen="any", audited=60, controls=300):
    """Records with a content, a difficulty that content tells in part, and the target's doubts, which follow it.

    Returns:
        Difficulties of both sides, member probabilities of both sides, nothing being in, and the neighbours.
    """
    content = rng.normal(size=(4 * audited + controls, 6))
    confidence = -content[:, 0] + rng.normal(size=len(content))
    pool, theirs = np.arange(4 * audited), np.arange(4 * audited, len(content))
    order = pool[np.argsort(confidence[pool])]
    ours = {"any": rng.permutation(pool), "easy": order[::-1], "hard": order}[chosen][:audited]
    scores = 1.0 - (rng.random(len(content)) < 1 / (1 + np.exp(1.5 + 1.5 * confidence)))
    found = all_pairs(content[ours], content[theirs])
    return (confidence[ours], confidence[theirs]), (scores[ours], scores[theirs]), found


def name(values, letter):
    names = tuple(f"{letter}{i:04d}" for i in range(len(values)))
    return Scores(names, names, values)


@pytest.mark.parametrize("chosen", ["any", "easy", "hard"])
def test_sets_that_were_never_in_are_accused_as_rarely_as_stated_however_hard_they_are(chosen, all_pairs):
    rng, alarms = np.random.default_rng(len(chosen)), 0
    for _ in range(150):
        difficulty, values, near = draw(rng, all_pairs, chosen=chosen)
        shift = compare_difficulty(near, *difficulty)
        p = compute_set_p_values(name(values[0], "a"), name(values[1], "c"), near, shift, seed=0)
        alarms += p[0] <= 0.04 or p[1] <= 0.01
    assert binomial_p(alarms, 150, 0.05) >= 0.001


def test_easier_and_harder_sets_are_noticed_and_alike_ones_hardly_ever(all_pairs):
    rng = np.random.default_rng(0)
    shifts = {
        chosen: [
            compare_difficulty(near, *both)
            for both, _, near in (draw(rng, all_pairs, chosen=chosen) for _ in range(100))
        ]
        for chosen in ("any", "easy", "hard")
    }
    assert all(shift.easier_than_nearest and shift.easier for shift in shifts["easy"])
    assert all(shift.harder for shift in shifts["hard"])
    assert binomial_p(sum(shift.harder for shift in shifts["any"]), 100, 0.05) >= 0.001
    assert binomial_p(sum(shift.easier for shift in shifts["any"]), 100, 0.05) >= 0.001
    assert binomial_p(sum(shift.easier_than_nearest for shift in shifts["any"]), 100, 0.05) >= 0.001


def test_confidence_without_bounds_counts_by_its_rank(all_pairs):
    difficulty, _, near = draw(np.random.default_rng(0), all_pairs, chosen="hard")
    endless = tuple(np.where(side < -2, -np.inf, side) for side in difficulty)
    assert compare_difficulty(near, *endless).harder


def test_large_sets_are_not_called_over_unlearned_because_few_controls_happen_to_be_doubted(all_pairs):
    """Of sixty controls of which one in a hundred would be doubted, often none is: then they have no variance."""
    rng, alarms = np.random.default_rng(5), 0
    for _ in range(100):
        ours, theirs = rng.normal(size=(400, 4)), rng.normal(size=(60, 4))
        near = all_pairs(ours, theirs)
        shift = compare_difficulty(near, rng.random(400), rng.random(60))
        scores = [name((rng.random(n) >= 0.015).astype(float), letter) for n, letter in ((400, "a"), (60, "c"))]
        alarms += compute_set_p_values(*scores, near, shift, seed=0)[1] <= 0.01
    assert binomial_p(alarms, 100, 0.01) >= 0.001


def test_among_few_controls_of_a_label_nothing_is_accused_where_the_two_sides_differ(all_pairs):
    rng = np.random.default_rng(6)
    difficulty, values, near = draw(rng, all_pairs, chosen="any")
    sides, shift = (name(values[0] * 0 + 1, "a"), name(values[1] * 0.5, "c")), compare_difficulty(near, *difficulty)
    farther = replace(near, distances=(near.distances[0] * 1.3, near.distances[1]))
    assert compute_set_p_values(*sides, farther, replace(shift, p_easier=0.5), seed=0)[0] < 0.01
    assert compute_set_p_values(*sides, replace(farther, candidates=20), shift, seed=0)[0] == 1
