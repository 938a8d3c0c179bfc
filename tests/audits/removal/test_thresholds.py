"""Two thresholds: where calibration models separate members best, and a lower one for weakly memorising targets."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as some
from scipy import stats

from recollect.audits.removal.audit import RemovalAudit
from recollect.audits.removal.calibrated import SetEvidence
from recollect.audits.removal.decisions import decide_set, explain_inconclusive, is_weakly_memorised
from recollect.audits.removal.mixture import Mixture
from recollect.audits.removal.neighbours import Neighbours
from recollect.audits.removal.rates import Rate
from recollect.audits.removal.result import build_set_result
from recollect.audits.removal.scores import UnitScores
from recollect.audits.removal.thresholds import (
    EXPECTED_BELOW,
    LOWER_ALPHA_SHARE,
    apply_thresholds,
    build_worst_case,
    choose_lower_threshold,
    choose_threshold,
)
from recollect.signals.scores import Scores
from recollect.stats.significance import binomial_p

AUDIT = RemovalAudit()
CONTROLS, NEIGHBOURS = 1200, 3


def name_scores(values, prefix):
    names = tuple(f"{prefix}{place:05d}" for place in range(len(values)))
    return Scores(names, names, np.asarray(values, dtype=np.float64))


MEMBERS, UNSEEN = {"wrong": 0.0, "low": 0.02}, {"wrong": 0.04, "low": 0.1}
WEAK_MEMBERS, WEAK_UNSEEN = {"wrong": 0.002, "low": 0.12}, {"wrong": 0.04, "low": 0.12}
"""How often models take a record for something else, and how often they have low confidence in it."""


def draw_scores(rng, count, *, wrong, low):
    """Scores of records."""
    kind = rng.choice(3, size=count, p=[wrong, low, 1 - wrong - low])
    return np.choose(kind, [rng.normal(-6, 1, count), rng.normal(2, 1, count), rng.normal(9, 1.5, count)])


def compare(seed, *, size, share, weakly):
    """A set of which a share is in, beside controls like it; a weak target has as low confidence in members."""
    rng = np.random.default_rng(seed)
    members, unseen = (WEAK_MEMBERS, WEAK_UNSEEN) if weakly else (MEMBERS, UNSEEN)
    inside = round(share * size)
    controls = name_scores(draw_scores(rng, CONTROLS, **unseen), "c")
    sides = {}
    for name, rates in (("members", MEMBERS), ("non_members", UNSEEN)):
        shown = controls.records[: CONTROLS // 2]
        models = [tuple(f"m{model}/{control}" for control in shown) for model in range(4)]
        sides[name] = Scores.concatenate(
            [Scores(each, shown, draw_scores(rng, len(shown), **rates)) for each in models]
        )
    audited = np.concatenate([draw_scores(rng, inside, **members), draw_scores(rng, size - inside, **unseen)])
    scores = UnitScores(audited=name_scores(audited, "a"), controls=controls, dropped={}, **sides)
    distances = rng.random(size), rng.random(CONTROLS)
    neighbours = Neighbours(
        audited=rng.integers(0, CONTROLS, (size, NEIGHBOURS)),
        controls=rng.integers(0, CONTROLS, (CONTROLS, NEIGHBOURS)),
        distances=distances,
    )
    rule = {"alpha": AUDIT.level, "tolerance": AUDIT.tolerance}
    found = apply_thresholds(scores, neighbours, **rule)
    return SetEvidence(
        scores=scores,
        neighbours=neighbours,
        mixture=found.mixture,
        lower=found.lower,
        worst_case=build_worst_case(scores, found.threshold, **rule),
        threshold=found.threshold,
        p_below=1.0,
        p_above=1.0,
        level=AUDIT.level,
    )


def count_decisions(worlds, **world):
    return Counter(decide_set(compare(seed, **world)) for seed in range(worlds))


@pytest.mark.parametrize(
    ("size", "worlds"),
    [(800, 20), *(pytest.param(size, 300, marks=pytest.mark.slow) for size in (5, 20, 50, 200, 500, 800))],
)
@pytest.mark.parametrize("weakly", [True, False])
def test_a_set_that_was_never_in_is_flagged_no_more_often_than_stated(size, weakly, worlds):
    decisions = count_decisions(worlds, size=size, share=0.0, weakly=weakly)
    assert binomial_p(decisions["still there"], worlds, 0.05) > 0.001
    assert size < 800 or decisions["gone"] > 0.7 * worlds


def test_a_target_that_memorises_weakly_still_shows_its_members_at_the_lower_threshold():
    decisions = count_decisions(40, size=800, share=1.0, weakly=True)
    assert decisions["still there"] > 36
    assert not decisions["gone"]


def test_a_target_that_memorises_strongly_shows_them_as_ever():
    assert count_decisions(40, size=800, share=1.0, weakly=False)["still there"] == 40


def test_the_lower_threshold_is_reported_where_it_is_the_one_that_counts():
    weak = compare(0, size=800, share=1.0, weakly=True)
    assert weak.mixture is weak.lower
    assert weak.mixture.alpha_share == LOWER_ALPHA_SHARE
    assert weak.low_confidence.sum() == weak.mixture.low_confidence
    assert weak.mixture.likeliest_share > 0.7
    strong = compare(0, size=800, share=0.0, weakly=False)
    assert strong.lower is not None
    assert strong.mixture is not strong.lower
    assert strong.mixture.alpha_share == 1 - LOWER_ALPHA_SHARE


def test_that_two_thresholds_were_tried_is_in_the_method():
    result = build_set_result(AUDIT, compare(0, size=800, share=1.0, weakly=True))
    assert result.finding("p_still_there").method != result.finding("p_all_in").method
    assert "two thresholds" in result.finding("p_still_there").method


def test_a_set_that_looks_gone_but_not_at_the_lower_threshold_is_not_called_so():
    gone = compare(0, size=800, share=0.0, weakly=False)
    assert decide_set(gone) == "gone"
    assert not is_weakly_memorised(gone)
    lower = Mixture(low_confidence=2, size=800, members=Rate(value=0.0, size=600), unseen=Rate(value=0.015, size=600))
    doubted = replace(gone, lower=lower, worst_case=None)
    assert is_weakly_memorised(doubted)
    assert decide_set(doubted) == "inconclusive"
    assert explain_inconclusive(doubted) == "weakly_memorised"
    assert build_set_result(AUDIT, doubted).note_codes == ("unlike_any_control", "weakly_memorised")


def test_a_set_that_does_not_look_gone_is_not_said_to():
    whole = compare(0, size=800, share=1.0, weakly=False)
    assert decide_set(whole) == "still there"
    assert whole.lower.likeliest_share > 0.9
    assert not is_weakly_memorised(whole)


@pytest.mark.parametrize("size", [5, 50, 800])
def test_so_many_records_as_are_needed_are_expected_below_the_lower_threshold(size):
    rng = np.random.default_rng(size)
    controls, weights = np.round(rng.normal(size=400), 2), rng.random(400)
    found = choose_lower_threshold(controls, weights, size)
    share = min(1.0, EXPECTED_BELOW / size)
    below, upto = (weights[flags].sum() / weights.sum() for flags in (controls < found, controls <= found))
    assert below <= share <= upto + 1e-12


def test_a_test_that_spends_a_share_of_alpha_is_corrected_for_it():
    case = Mixture(
        low_confidence=3,
        size=100,
        members=Rate(value=0.01, size=500),
        unseen=Rate(value=0.1, size=500),
        alpha_share=0.2,
    )
    table = [[3, 50], [97, 450]]
    assert case.p_still_there == pytest.approx(5 * stats.fisher_exact(table, alternative="less").pvalue)
    assert (
        Mixture(low_confidence=30, size=100, members=case.members, unseen=case.unseen, alpha_share=0.2).p_still_there
        == 1
    )


def naive_threshold(members, never):
    """The slow twin: every control's score, and one above all."""
    levels = sorted({*never, math.nextafter(max(never), math.inf)})

    def height(level):
        lost = (sum(value < level for value in members) + 1) / (len(members) + 2)
        return 2 * math.asin(math.sqrt(np.mean(np.array(never) < level))) - 2 * math.asin(math.sqrt(lost))

    return max(levels, key=lambda level: (round(height(level), 12), -level))


@settings(deadline=None, max_examples=60)
@given(
    some.lists(some.integers(0, 9), min_size=2, max_size=20), some.lists(some.integers(0, 9), min_size=2, max_size=20)
)
def test_the_threshold_is_where_both_sides_differ_most(members, never):
    found = choose_threshold(np.array(members, dtype=float), np.array(never, dtype=float))
    assert found == naive_threshold(members, never)
