"""The likelihood of membership: what is learned from calibration models alone."""

from __future__ import annotations

import numpy as np
import pytest

from recollect.audits.removal.confidence_scores import CalibrationScores
from recollect.audits.removal.member_likelihood import fit_member_likelihood
from recollect.testing.refusals import refused


def calibration(rng, *, gain, count=4000):
    """Members have a gain over their difficulty, non-members none."""
    difficulty = rng.normal(0, 2, count)
    member = np.arange(count) % 2 == 0
    return CalibrationScores(
        confidence=difficulty + np.where(member, gain, 0.0) + rng.normal(0, 1, count),
        difficulty=difficulty,
        member=member,
    )


def test_the_regression_finds_the_likelihood_ratio():
    # of two normals with the same variance: log ratio = gain · (confidence − difficulty) − gain² / 2
    fitted = fit_member_likelihood(calibration(np.random.default_rng(0), gain=1.5), saturates=False)
    assert fitted.confidence == pytest.approx(1.5, abs=0.2)
    assert fitted.difficulty == pytest.approx(-1.5, abs=0.2)
    assert fitted.intercept == pytest.approx(-(1.5**2) / 2, abs=0.2)


def test_what_no_model_memorises_is_worth_nothing():
    rng = np.random.default_rng(1)
    fitted = fit_member_likelihood(calibration(rng, gain=0.0), saturates=False)
    found = fitted.compute_probability(rng.normal(0, 2, 100), rng.normal(0, 2, 100))
    assert found == pytest.approx(np.full(100, 0.5), abs=0.15)


def test_a_classifier_that_is_certain_is_no_evidence():
    fitted = fit_member_likelihood(calibration(np.random.default_rng(2), gain=3.0), saturates=True)
    found = fitted.compute_probability(np.array([5.0, 50.0]), np.array([0.0, 0.0]))
    assert found[0] == found[1]
    assert found[0] > fitted.compute_probability(np.array([-5.0]), np.array([0.0]))[0]


def test_perfectly_separated_members_give_finite_coefficients():
    fitted = fit_member_likelihood(calibration(np.random.default_rng(3), gain=50.0), saturates=False)
    assert np.isfinite([fitted.intercept, fitted.confidence, fitted.difficulty]).all()


@pytest.mark.parametrize("member", [True, False])
def test_calibration_models_of_all_or_no_controls_are_refused(member):
    scores = np.arange(4.0)
    with refused("calibration_models_all_alike"):
        fit_member_likelihood(
            CalibrationScores(confidence=scores, difficulty=scores, member=np.full(4, member)), saturates=False
        )
