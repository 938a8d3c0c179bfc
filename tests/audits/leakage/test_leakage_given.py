"""What is given to the leakage audit is used or refused: members, the target as its own reference, infinite leaks."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pytest

from recollect.audits.leakage.audit import LeakageAudit
from recollect.audits.rounds import collect_evidence
from recollect.corpora.members import Members
from recollect.errors import PlanError
from recollect.signals.evidence import AUDITED, REFERENCE, TARGET
from recollect.streams import stream
from recollect.testing.fakes import Null
from recollect.testing.world import World

WORLD = World(members=12, others=8, controls=30, seed=2)


def judge(given, world=WORLD, **settings):
    audit = LeakageAudit(**settings)
    return audit.run(collect_evidence(audit, given, score=world.score, train=world.train), stream(0, audit.name))


@dataclass(frozen=True, kw_only=True)
class Certain(Null):
    """A model that gives some words probability zero."""

    def answer(self, records):
        answers = super().answer(records)
        return replace(answers, logprob=np.where(answers.logprob < -1.2, -np.inf, answers.logprob).astype(np.float32))


def given(**changes):
    return replace(WORLD.build_given(WORLD.build_memoriser()), cohorts={}, **changes)


def test_members_that_nothing_would_use_are_refused():
    members = Members(unit="user", members=frozenset({"member-0"}))
    with pytest.raises(PlanError, match="no recipe"):
        LeakageAudit().needs(given(members=members, trainable=False))


@pytest.mark.parametrize("unit", ["user", "record"])
def test_references_are_trained_on_the_members_that_are_given(unit):
    records = [record for record in WORLD.corpora[AUDITED] if record.owner.startswith("member")]
    members = frozenset(record.owner if unit == "user" else record.id for record in records)
    evidence = given(members=Members(unit=unit, members=members))
    alone = replace(evidence, models={TARGET: evidence.models[TARGET]})
    complete = collect_evidence(LeakageAudit(), alone, score=WORLD.score, train=WORLD.train)
    cohorts = complete.cohorts[AUDITED]
    trained = {user for model in cohorts.models for user in cohorts.members(model)}
    assert trained == {record.owner for record in records}


def test_the_target_is_no_reference_of_its_own():
    target = WORLD.build_memoriser()
    with pytest.raises(PlanError, match="target itself"):
        LeakageAudit().needs(given(models={TARGET: target, REFERENCE: target}))


def test_an_infinite_leak_is_compared_by_its_rank_and_has_no_mean():
    result = judge(given(models={TARGET: WORLD.build_null(), REFERENCE: Certain(seed=1)}))
    assert result.outcome == "not_found"
    assert {each.finding: each.code for each in result.skipped}["leakage_excess"] == "infinite_values"


def test_a_word_of_probability_zero_says_nothing_about_the_words_after_it():
    table = judge(given(models={TARGET: WORLD.build_null(), REFERENCE: Certain(seed=1)})).tables_in_memory["sequences"]
    plain = judge(given(models={TARGET: WORLD.build_null(), REFERENCE: Null(seed=1)})).tables_in_memory["sequences"]
    finite = {(row["record"], row["start"]): row["epsilon_sum"] for row in plain.to_pylist()}
    found = {(row["record"], row["start"]): row["epsilon_sum"] for row in table.to_pylist()}
    assert found.keys() == finite.keys()
    assert all(np.isinf(found[key]) or found[key] == finite[key] for key in found)
    assert 0 < sum(map(np.isinf, found.values())) < len(found)


@dataclass(frozen=True, kw_only=True)
class SmallVocabulary(Null):
    """A model that knows few words, so that none can have a rank beyond."""

    words: int = 100

    def answer(self, records):
        answers = super().answer(records)
        return replace(answers, rank=np.minimum(answers.rank, self.words))


def test_a_k_as_large_as_the_vocabulary_is_refused():
    small = given(models={TARGET: SmallVocabulary(seed=0), REFERENCE: Null(seed=1)})
    with pytest.raises(PlanError, match="smaller --top-k") as refusal:
        judge(small, top_k=100)
    assert refusal.value.code == "k_too_large"
    assert judge(small, top_k=10).outcome == "not_found"
    found = judge(given(), top_k=10)  # a model that predicts every word of its members is no reason to refuse
    assert found.outcome == "found"
