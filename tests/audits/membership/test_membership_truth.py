"""Known members and non-members: partly known, instead of controls, and what is refused without either."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest

from recollect.audits.membership.audit import MembershipAudit
from recollect.audits.rounds import collect_evidence, refuse_missing
from recollect.corpora.members import Members
from recollect.errors import PlanError
from recollect.signals.evidence import AUDITED, CONTROLS, TARGET
from recollect.stats import auc, roc_curve
from recollect.stats.significance import binomial_p, superuniformity_p
from recollect.streams import stream
from recollect.testing.refusals import refused
from recollect.testing.world import World

WORLD = World(members=24, others=24, controls=40, seed=1)
SEEDS = 12
NAMING = {"p_value", "p_corrected", "identified"}


def known(world=WORLD, *, share=1.0, both=True):
    """The truth about some of a world's users."""
    users = sorted({record.owner for record in world.corpora[AUDITED]})
    told = users[: round(share * len(users))] if share < 1 else users
    members = frozenset(user for user in told if user.startswith("member"))
    return Members(unit="user", members=members, non_members=frozenset(told) - members if both else frozenset())


def given(target, world=WORLD, *, controls=False, members=None):
    """A target, its reference, the candidates and who of them is known; controls only if they are requested."""
    whole = world.build_given(target)
    corpora = dict(whole.corpora) if controls else {AUDITED: whole.corpora[AUDITED]}
    return replace(whole, corpora=corpora, cohorts={}, members=members)


def judge(audit, evidence, world=WORLD):
    return audit.run(collect_evidence(audit, evidence, score=world.score, train=world.train), stream(0, audit.name))


def scores(result, *, trained):
    return [row["score"] for row in result.tables_in_memory["candidates"].to_pylist() if row["trained"] is trained]


def test_members_given_say_the_same_as_cohorts():
    audit, cohorts = MembershipAudit(), replace(WORLD.build_given(WORLD.build_memoriser()), members=None)
    one = judge(audit, cohorts)
    other = judge(audit, given(WORLD.build_memoriser(), controls=True, members=known()))
    assert one.model_dump_json() == other.model_dump_json()
    assert one.tables_in_memory["candidates"].equals(other.tables_in_memory["candidates"])


@pytest.mark.parametrize("by", ["record", "user"])
def test_unknown_candidates_are_scored_and_flagged_and_take_no_part_in_the_auc(by):
    truth = Members(
        unit="user", members=frozenset({"member-0", "member-1"}), non_members=frozenset({"other-0", "other-1"})
    )
    result = judge(MembershipAudit(by=by), given(WORLD.build_memoriser(), controls=True, members=truth))
    rows = result.tables_in_memory["candidates"].to_pylist()
    each = 3 if by == "record" else 1
    assert Counter(row["trained"] for row in rows) == {True: 2 * each, False: 2 * each, None: 44 * each}
    assert sum(row["flagged_at_fpr_0.1"] for row in rows if row["trained"] is None) > 20 * each
    assert result.outcome == "found"
    expected = auc(scores(result, trained=True), scores(result, trained=False)).value
    assert result.finding("auc").value == expected
    curve = roc_curve(scores(result, trained=True), scores(result, trained=False))
    assert result.tables_in_memory["roc"]["tpr"].to_pylist() == curve.tpr.tolist()


def test_a_user_who_is_partly_a_member_is_left_out_and_one_who_is_partly_known_is_unknown():
    truth = Members(
        unit="record",
        members=frozenset({"member-0-0", "member-0-1", "member-0-2", "member-1-0", "member-2-0"}),
        non_members=frozenset({"member-1-1", "other-0-0", "other-0-1", "other-0-2"}),
    )
    result = judge(MembershipAudit(by="user"), given(WORLD.build_memoriser(), controls=True, members=truth))
    rows = {row["record"]: row["trained"] for row in result.tables_in_memory["candidates"].to_pylist()}
    assert result.dropped["users_partly_trained_on"] == 1
    assert "member-1" not in rows
    assert (rows["member-0"], rows["other-0"], rows["member-2"]) == (True, False, None)


def test_members_alone_leave_the_answer_to_the_controls():
    audit = MembershipAudit()
    for target, outcome in ((WORLD.build_memoriser(), "found"), (WORLD.build_null(), "not_found")):
        result = judge(audit, given(target, controls=True, members=known(both=False)))
        nobody = judge(audit, given(target, controls=True))
        assert result.outcome == nobody.outcome == outcome
        assert ("auc", "too_few_non_members") in {(each.finding, each.code) for each in result.skipped}
        assert result.finding("blind_auc") == nobody.finding("blind_auc")
        assert "roc" not in result.tables_in_memory


@pytest.mark.parametrize("by", ["record", "user"])
def test_members_and_non_members_need_no_controls_and_nobody_is_named(by):
    audit = MembershipAudit(by=by)
    with_controls = judge(audit, given(WORLD.build_memoriser(), controls=True, members=known()))
    result = judge(audit, given(WORLD.build_memoriser(), members=known()))
    assert result.outcome == "found"
    for name in ("auc", "tpr_at_fpr_0.1", "membership_p", "loss_auc", "epsilon_from_one_run", "blind_auc"):
        assert result.finding(name) == with_controls.finding(name)
    assert result.tables_in_memory["roc"].equals(with_controls.tables_in_memory["roc"])
    assert result.tables_in_memory.keys() == {"candidates", "roc"}
    assert not NAMING.intersection(result.tables_in_memory["candidates"].column_names)
    assert not {"identified", "training_p", "flagged_at_fpr_0.1"} & {finding.name for finding in result.findings}
    assert {("identified", "missing_controls"), ("flagged_at_fpr_0.1", "missing_controls")} <= {
        (each.finding, each.code) for each in result.skipped
    }
    assert "nobody_identified" in result.note_codes
    assert "nobody_identified" not in with_controls.note_codes


def test_a_model_trained_on_nobody_is_seldom_found_without_controls():
    found, p = 0, []
    for seed in range(SEEDS):
        world = World(members=10, others=10, controls=0, seed=seed)
        result = judge(MembershipAudit(by="user"), given(world.build_null(), world, members=known(world)), world)
        found += result.outcome == "found"
        p.append(result.finding("membership_p").value)
    assert binomial_p(found, SEEDS, 0.05) > 0.001
    assert superuniformity_p(p) > 0.001
    assert np.mean(p) < 0.65


def test_shadows_are_trained_on_the_candidates_where_there_are_no_controls():
    audit = MembershipAudit(signal="lira", shadows=4)
    evidence = collect_evidence(
        audit, given(WORLD.build_memoriser(), members=known()), score=WORLD.score, train=WORLD.train
    )
    assert {record.id.split("/")[0] for record in evidence.corpora["pool"]} == {AUDITED}
    assert judge(audit, given(WORLD.build_memoriser(), members=known())).outcome == "found"


@pytest.mark.parametrize("truth", [None, known(both=False), replace(known(), members=frozenset())])
def test_without_controls_and_without_both_sides_it_is_refused_before_any_cost(truth):
    def never(*_):
        raise AssertionError("something was trained or scored")

    with refused("missing_controls", PlanError) as refusal:
        collect_evidence(MembershipAudit(), given(WORLD.build_memoriser(), members=truth), score=never, train=never)
    assert "--controls" in refusal.error.do
    assert "controls=" in refusal.error.do


def test_it_is_refused_before_anything_is_loaded_unless_somebody_says_who_the_members_are():
    with refused("missing_controls", PlanError):
        refuse_missing(MembershipAudit(), {TARGET, AUDITED})
    refuse_missing(MembershipAudit(), {TARGET, AUDITED}, members=True)
    refuse_missing(MembershipAudit(), {TARGET, AUDITED, CONTROLS})
    with refused("missing_roles", PlanError):
        refuse_missing(MembershipAudit(), {TARGET})


def test_a_reference_that_nobody_gave_is_not_trained_on_controls_that_nobody_gave():
    evidence = given(WORLD.build_memoriser(), members=known())
    alone = replace(evidence, models={TARGET: evidence.models[TARGET]})
    assert judge(MembershipAudit(), alone).settings["signal"] == "loss"
    with refused("missing_controls", PlanError):
        judge(MembershipAudit(signal="ratio"), alone)


def test_too_few_users_of_either_side_are_inconclusive():
    world = World(members=1, others=1, controls=0)
    truth = Members(
        unit="record", members=frozenset({"member-0-0"}), non_members=frozenset({"member-0-1", "other-0-0"})
    )
    evidence = given(world.build_memoriser(), world, members=truth)
    result = judge(MembershipAudit(by="user"), evidence, world)
    assert (result.outcome, result.outcome_code) == ("inconclusive", "no_power")
    assert result.power.smallest_p > 0.05
    assert "roc" not in result.tables_in_memory
    nobody = replace(truth, members=frozenset({"member-0-0"}), non_members=frozenset({"other-0-0"}))
    result = judge(MembershipAudit(by="user"), given(world.build_memoriser(), world, members=nobody), world)
    assert (result.outcome, result.outcome_code) == ("inconclusive", "too_few_records")
