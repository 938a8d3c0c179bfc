"""The leakage audit against models that have seen nothing and models that have seen all."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from recollect.audits.leakage.audit import LeakageAudit
from recollect.audits.rounds import gathered
from recollect.errors import PlanError
from recollect.models.access import Access
from recollect.models.limited import limited
from recollect.signals.evidence import AUDITED, CONTROLS, TARGET
from recollect.stats.significance import binomial_p
from recollect.streams import stream
from recollect.testing.contracts import check_audit
from recollect.testing.fakes import Null, Scripted
from recollect.testing.world import World


def result_of(audit, world, target, **changes):
    given = replace(world.given(target), **changes)
    return audit.run(gathered(audit, given, ask=world.ask, train=world.train), stream(0, audit.name))


def without_controls(world):
    return {AUDITED: world.corpora[AUDITED]}


@pytest.mark.parametrize("audit", [LeakageAudit(), LeakageAudit(top_k=5, min_length=2)])
def test_the_audit_keeps_the_contract(audit):
    check_audit(audit)


def test_a_memoriser_gives_away_every_record_of_those_it_learnt():
    world = World(members=24, others=0, controls=60)
    result = result_of(LeakageAudit(), world, world.memoriser())
    texts = {record.text.casefold(): record.owner for record in world.learnt}
    table = result_of(LeakageAudit(show_text=True), world, world.memoriser()).held["sequences"].to_pylist()
    assert {(row["text"].casefold(), row["user"]) for row in table} == set(texts.items())
    assert result.finding("flagged_users").value == 1
    assert result.finding("leakage_excess").interval[0] > 0
    assert "24 of 24 users" in result.verdict


def test_text_is_masked_unless_asked_for():
    world = World(members=3, others=0, controls=3)
    table = result_of(LeakageAudit(), world, world.memoriser()).held["sequences"].to_pylist()
    assert all("word" not in row["text"] and "word" not in row["context"] for row in table)


def test_models_that_saw_nobody_are_accused_no_more_often_than_stated():
    runs, accused, covered = 40, 0, 0
    for seed in range(runs):
        world = World(members=0, others=20, controls=25, seed=seed)
        result = result_of(LeakageAudit(), world, Null(seed=100 + seed))
        accused += result.outcome == "found"
        low, high = result.finding("leakage_excess").interval
        covered += low <= 0 <= high
    assert binomial_p(accused, runs, 0.05) > 0.001
    assert binomial_p(runs - covered, runs, 0.05) > 0.001


def test_without_controls_a_second_reference_plays_the_target():
    world = World(members=24, others=0, controls=0)
    audit = LeakageAudit(folds=6)
    models = {TARGET: world.memoriser()}
    result = result_of(audit, world, world.memoriser(), models=models, corpora=without_controls(world))
    assert result.outcome == "found"
    assert result.finding("flagged_users").n["users"] == 24
    saw_nobody = result_of(audit, world, world.null(), models={TARGET: world.null()}, corpora=without_controls(world))
    assert saw_nobody.outcome == "not found"


def test_every_user_meets_two_models_that_have_not_seen_them():
    world = World(members=10, others=3, controls=0)
    given = replace(world.given(world.null()), models={TARGET: world.null()}, corpora=without_controls(world))
    needs = LeakageAudit(folds=4).needs(given)
    unseen = (~needs.train[AUDITED].matrix).sum(axis=0)
    assert unseen.tolist() == [2] * 13
    folds = {part: {record.owner for record in corpus} for part, corpus in needs.corpora.items()}
    assert sorted(user for users in folds.values() for user in users) == sorted(needs.train[AUDITED].units)
    for model, corpus in needs.ask:
        if model != TARGET:
            assert not folds[corpus].intersection(needs.train[AUDITED].members(model))


def test_users_whom_a_reference_has_seen_are_left_out():
    world = World(members=4, others=0, controls=0)
    given = world.given(world.memoriser())
    members = {TARGET: given.cohorts[AUDITED].members(TARGET), "reference": ["member-0", "member-1"]}
    cohorts = {AUDITED: world._cohorts(members)}
    result = result_of(LeakageAudit(), world, world.memoriser(), cohorts=cohorts)
    assert {row["user"] for row in result.held["users"].to_pylist()} == {"member-2", "member-3"}
    assert {row["user"] for row in result.held["sequences"].to_pylist()} == {"member-2", "member-3"}
    assert any("2 users are left out" in note for note in result.notes)


def test_ranks_alone_give_sequences_and_no_epsilon():
    world = World()
    result = result_of(LeakageAudit(), world, limited(world.memoriser(), Access.top(1)))
    assert result.finding("unique_sequences").value > 0
    assert [each.finding for each in result.skipped] == ["leakage_epsilon"]
    assert result.outcome == "found"


def test_epsilon_is_the_mean_log_ratio_and_its_sum():
    world = World(members=1, others=0, controls=0)
    records = list(world.corpora[AUDITED])[:1]
    sizes = len(records[0].text.split())
    models = {
        TARGET: Scripted({records[0].id: [0.9] * sizes}),
        "reference": Scripted({records[0].id: [0.1] * sizes}),
    }
    corpora = {AUDITED: type(world.corpora[AUDITED]).of(records)}
    result = result_of(LeakageAudit(), world, models[TARGET], models=models, corpora=corpora, cohorts={})
    assert result.finding("leakage_epsilon").value == pytest.approx(np.log(9), rel=1e-5)
    assert result.finding("leakage_epsilon_sum").value == pytest.approx(sizes * np.log(9), rel=1e-5)
    assert result.finding("deniable_users").value == 0


def test_a_masked_model_is_refused():
    world = World(kind="masked")
    with pytest.raises(PlanError, match="left to right"):
        LeakageAudit().needs(world.given(world.null()))
    assert CONTROLS in world.corpora
