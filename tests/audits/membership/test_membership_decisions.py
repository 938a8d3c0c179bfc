"""From scores to decisions: thresholds, p-values, outcomes."""

import numpy as np
import pytest

from recollect.audits.membership.decisions import decide, decide_outcome, find_threshold, flag
from recollect.signals.scores import Scores
from recollect.stats import benjamini_hochberg, conformal_p, holm


def scores(values, each=1, name="u"):
    places = range(len(values))
    return Scores(tuple(f"{name}{i}" for i in places), tuple(f"{name}{i // each}" for i in places), np.asarray(values))


def test_the_threshold_is_the_score_that_must_be_exceeded():
    values = np.random.default_rng(0).integers(0, 20, 60) / 4
    controls = scores(values, each=3)
    for rate in (0.1, 0.3, 0.5):
        limit = find_threshold(controls, rate)
        tested = np.linspace(-1, 6, 200)
        assert ((conformal_p(tested, controls) <= rate) == (tested > limit)).all()
        assert (flag(scores(tested), controls, rate) == (tested > limit)).all()


@pytest.mark.parametrize(("each", "chosen"), [(1, "benjamini-hochberg"), (2, "holm")])
def test_p_values_of_one_users_candidates_are_corrected_for_any_dependence(each, chosen):
    rng = np.random.default_rng(1)
    candidates, controls = scores(rng.normal(2, 1, 40), each), scores(rng.normal(0, 1, 99), name="c")
    found = decide(candidates, controls, rates=[0.1, 0.001], correction="auto", alpha=0.05)
    p = conformal_p(candidates.values, controls)
    assert found.correction == chosen
    assert found.corrected.tolist() == (holm(p) if chosen == "holm" else benjamini_hochberg(p)).tolist()
    assert found.identified.tolist() == (found.corrected <= 0.05).tolist()
    assert list(found.flagged) == [0.1]
    assert found.refused[0.001].code == "too_few_controls"


def outcome(decisions, training_p=None, membership_p=None, *, complete=False):
    return decide_outcome(decisions, training_p=training_p, membership_p=membership_p, complete=complete, alpha=0.05)


def against_controls(values, controls=99):
    return decide(scores(values), scores(np.zeros(controls), name="c"), rates=[0.1], correction="auto", alpha=0.05)


NOBODY, SOMEBODY = against_controls(np.full(3, -1.0)), against_controls([9.0])


def test_without_a_single_control_nobody_is_identified_and_nothing_can_be_said():
    found = against_controls([9.0], controls=0)
    assert not found.identified.any()
    assert outcome(found) == "inconclusive"
    assert outcome(None) == "inconclusive"


@pytest.mark.parametrize("decisions", [None, NOBODY, SOMEBODY])
@pytest.mark.parametrize(("p", "expected"), [(0.05, "found"), (0.051, "not_found")])
def test_members_who_are_all_known_decide_by_one_test(p, expected, decisions):
    assert outcome(decisions, 0.001, p, complete=True) == expected


@pytest.mark.parametrize(("group", "expected"), [(0.02, "found"), (0.03, "not_found"), (None, "not_found")])
def test_unknown_members_are_two_tests_and_pay_for_both(group, expected):
    assert outcome(NOBODY, group) == expected


@pytest.mark.parametrize(("known", "expected"), [(0.016, "found"), (0.02, "not_found")])
def test_partly_known_members_are_a_third_test(known, expected):
    assert outcome(NOBODY, 0.9, known) == expected


def test_one_candidate_far_above_all_controls_is_enough_unless_the_truth_says_otherwise():
    assert outcome(SOMEBODY, 0.9) == outcome(SOMEBODY, 0.9, 0.9) == "found"
    assert outcome(SOMEBODY, 0.9, 0.9, complete=True) == "not_found"
