"""Rounds: evidence is gathered until the audit needs nothing new; what is impossible is refused before any cost."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace

import pytest

from recollect.audits.audit import Needs
from recollect.audits.rounds import collect_evidence, refuse_impossible, refuse_missing
from recollect.corpora.cohorts import Cohorts
from recollect.corpora.members import Members
from recollect.errors import AccessError, PlanError
from recollect.models.access import Access
from recollect.models.limited import limited
from recollect.signals.evidence import AUDITED, CONTROLS, TARGET, Evidence
from recollect.testing.refusals import refused
from recollect.testing.world import World

WORLD = World(members=3, others=3, controls=4)
GIVEN = WORLD.build_given(WORLD.build_memoriser())


@dataclass
class Audit:
    """An audit of which only the needs matter."""

    rule: Callable[[Evidence], Needs]
    name: str = "toy"
    question: str = "?"
    paper: str = "Toy"

    def needs(self, evidence):
        return self.rule(evidence)

    def run(self, evidence, rng, workspace):
        raise NotImplementedError


@dataclass
class Ledger:
    """Remembers what was asked and trained."""

    asked: list[tuple[str, str]] = field(default_factory=list)
    trained: list[tuple[str, ...]] = field(default_factory=list)

    def score(self, model, corpus):
        self.asked.append((model.name, corpus.name))
        return WORLD.score(model, corpus)

    def train(self, cohorts, corpus):
        self.trained.append(cohorts.models)
        return WORLD.train(cohorts, corpus)


def halves(evidence: Evidence, *names: str) -> Cohorts:
    controls = evidence.corpora[CONTROLS]
    owners = sorted({record.owner for record in controls})
    return Cohorts.of(dict.fromkeys(names, owners[:2]), units=owners, unit="user", corpus=controls.digest, seed=0)


def like_provenance(evidence: Evidence) -> Needs:
    """Shadows from the controls, queries chosen among the audited, then the target is asked about these alone."""
    access = {TARGET: Access.top(5)}
    if not evidence.corpora:
        return Needs(access=access, given=frozenset({TARGET, AUDITED, CONTROLS}), fleet={"shadow": 2})
    queries = evidence.corpora[AUDITED].filter(lambda record: record.id.endswith("-0"), name="queries")
    shadows = halves(evidence, "shadow-0", "shadow-1")
    ask = {(model, "queries") for model in (TARGET, *shadows.models)}
    return Needs(access=access, corpora={"queries": queries}, train={CONTROLS: shadows}, score=frozenset(ask))


def test_corpora_are_derived_models_trained_and_everybody_asked_once():
    ledger = Ledger()
    evidence = collect_evidence(Audit(like_provenance), GIVEN, score=ledger.score, train=ledger.train)
    assert ledger.trained == [("shadow-0", "shadow-1")]
    assert ledger.asked == [("shadow-0", "queries"), ("shadow-1", "queries"), ("memoriser", "queries")]
    assert evidence.cohorts[CONTROLS].members("shadow-1") == ("control-0", "control-1")
    assert evidence.cohorts[AUDITED] is GIVEN.cohorts[AUDITED]
    ((records, answers),) = evidence.iter_blocks("queries", [TARGET, "shadow-0"])
    assert [record.id[-2:] for record in records] == ["-0"] * 6
    assert [part.records for part in answers] == [tuple(record.digest for record in records)] * 2
    assert not GIVEN.answers, "what was given is left as it was"


def test_a_later_round_may_learn_from_the_answers_whom_to_train_on():
    def like_leakage(evidence: Evidence) -> Needs:
        ask = {(TARGET, AUDITED)} if evidence.corpora else set()
        if not evidence.has_answers(TARGET, AUDITED):
            return Needs(score=frozenset(ask), later="A reference that has not seen those who leak.")
        ((_, (answers,)),) = evidence.iter_blocks(AUDITED, [TARGET])
        assert (answers.rank == 1).any()
        first, second = halves(evidence, "fold-0"), halves(evidence, "fold-0", "fold-1")
        train = second if "fold-0" in evidence.models else first
        return Needs(train={CONTROLS: train}, score=frozenset({*ask, *((name, AUDITED) for name in train.models)}))

    ledger = Ledger()
    evidence = collect_evidence(Audit(like_leakage), GIVEN, score=ledger.score, train=ledger.train)
    assert ledger.trained == [("fold-0",), ("fold-1",)]
    assert ledger.asked == [("memoriser", "in memory"), ("fold-0", "in memory"), ("fold-1", "in memory")]
    assert evidence.cohorts[CONTROLS].models == ("fold-0", "fold-1")
    assert evidence.models_of_role("fold") == ("fold-0", "fold-1")


def test_missing_access_is_refused_before_anything_is_trained_or_scored():
    ledger = Ledger()
    weak = WORLD.build_given(limited(WORLD.build_memoriser(), Access.LABEL))
    with pytest.raises(AccessError, match="toy needs the top 5 tokens; model 'memoriser' outputs the top token"):
        collect_evidence(Audit(like_provenance), weak, score=ledger.score, train=ledger.train)
    assert ledger == Ledger()


def test_what_the_user_did_not_give_is_named_before_anything_is_trained_or_scored():
    bare = Evidence(models=GIVEN.models, corpora={AUDITED: GIVEN.corpora[AUDITED]})
    with refused("missing_controls", PlanError) as refusal:
        refuse_impossible(Audit(like_provenance), bare)
    assert "--controls" in refusal.error.do
    assert refuse_impossible(Audit(like_provenance), GIVEN).fleet == {"shadow": 2}


def test_a_file_is_a_part_like_any_other(tmp_path):
    audit = Audit(lambda evidence: Needs(given=frozenset({TARGET, "canaries"})))
    with refused("missing_canaries", PlanError):
        refuse_impossible(audit, GIVEN)
    refuse_impossible(audit, replace(GIVEN, files={"canaries": tmp_path / "planted.canaries.json"}))


def test_asking_somebody_who_is_not_there_is_explained():
    audit = Audit(lambda evidence: Needs(score=frozenset({("oracle", "scrolls")})))
    with refused("missing_roles", PlanError):
        collect_evidence(audit, GIVEN, score=WORLD.score, train=WORLD.train)


def test_an_audit_that_never_has_enough_is_stopped():
    def insatiable(evidence: Evidence) -> Needs:
        return Needs(corpora={f"more-{len(evidence.corpora)}": GIVEN.corpora[AUDITED]})

    with refused("too_many_rounds"):
        collect_evidence(Audit(insatiable), GIVEN, score=WORLD.score, train=WORLD.train)


def test_reading_what_was_not_asked_is_an_error_that_says_so():
    with refused("missing_answers"):
        list(GIVEN.iter_blocks(AUDITED, [TARGET]))


def spared(evidence: Evidence) -> Needs:
    """Like membership: known members and non-members do instead of controls."""
    return Needs(given=frozenset({TARGET, AUDITED, CONTROLS}), unless_members=frozenset({CONTROLS}))


def test_known_members_and_non_members_may_do_instead_of_a_role():
    alone = replace(GIVEN, corpora={AUDITED: GIVEN.corpora[AUDITED]})
    refuse_impossible(Audit(spared), alone)
    for truth in ({"cohorts": {}}, {"members": Members(unit="user", members=frozenset({"member-0"}))}):
        with refused("missing_controls", PlanError):
            refuse_impossible(Audit(spared), replace(alone, **truth))


def test_what_members_do_not_replace_is_missed_all_the_same():
    with refused("missing_audited", PlanError):
        refuse_missing(Audit(spared), {TARGET}, members=True)


def test_cohorts_of_several_models_matter_to_those_alone_who_ask_for_members():
    cohorts = Cohorts.of({"a": [], "b": []}, units=["ann"], unit="user", corpus="…", seed=0)
    unclear = replace(GIVEN, cohorts={AUDITED: cohorts})
    refuse_impossible(Audit(like_provenance), unclear)
    with refused("no_target_in_cohorts", PlanError):
        refuse_impossible(Audit(spared), unclear)
