"""Language models from which nothing is to be found: the line is drawn by calibration models, not by what is tested."""

from __future__ import annotations

import numpy as np
import pytest

from recollect.audits.removal.calibrated import STILL_THERE_SHARE, compute_set_p_values
from recollect.audits.removal.confidence_scores import CalibrationScores
from recollect.audits.removal.member_likelihood import fit_member_likelihood
from recollect.signals.scores import Scores
from recollect.stats.significance import binomial_p

MODELS, GAIN = 8, 0.8
"""Calibration models, in pairs of which one is trained on each control; what being trained on adds to confidence."""


def draw_world(seed, audited, controls, *, inside=0):
    """Member probabilities of audited texts, of which the first are in, and of controls."""
    rng = np.random.default_rng([seed, audited, controls])
    difficulty = rng.normal(0, 1.5, audited + controls)
    table = difficulty[:, None] + rng.normal(0, 0.6, (audited + controls, MODELS + 1))
    table[:inside, 0] += GAIN
    ours, theirs = table[:audited], table[audited:]
    first = rng.random((controls, MODELS // 2)) < 0.5
    member = np.stack([first, ~first], axis=2).reshape(controls, MODELS)
    theirs[:, 1:] += GAIN * member
    coins = rng.random((audited, MODELS // 2)) < 0.5
    unseen = np.stack([coins, ~coins], axis=2).reshape(audited, MODELS), ~member
    hard = [average(side[:, 1:], counted) for side, counted in zip((ours, theirs), unseen, strict=True)]
    others = [average(theirs[:, 1:], ~member & (np.arange(MODELS) // 2 != i // 2)) for i in range(MODELS)]
    likelihood = fit_member_likelihood(
        CalibrationScores(
            confidence=theirs[:, 1:].ravel(), difficulty=np.stack(others, axis=1).ravel(), member=member.ravel()
        ),
        saturates=False,
    )
    return [
        name(likelihood.compute_probability(side[:, 0], each), letter)
        for side, each, letter in zip((ours, theirs), hard, "ac", strict=True)
    ]


def average(table, counted):
    return (table * counted).sum(axis=1) / counted.sum(axis=1)


def name(values, letter):
    names = tuple(f"{letter}{i}" for i in range(len(values)))
    return Scores(names, names, values)


def count_found(worlds, audited, controls, *, inside=0):
    p = [
        compute_set_p_values(*draw_world(seed, audited, controls, inside=inside), None, seed=seed)[0]
        for seed in range(worlds)
    ]
    return sum(each / STILL_THERE_SHARE <= 0.05 for each in p)


@pytest.mark.parametrize(
    ("audited", "controls", "worlds"),
    [
        (100, 100, 40),
        pytest.param(100, 400, 400, marks=pytest.mark.slow),
        pytest.param(100, 100, 400, marks=pytest.mark.slow),
        pytest.param(200, 2000, 200, marks=pytest.mark.slow),
    ],
)
def test_texts_that_were_never_in_are_called_still_there_as_rarely_as_stated(audited, controls, worlds):
    assert binomial_p(count_found(worlds, audited, controls), worlds, 0.05) > 0.001


def test_texts_that_are_in_are_called_still_there():
    assert count_found(10, 100, 100, inside=100) == 10
