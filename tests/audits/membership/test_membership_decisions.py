"""From p-values to decisions: thresholds, corrections, one test of all candidates, outcomes that agree."""

import numpy as np
import pytest

from recollect.audits.membership.decisions import (
    combine_with_group,
    decide,
    decide_outcome,
    find_threshold,
    flag_at_rate,
    identify_candidates,
)
from recollect.signals.scores import Scores
from recollect.stats import benjamini_hochberg, conformal_p, holm, mann_whitney
from recollect.stats.significance import binomial_p


def scores(values, each=1, name="u"):
    places = range(len(values))
    return Scores(tuple(f"{name}{i}" for i in places), tuple(f"{name}{i // each}" for i in places), np.asarray(values))


def judge(candidates, controls, *, rates=(0.1,), correction="auto"):
    p = conformal_p(candidates.values, controls)
    return decide(p, candidates.users, controls=len(set(controls.users)), rates=list(rates), correction=correction)


def combine(candidates, controls, *, seed=0):
    """The p-value of all candidates together, and what is decided about each."""
    found = judge(candidates, controls)
    group = mann_whitney(candidates.average_by_user(), controls.average_by_user()).p
    return combine_with_group(candidates, controls, found, group, rng=np.random.default_rng(seed)), found, group


def test_the_threshold_is_the_score_that_must_be_exceeded():
    values = np.random.default_rng(0).integers(0, 20, 60) / 4
    controls = scores(values, each=3)
    for rate in (0.1, 0.3, 0.5):
        limit = find_threshold(controls, rate)
        tested = np.linspace(-1, 6, 200)
        assert ((conformal_p(tested, controls) <= rate) == (tested > limit)).all()
        assert (flag_at_rate(scores(tested), controls, rate) == (tested > limit)).all()


@pytest.mark.parametrize(("each", "chosen"), [(1, "benjamini-hochberg"), (2, "holm")])
def test_p_values_of_one_users_candidates_are_corrected_for_any_dependence(each, chosen):
    rng = np.random.default_rng(1)
    candidates, controls = scores(rng.normal(2, 1, 40), each), scores(rng.normal(0, 1, 99), name="c")
    found = judge(candidates, controls, rates=(0.1, 0.001))
    p = conformal_p(candidates.values, controls)
    assert found.correction == chosen
    assert found.corrected.tolist() == (holm(p) if chosen == "holm" else benjamini_hochberg(p)).tolist()
    assert list(found.flagged) == [0.1]
    assert found.refused[0.001].code == "too_few_controls"


def test_the_combined_p_value_lies_between_the_smaller_one_and_twice_it():
    rng = np.random.default_rng(2)
    for each in (1, 3):
        for _ in range(8):
            candidates, controls = scores(rng.normal(0.3, 1, 30), each), scores(rng.normal(0, 1, 60), each, name="c")
            p, found, group = combine(candidates, controls)
            smaller = min(found.smallest, group)
            assert smaller * 0.8 - 0.005 <= p <= 2 * smaller * 1.2 + 0.005


def draw_world(rng, design):
    """Scores of candidates and controls that are exchangeable, one per record."""
    k, m, each, kind = design
    person = rng.standard_t(2, k + m) if kind == "heavy" else rng.normal(0, 1, k + m)
    values = np.repeat(person, each) + rng.normal(0, 1, (k + m) * each)
    values = np.round(values) if kind == "ties" else values
    return scores(values[: k * each], each), scores(values[k * each :], each, name="c")


DESIGNS = [(40, 160, 1, "normal"), (40, 100, 1, "heavy"), (30, 60, 1, "ties")]


@pytest.mark.parametrize(
    "design", [(20, 40, 2, "normal"), *(pytest.param(each, marks=pytest.mark.slow) for each in DESIGNS)], ids=str
)
def test_the_whole_level_is_used_and_no_more(design):
    rng, runs, found, named = np.random.default_rng(3), 150, 0, 0
    for i in range(runs):
        candidates, controls = draw_world(rng, design)
        p, decisions, _ = combine(candidates, controls, seed=i)
        found += p <= 0.2
        named += identify_candidates(decisions, p, alpha=0.2)[1].any()
    assert binomial_p(found, runs, 0.2) > 0.001
    assert binomial_p(named, runs, 0.2) > 0.001
    # Holm over the two tests would find 0.1 to 0.15
    assert found / runs > (0.1 if design[3] == "ties" else 0.13)


def test_whoever_is_identified_is_found_and_the_told_p_values_say_so():
    rng = np.random.default_rng(4)
    for _ in range(15):
        candidates = scores(np.concatenate([rng.normal(4, 1, 2), rng.normal(-1, 1, 18)]))
        p, found, _ = combine(candidates, scores(rng.normal(0, 1, 80), name="c"))
        told, identified = identify_candidates(found, p, alpha=0.05)
        assert identified.tolist() == (told <= 0.05).tolist()
        assert not identified.any() or p <= 0.05
        assert (told >= found.corrected).all()


def outcome(any_p=None, membership_p=None, *, complete=False):
    decisions = judge(scores([9.0]), scores(np.zeros(99), name="c"))
    return decide_outcome(decisions, any_p=any_p, membership_p=membership_p, complete=complete, alpha=0.05)


def test_without_any_test_nothing_can_be_said():
    assert outcome() == ("inconclusive", None)
    assert decide_outcome(None, any_p=None, membership_p=None, complete=False, alpha=0.05) == ("inconclusive", None)


@pytest.mark.parametrize(("p", "expected"), [(0.05, "found"), (0.051, "not_found")])
def test_members_who_are_all_known_decide_by_one_test(p, expected):
    assert outcome(0.001, p, complete=True) == (expected, p)
    assert decide_outcome(None, any_p=None, membership_p=p, complete=True, alpha=0.05) == (expected, p)


@pytest.mark.parametrize(("group", "expected"), [(0.05, "found"), (0.051, "not_found")])
def test_unknown_members_are_one_test(group, expected):
    assert outcome(group) == (expected, group)


@pytest.mark.parametrize(("known", "expected"), [(0.025, "found"), (0.026, "not_found")])
def test_partly_known_members_are_a_second_test(known, expected):
    assert outcome(0.9, known)[0] == expected
