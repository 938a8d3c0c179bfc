"""The leakage audit against models that have seen nothing and models that have seen all."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from types import SimpleNamespace

import numpy as np
import pytest

from recollect.audits.leakage.audit import LeakageAudit
from recollect.audits.leakage.reference_models import choose_reference_models, find_users_seen_by_reference
from recollect.audits.rounds import collect_evidence
from recollect.corpora import Corpus, Record
from recollect.errors import NotEnoughData, PlanError
from recollect.models.access import Access
from recollect.models.limited import limited
from recollect.results.result import Placebo
from recollect.signals.evidence import AUDITED, CONTROLS, TARGET, Evidence
from recollect.stats.significance import binomial_p
from recollect.streams import stream
from recollect.testing.contracts import check_audit
from recollect.testing.fakes import Memoriser, Null, Scripted
from recollect.testing.refusals import refused
from recollect.testing.world import World

TESTED_OF_USERS = ("flagged", "p_corrected")


def result_of(audit, world, target, **changes):
    given = replace(world.build_given(target), **changes)
    return audit.run(collect_evidence(audit, given, score=world.score, train=world.train), stream(0, audit.name))


@dataclass(frozen=True, kw_only=True)
class Silent(Null):
    """A model that never finds a true word most likely."""

    name: str = "silent"

    def score_words(self, record, words):
        return self.score_with_probability(record, np.full(len(words), 1e-4))


def without_controls(world):
    return {AUDITED: world.corpora[AUDITED]}


@pytest.mark.parametrize("audit", [LeakageAudit(), LeakageAudit(top_k=5, min_length=2)])
def test_the_audit_keeps_the_contract(audit):
    check_audit(audit, World(seed=2))


def test_what_a_failed_placebo_spoils_is_taken_back(monkeypatch):
    world = World(members=24, others=0, controls=60, seed=2)
    failed = Placebo(status="failed", reason="Controls are accused, too.", false_positive_rate=1.0, runs=40)
    monkeypatch.setattr("recollect.audits.leakage.safeguards.play_placebo", lambda *_, **__: failed)
    result = result_of(LeakageAudit(), world, world.build_memoriser())
    assert (result.outcome, result.outcome_code) == ("inconclusive", "placebo_failed")
    assert {"leakage_p", "flagged_users"} <= {each.finding for each in result.withheld if each.code == "placebo_failed"}
    assert not {"leakage_p", "flagged_users", "leakage_excess"} & {each.name for each in result.findings}
    assert {row[name] for row in result.tables_in_memory["users"].to_pylist() for name in TESTED_OF_USERS} == {None}


def test_a_memoriser_gives_away_every_record_of_those_it_learnt():
    world = World(members=24, others=0, controls=60, seed=2)
    result = result_of(LeakageAudit(), world, world.build_memoriser())
    texts = {record.text.casefold(): record.owner for record in world.member_records}
    table = (
        result_of(LeakageAudit(show_text=True), world, world.build_memoriser())
        .tables_in_memory["sequences"]
        .to_pylist()
    )
    assert {(row["text"].casefold(), row["user"]) for row in table} == set(texts.items())
    assert result.finding("flagged_users").value == 1
    assert result.finding("leakage_excess").interval[0] > 0
    assert all(row["flagged"] for row in result.tables_in_memory["users"].to_pylist())


def test_how_the_references_came_about_is_noted():
    world = World(members=24, others=0, controls=30, seed=2)
    alone = {"models": {TARGET: world.build_memoriser()}, "corpora": without_controls(world)}
    results = [
        result_of(LeakageAudit(), world, world.build_memoriser()),
        result_of(LeakageAudit(folds=6), world, world.build_memoriser(), **alone),
        result_of(LeakageAudit(folds=0), world, world.build_memoriser(), **alone),
    ]
    assert ["references" in result.note_codes for result in results] == [True, True, False]


@pytest.mark.parametrize(
    ("settings", "code"),
    [
        ({"folds": 2}, "too_few_folds"),
        ({"removable": 0.6}, "removable_out_of_range"),
    ],
)
def test_settings_that_leave_nobody_to_train_on_are_refused(settings, code):
    with refused(code, PlanError):
        LeakageAudit(**settings)


def test_text_is_masked_unless_requested():
    world = World(members=3, others=0, controls=3, seed=2)
    table = result_of(LeakageAudit(), world, world.build_memoriser()).tables_in_memory["sequences"].to_pylist()
    assert all("word" not in row["text"] and "word" not in row["context"] for row in table)


@pytest.mark.parametrize("runs", [12, pytest.param(40, marks=pytest.mark.slow)])
def test_models_trained_on_nobody_are_flagged_no_more_often_than_stated(runs):
    accused = missed = refused_to_say = 0
    for seed in range(runs):
        world = World(members=0, others=20, controls=25, seed=seed)
        result = result_of(LeakageAudit(), world, Null(seed=100 + seed))
        accused += result.outcome == "found"
        told = result.outcome != "inconclusive"
        low, high = result.finding("leakage_excess").interval if told else (0.0, 0.0)
        missed += not low <= 0 <= high
        refused_to_say += not told
    assert binomial_p(accused, runs, 0.05) > 0.001
    assert binomial_p(missed, runs, 0.05) > 0.001
    assert binomial_p(refused_to_say, runs, 0.1) > 0.001


def test_without_controls_a_second_reference_plays_the_target():
    world = World(members=24, others=0, controls=0, seed=2)
    audit = LeakageAudit(folds=6)
    models = {TARGET: world.build_memoriser()}
    result = result_of(audit, world, world.build_memoriser(), models=models, corpora=without_controls(world))
    assert result.outcome == "found"
    assert result.finding("flagged_users").n["users"] == 24
    saw_nobody = result_of(
        audit, world, world.build_null(), models={TARGET: world.build_null()}, corpora=without_controls(world)
    )
    assert saw_nobody.outcome == "not_found"


@pytest.mark.parametrize("controls", [False, True])
def test_without_a_recipe_and_a_reference_sequences_are_counted_and_nothing_is_trained(controls):
    world = World(members=24, others=0, controls=25, seed=2)
    changes = {"models": {TARGET: world.build_memoriser()}, "trainable": False}
    changes |= {} if controls else {"corpora": without_controls(world)}
    assert not LeakageAudit().needs(replace(world.build_given(world.build_memoriser()), **changes)).fleet
    result = result_of(LeakageAudit(), world, world.build_memoriser(), **changes)
    assert result.finding("unique_sequences").value == 72
    skipped = {each.finding: each.code for each in result.skipped}
    assert skipped == {"leakage_epsilon": "no_reference"} | ({} if controls else {"flagged_users": "too_few_controls"})


def test_a_given_reference_serves_and_none_is_trained_though_a_recipe_is_given():
    world = World(members=24, others=0, controls=25, seed=2)
    evidence = collect_evidence(
        LeakageAudit(), world.build_given(world.build_memoriser()), score=world.score, train=world.train
    )
    assert evidence.trainable
    assert set(evidence.models) == {TARGET, "reference"}
    assert not LeakageAudit().needs(evidence).fleet


def test_with_a_recipe_and_no_reference_there_are_eight_folds():
    world = World(members=24, others=0, controls=0, seed=2)
    assert LeakageAudit().needs(Evidence(trainable=True)).fleet == {"left-out": 8}
    assert LeakageAudit(folds=0).needs(Evidence(trainable=True)).fleet == {}
    evidence = gathered_without_references(LeakageAudit(), world, world.build_memoriser())
    assert len(evidence.models_of_role("left-out")) == 8


def gathered_without_references(audit, world, target, **changes):
    """What is gathered where the recipe has to train all references."""
    given = replace(
        world.build_given(target), **{"models": {TARGET: target}, "corpora": without_controls(world), **changes}
    )
    return collect_evidence(audit, given, score=world.score, train=world.train)


def owners(corpus):
    return {record.owner for record in corpus}


@pytest.mark.parametrize("controls", [False, True])
def test_every_user_meets_two_models_that_have_not_seen_them(controls):
    world = World(members=10, others=3, controls=5, seed=2)
    corpora = world.corpora if controls else without_controls(world)
    evidence = gathered_without_references(LeakageAudit(folds=4), world, world.build_memoriser(), corpora=corpora)
    cohorts = evidence.cohorts[AUDITED]
    models = evidence.models_of_role("left-out")
    assert len(models) == 4
    members = set(cohorts.members(TARGET))
    assert all(sum(user in cohorts.members(model) for model in models) == 2 for user in members)
    asked = {(model, corpus) for model, corpus in evidence.answers if model != TARGET}
    assert all(not owners(evidence.corpora[corpus]).intersection(cohorts.members(model)) for model, corpus in asked)
    plan = choose_reference_models(evidence)
    for group in (plan.audited, plan.null):
        everybody = owners(evidence.corpora[group.corpus])
        assert set(group.list_users(evidence)) == everybody
        for record in evidence.corpora[group.corpus]:
            pair = group.pairs[group.assigned[record.owner]]
            assert pair.model != pair.reference
            assert record.owner in owners(evidence.corpora[pair.reference[1]])


def test_only_those_who_trained_the_target_train_its_references():
    world = World(members=10, others=6, controls=0, seed=2)
    evidence = gathered_without_references(LeakageAudit(folds=4), world, world.build_memoriser())
    trained = {
        user for model in evidence.models_of_role("left-out") for user in evidence.cohorts[AUDITED].members(model)
    }
    assert trained == set(evidence.cohorts[AUDITED].members(TARGET))


def few_leaking(world, count):
    """A target that has learnt the records of a few users by heart and otherwise says nothing."""
    known = [record for record in world.corpora[AUDITED] if record.owner in {f"member-{i}" for i in range(count)}]
    return Memoriser(known, otherwise=Silent())


def test_few_users_of_sequences_are_left_out_together_with_others_drawn_at_random():
    world = World(members=100, others=0, controls=0, seed=2)
    evidence = gathered_without_references(LeakageAudit(folds=8), world, few_leaking(world, 10))
    cohorts = evidence.cohorts[AUDITED]
    assert evidence.models_of_role("retrained") == ("retrained-0", "retrained-1")
    assert not evidence.models_of_role("left-out")
    drawn = owners(evidence.corpora["drawn"])
    assert len(drawn) == 22
    left = set(cohorts.units).difference(cohorts.members("retrained-0"))
    assert left == drawn | {f"member-{i}" for i in range(10)} == owners(evidence.corpora["unseen"])
    fewer = set(cohorts.members("retrained-0")).difference(cohorts.members("retrained-1"))
    assert len(fewer) == len(left)
    assert set(cohorts.members("retrained-1")) < set(cohorts.members("retrained-0"))
    again = gathered_without_references(LeakageAudit(folds=8), world, few_leaking(world, 3))
    assert owners(again.corpora["drawn"]) == drawn, "whom the target gives away has no say in who is drawn"


def test_one_user_more_than_a_tenth_and_there_are_folds():
    world = World(members=100, others=0, controls=0, seed=2)
    evidence = gathered_without_references(LeakageAudit(folds=8), world, few_leaking(world, 11))
    assert len(evidence.models_of_role("left-out")) == 8
    allowed = gathered_without_references(LeakageAudit(folds=8, removable=0.2), world, few_leaking(world, 11))
    assert len(allowed.models_of_role("retrained")) == 2


def test_with_controls_only_the_reference_is_retrained():
    world = World(members=100, others=0, controls=60, seed=2)
    target = few_leaking(world, 10)
    audit = LeakageAudit(folds=8)
    evidence = gathered_without_references(audit, world, target, corpora=world.corpora)
    assert evidence.models_of_role("retrained") == ("retrained-0",)
    result = audit.run(evidence, stream(0, audit.name))
    assert result.finding("leakage_epsilon").n == {"sequences": 30, "users": 10}
    assert result.finding("deniable_users").value == 0.9
    assert result.finding("leakage_excess").value > 0
    assert result.finding("leakage_excess").why_no_interval, "nothing comes out of the controls: there is no scatter"


def test_more_folds_than_users_are_refused():
    world = World(members=5, others=0, controls=0, seed=2)
    with refused("fewer_users_than_folds", NotEnoughData):
        gathered_without_references(LeakageAudit(folds=8), world, world.build_memoriser())


def test_users_whom_a_reference_has_seen_are_left_out():
    world = World(members=4, others=0, controls=0, seed=2)
    given = world.build_given(world.build_memoriser())
    members = {TARGET: given.cohorts[AUDITED].members(TARGET), "reference": ["member-0", "member-1"]}
    cohorts = {AUDITED: world._build_cohorts(members)}
    result = result_of(LeakageAudit(), world, world.build_memoriser(), cohorts=cohorts)
    assert {row["user"] for row in result.tables_in_memory["users"].to_pylist()} == {"member-2", "member-3"}
    assert {row["user"] for row in result.tables_in_memory["sequences"].to_pylist()} == {"member-2", "member-3"}
    assert "users_in_reference_training_set" in result.note_codes
    everybody = {**members, "reference": members[TARGET]}
    with refused("reference_trained_on_everybody", PlanError):
        result_of(LeakageAudit(), world, world.build_memoriser(), cohorts={AUDITED: world._build_cohorts(everybody)})


def test_ranks_alone_give_sequences_and_no_epsilon():
    world = World(seed=2)
    result = result_of(LeakageAudit(), world, limited(world.build_memoriser(), Access.top(1)))
    assert result.finding("unique_sequences").value > 0
    assert [each.finding for each in result.skipped] == ["leakage_epsilon"]
    assert result.outcome == "found"


def test_epsilon_is_the_mean_log_ratio_and_its_sum():
    world = World(members=1, others=0, controls=0, seed=2)
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
    with refused("not_left_to_right", PlanError):
        LeakageAudit().needs(world.build_given(world.build_null()))
    assert CONTROLS in world.corpora


@pytest.mark.parametrize(
    ("card", "members", "seen"),
    [
        (None, None, set()),
        ({"quantised": {"bits": 8}}, None, set()),
        ({"corpus": {"digest": "another"}}, None, set()),
        ({"corpus": {"digest": "this"}}, None, {"ann", "bob"}),
        ({"corpus": {"digest": "another"}}, ["ann"], {"ann"}),
    ],
)
def test_whom_a_model_has_seen_stands_on_its_card_if_it_has_one_that_says_so(tmp_path, card, members, seen):
    corpus = Corpus.of([Record(id=user, user=user, text=user) for user in ("ann", "bob")])
    if card is not None:
        named = {"this": corpus.digest}
        told = {key: {inner: named.get(each, each) for inner, each in value.items()} for key, value in card.items()}
        (tmp_path / "card.json").write_text(json.dumps(told))
    if members is not None:
        (tmp_path / "members.json").write_text(json.dumps(members))
    model = SimpleNamespace(name=str(tmp_path))
    assert find_users_seen_by_reference(Evidence(models={TARGET: model}, corpora={AUDITED: corpus}), TARGET) == seen


def test_copies_of_a_users_own_record_do_not_stand_for_more_records():
    world = World(members=12, others=0, controls=30)
    audited, controls = (list(world.corpora[role]) for role in (AUDITED, CONTROLS))
    copies = [replace(record, id=f"{record.id}-{i}") for record in controls[::3] for i in range(3)]
    result = _compare_with_reference(audited, copies)
    assert result.dropped["controls.near_duplicate"] == 60
    assert {note.code for note in result.notes} >= {"amounts_matched"}
    plain = _compare_with_reference(audited, [replace(record, id=f"{record.id}-0") for record in controls[::3]])
    assert result.finding("leakage_excess") == plain.finding("leakage_excess")


def test_users_who_have_only_what_others_have_are_said_to_be_too_few():
    world = World(members=12, others=0, controls=30)
    audited, controls = (list(world.corpora[role]) for role in (AUDITED, CONTROLS))
    copies = [replace(record, text=controls[i % len(controls)].text) for i, record in enumerate(audited)]
    result = _compare_with_reference(copies, controls)
    assert (result.outcome, result.outcome_code) == ("inconclusive", "too_few_users")
    assert "needs at least 2 audited users with a text that nobody else has; there are 0." in result.verdict
    assert "audited.near_duplicate" in result.dropped


def _compare_with_reference(audited, controls):
    """The result of comparing users of a model that has seen nobody with these controls."""
    models = {TARGET: Null(seed=0), "reference": Null(seed=1)}
    given = Evidence(models=models, corpora={AUDITED: Corpus.of(audited), CONTROLS: Corpus.of(controls)})
    audit = LeakageAudit()
    return audit.run(collect_evidence(audit, given, score=World().score, train=None), stream(0, "leakage"))
