"""Findings of removal that mean nothing are taken back, and a limit on them cannot be checked."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import get_args

import numpy as np
import pytest

from recollect.audits.common.outcomes import EXPLAINED_BY_TEXTS, NOT_COMPARABLE, PLACEBO_FAILED
from recollect.audits.removal.audit import RemovalAudit
from recollect.audits.removal.calibrated import compare_set
from recollect.audits.removal.result import WITHHELD, build_set_result
from recollect.audits.rounds import collect_evidence
from recollect.corpora.corpus import Corpus
from recollect.corpora.times import Period
from recollect.pipeline.plans.limits import Limit, check_limits
from recollect.results.result import Placebo
from recollect.signals.evidence import AUDITED, TARGET
from recollect.stats.significance import binomial_p
from recollect.streams import stream
from recollect.testing.fakes import Null
from recollect.testing.world import World


def collect(audit, given, world):
    return collect_evidence(audit, given, score=world.score, train=world.train)


def judge(audit, given, world):
    return audit.run(collect(audit, given, world), stream(0, "removal"))


def cut_first_person(world, given):
    """One person keeps a single record."""
    name = world.member_records[0].owner
    others = [record for record in given.corpora[AUDITED] if record.owner != name]
    return name, replace(given, corpora={**given.corpora, AUDITED: Corpus.of([*others, world.member_records[0]])})


def test_numbers_of_people_are_taken_back_if_these_are_not_comparable():
    world, audit = World(members=3, others=3, controls=200), RemovalAudit(by="user", models=2)
    _, given = cut_first_person(world, world.build_given(world.build_memoriser()))
    result = judge(audit, given, world)
    assert (result.outcome, result.outcome_code) == ("inconclusive", NOT_COMPARABLE)
    assert "the 6 people were removed. The audited and the controls differ in records per user" in result.verdict
    assert not [each.name for each in result.findings if each.name.startswith("users_")]
    assert {each.finding for each in result.withheld} >= {"users_still_there", "users_gone"}
    rows = result.tables_in_memory["users"].to_pylist()
    p_values = [value for row in rows for name, value in row.items() if name.startswith("p_")]
    assert p_values
    assert set(p_values) == {None}
    (limit,) = check_limits([Limit.parse("users_still_there>0")], result)
    assert limit.status == "not_checked"


def test_a_person_with_fewer_records_than_any_control_has_no_p_value_below_one():
    world, audit = World(members=30, others=0, controls=200), RemovalAudit(by="user", models=2)
    name, given = cut_first_person(world, world.build_given(world.build_memoriser()))
    result = judge(audit, given, world)
    assert result.guard.comparable
    rows = {row["user"]: row for row in result.tables_in_memory["users"].to_pylist()}
    assert (rows[name]["decision"], rows[name]["p_still_there"]) == ("inconclusive", 1.0)
    assert "users_not_compared" in result.note_codes
    others = [row["p_still_there"] for user, row in rows.items() if user != name]
    assert max(others) < 0.01


@pytest.mark.parametrize(
    ("code", "changes"),
    [
        (PLACEBO_FAILED, {"placebo": Placebo(status="failed", reason="Controls are accused, too.")}),
        (EXPLAINED_BY_TEXTS, {"explained": True}),
    ],
)
def test_a_share_that_means_nothing_is_taken_back(code, changes):
    world, audit = World(members=40, others=0, controls=80), RemovalAudit(models=2)
    evidence = compare_set(audit, collect(audit, world.build_given(world.build_memoriser()), world))
    plain = build_set_result(audit, evidence)
    assert plain.outcome == "found"
    assert "fraction_still_in" in {each.name for each in plain.findings}
    result = build_set_result(audit, replace(evidence, **changes))
    assert (result.outcome, result.outcome_code) == ("inconclusive", code)
    assert not set(WITHHELD) & {each.name for each in result.findings}
    assert "fraction_still_in" in {each.finding for each in result.withheld if each.code == code}


@dataclass(frozen=True, kw_only=True)
class Impossible(Null):
    """A model that gives the words of some records no probability at all."""

    among: frozenset[str] = frozenset()

    def answer(self, records):
        answers = super().answer(records)
        none = np.repeat([digest in self.among for digest in answers.records], np.diff(answers.offsets))
        return replace(answers, logprob=np.where(none, -np.inf, answers.logprob).astype(np.float32))


def test_records_without_a_finite_confidence_are_dropped_and_counted():
    world, audit = World(members=20, others=20, controls=80), RemovalAudit(models=2)
    given = world.build_given(world.build_null())
    owner = next(iter(given.corpora[AUDITED])).owner
    among = frozenset(record.digest for record in given.corpora[AUDITED] if record.owner == owner)
    target = Impossible(seed=0, vocabulary=1000, among=among)
    result = judge(audit, replace(given, models={**given.models, TARGET: target}), world)
    assert result.dropped["audited.not_finite"] == 1
    assert all(np.isfinite(each.value) for each in result.findings if each.value is not None)


@dataclass(frozen=True, kw_only=True)
class Gappy(Null):
    """A model that knows some records less than others, as all such models do, and holds some of these impossible."""

    def answer(self, records):
        answers = super().answer(records)
        hard = np.array([int(digest[:8], 16) / 2**32 for digest in answers.records])
        chance = [np.random.default_rng([self.seed, int(digest[:8], 16)]).random() for digest in answers.records]
        none = np.repeat(chance < 0.16 * hard, np.diff(answers.offsets))
        logprob = answers.logprob - np.repeat(2 * hard, np.diff(answers.offsets))
        return replace(answers, logprob=np.where(none, -np.inf, logprob).astype(np.float32))


class GappyWorld(World):
    """A world of such models."""

    def _build_null_model(self, seed):
        return Gappy(seed=1000 * self.seed + seed, kind=self.kind, vocabulary=self._vocabulary)


@pytest.mark.parametrize("worlds", [10, pytest.param(200, marks=pytest.mark.slow)])
def test_records_that_some_models_hold_impossible_accuse_nobody(worlds):
    audit, found, dropped = RemovalAudit(models=8), 0, 0
    for seed in range(worlds):
        world = GappyWorld(members=0, others=40, controls=80, seed=seed)
        result = judge(audit, world.build_given(world.build_null()), world)
        found += result.outcome == "found"
        dropped += result.dropped.get("audited.not_finite", 0)
    assert dropped > 4 * worlds
    assert binomial_p(found, worlds, 0.05) > 0.001


def test_dates_are_compared_by_the_period_that_is_set():
    world = World(members=0, others=40, controls=80)
    given = world.build_given(world.build_null())
    rng = np.random.default_rng(0)

    def date(corpus):
        return Corpus.of(replace(r, time=datetime(2026, int(rng.integers(1, 7)), 3, tzinfo=UTC)) for r in corpus)

    given = replace(given, corpora={role: date(corpus) for role, corpus in given.corpora.items()}, cohorts={})
    checks = [judge(RemovalAudit(models=2, period=period), given, world).guard.checks for period in get_args(Period)]
    dates = [next(check for check in each if check.name == "date") for each in checks]
    assert all(check.comparable for check in dates)
    assert len({check.effect for check in dates}) > 1
