"""Models that saw none of the candidates, and one that saw half: every signal keeps its error rate, and finds."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pytest

from recollect.audits.membership.audit import MembershipAudit
from recollect.audits.rounds import collect_evidence
from recollect.signals.registry import SIGNALS
from recollect.stats.significance import binomial_p, superuniformity_p
from recollect.streams import stream
from recollect.testing.world import World

pytestmark = pytest.mark.xdist_group("membership null")  # one process: what a fake has answered is remembered there
FEW = ["loss", "lowercase", "confidence"]
"""The plainest, one that asks about records of its own making, and one of labels; for all others see the slow test.

That no signal tells members apart for a target that saw nobody, every signal's contract says."""
SEEDS, FEW_SEEDS = 30, 8
BOUNDS = ("epsilon_from_counts", "epsilon_from_one_run")


def kind_of(name: str):
    return SIGNALS.load(name).kinds[0]


def judge(name, world, target, *, truth):
    audit = MembershipAudit(signal=name, fpr=(0.1,), by="user", shadows=4)
    given = world.build_given(target)
    given = replace(given, seed=world.seed, cohorts=given.cohorts if truth else {})
    return audit.run(
        collect_evidence(audit, given, score=world.score, train=world.train), stream(world.seed, "membership")
    )


def alarms(name, seeds, first=1000):
    """How often a model that saw nobody is accused, in each way."""
    counts, p = Counter[str](), []
    for seed in range(seeds):
        world = World(kind=kind_of(name), members=20, others=20, controls=30, seed=first + seed)
        known, blind = (judge(name, world, world.build_null(), truth=truth) for truth in (True, False))
        counts["found, truth known"] += known.outcome == "found"
        counts["found, truth unknown"] += blind.outcome == "found"
        findings = {finding.name: finding for finding in known.findings}
        if "auc" in findings:
            low, high = findings["auc"].interval
            counts["AUC interval misses 0.5"] += not low <= 0.5 <= high
            counts.update(bound for bound in BOUNDS if findings[bound].value > 0)
        counts["not comparable"] += blind.outcome_code == "not_comparable"
        if blind.outcome_code is None:
            p += [blind.tables_in_memory["candidates"].to_pylist()[0]["p_value"]]
    return counts, p


def check(name, seeds):
    counts, p = alarms(name, seeds)
    for way, count in counts.items():
        assert binomial_p(count, seeds, 0.05) > 0.001, (name, way, count)
    assert superuniformity_p(p) > 0.001


@pytest.mark.parametrize("name", FEW)
def test_a_model_trained_on_nobody_is_seldom_flagged(name):
    check(name, FEW_SEEDS)


@pytest.mark.slow
@pytest.mark.parametrize("name", SIGNALS.table)
def test_a_model_trained_on_nobody_is_flagged_no_more_often_than_stated(name):
    check(name, SEEDS)


@pytest.mark.parametrize("name", SIGNALS.table)
def test_what_was_learnt_by_heart_is_found_by_every_signal(name):
    world = World(kind=kind_of(name), members=20, others=20, controls=30, seed=1)
    known, blind = (judge(name, world, world.build_memoriser(), truth=truth) for truth in (True, False))
    assert known.finding("auc").value > 0.9
    assert (known.outcome, blind.outcome) == ("found", "found")
    assert all(known.finding(bound).value > 0 for bound in BOUNDS)
