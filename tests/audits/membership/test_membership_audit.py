"""The membership audit: decisions, truth, bounds, and what it refuses."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from recollect.audits.membership.audit import MembershipAudit
from recollect.audits.rounds import collect_evidence
from recollect.corpora.canaries.manifest import Canaries, Canary
from recollect.corpora.cohorts import Cohorts
from recollect.corpora.corpus import Corpus
from recollect.corpora.partitions import build_cohorts
from recollect.corpora.record import Record
from recollect.errors import PlanError
from recollect.models.model import Question
from recollect.signals.evidence import AUDITED, CONTROLS, REFERENCE, TARGET
from recollect.signals.roles import CANARIES
from recollect.signals.scores import Scores
from recollect.stats import auc, conformal_p, precision, recall
from recollect.streams import stream
from recollect.testing.contracts import check_audit
from recollect.testing.fakes import Memoriser, Null
from recollect.testing.refusals import refused
from recollect.testing.world import World

FEW = World(members=12, others=12, controls=40, seed=1)
"""In one world of twenty both sides differ by chance, and the guard says so; not in this one."""


def judge(audit, given, world=FEW, seed=0):
    given = replace(given, seed=seed)
    return audit.run(collect_evidence(audit, given, score=world.score, train=world.train), stream(seed, audit.name))


def codes(result):
    return {skipped.finding: skipped.code for skipped in result.skipped}


def blind(given):
    return replace(given, cohorts={})


@pytest.mark.parametrize("kind", ["masked", "seq2seq", "classifier"])
def test_the_contract_holds_for_every_kind_of_model(kind):
    check_audit(MembershipAudit(), World(kind=kind, seed=1))


@pytest.mark.parametrize("signal", ["loss", "lowercase", "lira", "rmia"])
def test_the_contract_holds_for_signals_that_need_more(signal):
    check_audit(MembershipAudit(signal=signal, shadows=4), World(seed=3))


@pytest.mark.parametrize("signal", ["lira", "lira-offline", "rmia", "ensemble"])
def test_shadows_whose_members_are_unknown_are_refused_before_anything_is_scored(signal):
    given = FEW.build_given(FEW.build_memoriser())
    shadows = {f"shadow-{i}": FEW.build_null() for i in range(2)}
    unknown = replace(given, models={**given.models, **shadows}, trainable=False)
    with refused("unknown_shadow_cohort"):
        collect_evidence(
            MembershipAudit(signal=signal),
            unknown,
            score=lambda *_: pytest.fail("something was scored"),
            train=lambda *_: pytest.fail("something was trained"),
        )


def test_the_contract_holds_by_user():
    check_audit(MembershipAudit(by="user"), World(seed=1))


def test_what_was_learnt_is_found_without_knowing_the_truth():
    result = judge(MembershipAudit(), blind(FEW.build_given(FEW.build_memoriser())))
    assert result.outcome == "found"
    assert result.finding("training_p").value < 0.01
    assert result.finding("flagged_at_fpr_0.1").value > 0.5
    assert "roc" not in result.tables_in_memory
    assert "trained" not in result.tables_in_memory["candidates"].column_names


def test_findings_are_those_of_the_plain_statistics():
    result = judge(MembershipAudit(fpr=(0.1,)), FEW.build_given(FEW.build_memoriser()))
    rows = result.tables_in_memory["candidates"].to_pylist()
    sides = {side: [row for row in rows if row["trained"] is side] for side in (True, False)}
    scores = {
        side: Scores(
            tuple(r["record"] for r in kept), tuple(r["user"] for r in kept), np.array([r["score"] for r in kept])
        )
        for side, kept in sides.items()
    }
    assert result.finding("auc").value == pytest.approx(auc(scores[True], scores[False]).value)
    controls = Scores.from_table(result.tables_in_memory["controls"])
    p = conformal_p([row["score"] for row in rows], controls)
    assert [row["p_value"] for row in rows] == pytest.approx(p.tolist())
    flagged = {side: kept.with_values(conformal_p(kept.values, controls) <= 0.1) for side, kept in scores.items()}
    assert result.finding("recall_at_fpr_0.1").value == recall(flagged[True]).value
    assert result.finding("precision_at_fpr_0.1").value == precision(flagged[True], flagged[False]).value
    limit = result.tables_in_memory["thresholds"].to_pylist()[0]["threshold"]
    assert [row["flagged_at_fpr_0.1"] for row in rows] == [row["score"] > limit for row in rows]
    roc = result.tables_in_memory["roc"].to_pydict()
    assert (roc["fpr"][0], roc["tpr"][-1]) == (0.0, 1.0)
    assert np.trapezoid(roc["tpr"], roc["fpr"]) == pytest.approx(result.finding("auc").value)


def test_by_user_is_the_mean_of_the_users_records():
    records, users = (judge(MembershipAudit(by=by), FEW.build_given(FEW.build_null())) for by in ("record", "user"))
    by_hand: dict[str, list[float]] = {}
    for row in records.tables_in_memory["candidates"].to_pylist():
        by_hand.setdefault(row["user"], []).append(row["score"])
    found = {row["record"]: row["score"] for row in users.tables_in_memory["candidates"].to_pylist()}
    assert found == {user: pytest.approx(np.mean(scores)) for user, scores in by_hand.items()}
    assert len(users.tables_in_memory["controls"]) == FEW.controls


def test_the_papers_mean_threshold_is_the_mean_of_what_was_trained_on():
    result = judge(MembershipAudit(signal="loss"), FEW.build_given(FEW.build_null()))
    rows = result.tables_in_memory["candidates"].to_pylist()
    mean = np.mean([row["score"] for row in rows if row["trained"]])
    caught = np.mean([row["score"] >= mean for row in rows if row["trained"]])
    assert result.finding("loss_recall_at_mean").value == pytest.approx(caught)


def test_rates_that_the_controls_cannot_support_are_refused():
    result = judge(MembershipAudit(fpr=(0.001, 0.1)), FEW.build_given(FEW.build_memoriser()))
    assert codes(result)["flagged_at_fpr_0.001"] == "too_few_controls"
    assert codes(result)["tpr_at_fpr_0.001"] == "too_few_non_members"
    assert "too_few_controls_to_identify" in result.note_codes


def test_controls_that_are_candidates_too_are_left_out():
    given = FEW.build_given(FEW.build_memoriser())
    copied = [replace(record, id=f"copy-{record.id}", user=None) for record in list(given.corpora[AUDITED])[:5]]
    kin = [Record(id="kin", user=given.corpora[AUDITED].open().__next__().user, text="Something else")]
    controls = Corpus.of([*given.corpora[CONTROLS], *copied, *kin])
    result = judge(MembershipAudit(), replace(given, corpora={**given.corpora, CONTROLS: controls}))
    assert result.dropped["controls_shared_with_candidates"] == 1
    assert result.dropped["controls.near_duplicate"] == result.dropped["audited.near_duplicate"] == 5
    assert len(result.tables_in_memory["controls"]) == len(given.corpora[CONTROLS])


def test_ids_of_records_without_users_may_be_the_same_in_both_corpora():
    numbers = np.random.default_rng(0).integers(10, 99, (80, 4)).tolist()
    texts = [" ".join(f"word{number}" for number in row) for row in numbers]
    parts = {
        AUDITED: Corpus.of(Record(id=str(i), text=text) for i, text in enumerate(texts[:30])),
        CONTROLS: Corpus.of(Record(id=str(i), text=text) for i, text in enumerate(texts[30:])),
    }
    target = Memoriser(list(parts[AUDITED]))
    given = replace(blind(FEW.build_given(target)), corpora=parts)
    result = judge(MembershipAudit(), given)
    assert (len(result.tables_in_memory["candidates"]), len(result.tables_in_memory["controls"])) == (30, 50)
    assert result.outcome == "found"


def test_users_of_whom_only_a_part_was_trained_on_are_left_out_by_user():
    given = FEW.build_given(FEW.build_null())
    ids = sorted(record.id for record in given.corpora[AUDITED])
    cohorts = build_cohorts(given.corpora[AUDITED], {"mine": ids[:31]}, unit="record", seed=0)
    result = judge(MembershipAudit(by="user"), replace(given, cohorts={AUDITED: cohorts}))
    assert result.dropped["users_partly_trained_on"] == 1
    assert len(result.tables_in_memory["candidates"]) == 23


def test_a_signal_that_needs_a_reference_trains_it_on_half_of_the_population():
    given = FEW.build_given(FEW.build_memoriser())
    given = replace(given, models={TARGET: given.models[TARGET]})
    audit = MembershipAudit(signal="ratio")
    evidence = collect_evidence(audit, given, score=FEW.score, train=FEW.train)
    trained = {record.owner for record in evidence.corpora["reference-half"]}
    judged = {record.owner for record in evidence.corpora["population"]}
    assert not trained & judged
    assert len(trained) + len(judged) == FEW.controls
    result = judge(audit, given)
    assert result.outcome == "found"
    assert {row["user"] for row in result.tables_in_memory["controls"].to_pylist()} == judged


def test_epsilon_is_set_beside_the_claim():
    world = World(members=60, others=60, controls=40)
    audit = MembershipAudit(claimed_epsilon=0.5, claimed_unit="user", delta=1e-6, by="user")
    result = judge(audit, world.build_given(world.build_memoriser()), world)
    for name in ("epsilon_from_counts", "epsilon_from_one_run"):
        assert result.finding(name).value > 0.5
        assert result.finding(name).reading.endswith(audit.claim.compare(result.finding(name).value, by="user"))
    innocent = judge(audit, world.build_given(world.build_null()), world)
    assert innocent.finding("epsilon_from_one_run").value == 0


@pytest.mark.parametrize("by", ["record", "user"])
def test_a_claim_about_records_is_not_tested_by_users(by):
    audit = MembershipAudit(claimed_epsilon=0.5, by=by)  # three records each: bounds are by user in any case
    finding = judge(audit, FEW.build_given(FEW.build_memoriser())).finding("epsilon_from_counts")
    assert finding.reading.endswith(audit.claim.compare(finding.value, by="user"))
    assert audit.claim.compare(9.0, by="user") == audit.claim.compare(0.1, by="user")


def test_one_run_needs_members_that_a_coin_chose():
    world = World(members=40, others=4, controls=40)
    result = judge(MembershipAudit(), world.build_given(world.build_memoriser()), world)
    assert codes(result)["epsilon_from_one_run"] == "not_randomised"


def test_planted_canaries_bound_epsilon_from_one_run(tmp_path):
    texts = [f"my pin is {i:04d}" for i in range(200)]
    made = [Canary(id=f"c{i}", format="my pin is {digits:4}", text=t, planted=i % 2) for i, t in enumerate(texts)]
    Canaries(corpus="0" * 32, seed=0, canaries=tuple(made)).save(tmp_path / "c.json")
    planted = [Record(id=c.id, text=c.text) for c in made if c.planted]
    for target, least in ((Memoriser([*FEW.member_records, *planted]), 1.0), (FEW.build_memoriser(), 0.0)):
        given = replace(FEW.build_given(target), files={CANARIES: tmp_path / "c.json"})
        bound = judge(MembershipAudit(), given).finding("epsilon_from_canaries").value
        assert bound >= least
        assert (bound > 0) == (least > 0)


def test_sides_that_differ_without_the_model_are_inconclusive():
    given = FEW.build_given(FEW.build_null())
    marked = [
        replace(record, text=f"Mrs Example {record.text}") if record.owner.startswith("member") else record
        for record in given.corpora[AUDITED]
    ]
    corpus = Corpus.of(marked)
    members = sorted({record.owner for record in marked if record.owner.startswith("member")})
    cohorts = Cohorts.of({TARGET: members}, units={r.owner for r in marked}, unit="user", corpus=corpus.digest, seed=0)
    result = judge(
        MembershipAudit(), replace(given, corpora={**given.corpora, AUDITED: corpus}, cohorts={AUDITED: cohorts})
    )
    assert result.finding("blind_auc").value > 0.85
    assert (result.outcome, result.outcome_code) == ("inconclusive", "not_comparable")
    assert {"auc", "membership_p", "identified"} <= {each.finding for each in result.withheld}
    assert not {"auc", "membership_p", "identified"} & {each.name for each in result.findings}
    assert "p_value" not in result.tables_in_memory["candidates"].column_names
    assert judge(MembershipAudit(), given).guard.comparable


@pytest.mark.parametrize("sides", [("member",), ("member", "other")])
def test_names_that_no_two_people_share_are_seen_if_only_members_have_them(sides):
    given = FEW.build_given(FEW.build_null())
    rng = np.random.default_rng(0)
    users = sorted({record.owner for record in given.corpora[AUDITED]})
    names = {user: "".join(rng.choice(list("abcdefgh"), 8)).capitalize() for user in users}
    named = [
        replace(record, text=f"{names[record.owner]} {names[record.owner][::-1].capitalize()} {record.text.lower()}")
        if record.owner.startswith(sides)
        else replace(record, text=record.text.lower())
        for record in given.corpora[AUDITED]
    ]
    corpus = Corpus.of(named)
    members = [user for user in users if user.startswith("member")]
    cohorts = Cohorts.of({TARGET: members}, units=users, unit="user", corpus=corpus.digest, seed=0)
    result = judge(
        MembershipAudit(), replace(given, corpora={**given.corpora, AUDITED: corpus}, cohorts={AUDITED: cohorts})
    )
    assert result.guard.comparable == (sides != ("member",))


def test_models_that_do_not_compare_are_refused_before_any_cost():
    world = World(kind="masked", members=4, others=4, controls=4)
    given = world.build_given(world.build_null())
    asked = Null(kind="masked", question=Question(mask_seed=7))
    with refused("different_questions"):
        judge(MembershipAudit(), replace(given, models={**given.models, REFERENCE: asked}), world)
    with refused("unsupported_kind"):
        judge(MembershipAudit(signal="confidence"), given, world)
    units = given.cohorts[AUDITED]
    several = Cohorts.of({"a": [], "b": []}, units=units.units, unit="user", corpus=units.corpus, seed=0)
    with refused("no_target_in_cohorts"):
        judge(MembershipAudit(), replace(given, cohorts={AUDITED: several}), world)


@pytest.mark.parametrize(
    ("settings", "code"),
    [
        ({"fpr": ()}, "no_fpr"),
        ({"fpr": (2.0,)}, "out_of_range"),
        ({"by": "family"}, "unknown_choice"),
        ({"signal": "los"}, "unknown_signal"),
        ({"signal_settings": {"fraction": 0.1}}, "settings_without_signal"),
        ({"shadows": 1}, "out_of_range"),
    ],
)
def test_settings_that_make_no_sense_are_refused(settings, code):
    with refused(code, PlanError):
        MembershipAudit(**settings)
