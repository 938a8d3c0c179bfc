"""The audit in worlds in which ground truth is known."""

from dataclasses import replace

import numpy as np
import pytest

from recollect.audits.provenance.audit import ProvenanceAudit
from recollect.audits.provenance.comparison import Scored, leave_out_hopeless
from recollect.audits.provenance.needed_controls import ControlSupply
from recollect.audits.provenance.queries import CALIBRATION, QUERIES
from recollect.audits.rounds import collect_evidence
from recollect.corpora.cohorts import Cohorts
from recollect.corpora.corpus import Corpus
from recollect.corpora.members import Members
from recollect.corpora.record import Record
from recollect.errors import AccessError, PlanError
from recollect.models.access import Access
from recollect.models.limited import limited
from recollect.results.result import Placebo
from recollect.signals.evidence import AUDITED, CONTROLS, TARGET, Evidence
from recollect.stats.requirements import required_controls
from recollect.stats.significance import binomial_p, superuniformity_p
from recollect.streams import stream
from recollect.testing.contracts import check_audit
from recollect.testing.fakes import Memoriser, Null, Uniform
from recollect.testing.refusals import refused
from recollect.testing.world import World

WORLD = World(members=12, others=12, controls=160)
SEEDS = range(40)


def gather(audit, world, target, **given):
    evidence = replace(world.build_given(target), seed=world.seed, **given)
    return collect_evidence(audit, evidence, score=world.score, train=world.train)


def result(audit, world, target, **given):
    return audit.run(gather(audit, world, target, **given), stream(world.seed, "provenance"))


def rows(found):
    return {row["user"]: row for row in found.tables_in_memory["users"].to_pylist()}


@pytest.mark.parametrize(
    ("settings", "kind"),
    [
        ({"method": "histogram"}, "causal"),
        pytest.param({"method": "histogram", "top_k": 5}, "causal", marks=pytest.mark.slow),
        pytest.param({"top_k": 1}, "causal", marks=pytest.mark.slow),
        pytest.param({"select": "random", "queries": 2, "least": 5}, "seq2seq", marks=pytest.mark.slow),
    ],
)
def test_every_method_keeps_the_contract(settings, kind):
    check_audit(ProvenanceAudit(shadows=4, **settings), replace(WORLD, kind=kind))


@pytest.mark.parametrize("method", ["calibrated", "histogram"])
def test_who_was_learnt_by_heart_is_found_and_the_truth_is_reported(method):
    found = result(ProvenanceAudit(shadows=4, method=method), WORLD, WORLD.build_memoriser())
    assert found.finding("auc").value == 1
    assert found.finding("recall").value == 1
    assert found.finding("precision").value >= 0.8
    assert all((row["decision"] == "member") >= row["member"] for row in rows(found).values())
    assert found.finding("users_found").n["users"] == 24
    assert {row["user"]: row["member"] for row in rows(found).values()} == {
        user: user.startswith("member") for user in rows(found)
    }


def p_of_one(audit, seed, texts=None):
    """The p-value of a person whom the target cannot have seen."""
    world = World(members=0, others=1, controls=80, seed=seed)
    corpora = dict(world.corpora)
    if texts is not None:
        corpora[AUDITED] = Corpus.of(sorted(corpora[AUDITED], key=lambda record: record.id)[:texts])
    found = result(audit, world, Null(seed=1000 + seed), corpora=corpora, cohorts={})
    (row,) = rows(found).values()
    return row["p_value"]


@pytest.mark.parametrize(
    ("settings", "texts"),
    [
        ({"least": 5}, 1),
        ({"method": "histogram", "least": 5, "top_k": 50}, 1),
        pytest.param({}, None, marks=pytest.mark.slow),
        pytest.param({"top_k": 1}, None, marks=pytest.mark.slow),
        pytest.param({"least": 5, "top_k": 1, "pieces": 4}, 1, marks=pytest.mark.slow),
        pytest.param({"method": "histogram"}, None, marks=pytest.mark.slow),
    ],
)
def test_p_values_of_people_whom_the_target_never_saw_are_uniform_or_larger(settings, texts):
    told = [p_of_one(ProvenanceAudit(shadows=4, **settings), seed, texts) for seed in SEEDS]
    p = [each for each in told if each is not None]
    assert binomial_p(len(told) - len(p), len(told), 0.1) > 0.001, "too often not comparable"
    assert superuniformity_p(p) > 0.001
    assert binomial_p(int(np.sum(np.array(p) <= 0.05)), len(p), 0.05) > 0.001
    assert np.mean(p) < 0.65  # and they are not useless


@pytest.mark.slow
def test_nobody_is_found_among_many_more_often_than_alpha_allows():
    audit = ProvenanceAudit(shadows=4, alpha=0.2)
    worlds = [World(members=0, others=8, controls=100, seed=seed) for seed in SEEDS]
    hits = sum(result(audit, world, Null(seed=1000 + world.seed)).outcome == "found" for world in worlds)
    assert binomial_p(hits, len(worlds), 0.2) > 0.001


def test_a_person_alone_is_tested_against_people_cut_down_to_as_many_texts():
    person = [record for record in WORLD.member_records if record.owner == WORLD.member_records[0].owner]
    texts = [Record(id=record.id, text=record.text) for record in person][:2]
    audit = ProvenanceAudit(shadows=4, least=5)
    given = {"corpora": {**WORLD.corpora, AUDITED: Corpus.of(texts)}, "cohorts": {}}
    evidence = gather(audit, WORLD, WORLD.build_memoriser(), **given)
    assert len(evidence.corpora[QUERIES]) == 2
    assert len(evidence.corpora[CALIBRATION]) == 80
    found = audit.run(evidence, stream(0, "provenance"))
    assert found.outcome == "found"
    assert rows(found)["the person"]["p_value"] == pytest.approx(1 / 41)
    assert rows(found)["the person"]["compared_with"] == 40
    assert found.note_codes == ("queries", "periods_not_compared")


def test_people_with_too_little_text_are_not_tested_and_told_how_much_is_needed():
    short = [Record(id="a", user="ann", text="word1 word2"), Record(id="b", user="bob", text=" ")]
    corpora = {**WORLD.corpora, AUDITED: Corpus.of([*WORLD.corpora[AUDITED], *short])}
    found = result(ProvenanceAudit(shadows=4), WORLD, WORLD.build_memoriser(), corpora=corpora, cohorts={})
    assert {user for user, row in rows(found).items() if row["decision"] == "too little text"} == {"ann", "bob"}
    assert "people_not_tested" in found.note_codes
    alone = {**WORLD.corpora, AUDITED: Corpus.of(short)}
    nothing = result(ProvenanceAudit(shadows=4), WORLD, WORLD.build_memoriser(), corpora=alone, cohorts={})
    assert (nothing.outcome, nothing.outcome_code) == ("inconclusive", "too_little_text")
    assert [(each.finding, each.code) for each in nothing.skipped] == [(None, "too_little_text")]


def test_it_is_reported_when_too_few_calibration_users_have_enough_text():
    person = Corpus.of([Record(id="1", text=" ".join(f"word{i}" for i in range(60)))])
    given = {"corpora": {**WORLD.corpora, AUDITED: person}, "cohorts": {}}
    found = result(ProvenanceAudit(shadows=4), WORLD, Null(), **given)
    assert (found.outcome, found.outcome_code) == ("inconclusive", "too_few_controls")
    assert rows(found)["the person"]["decision"] == "no comparable users"


def test_it_is_reported_when_there_are_too_many_people_for_the_calibration_users():
    world = World(members=4, others=20, controls=80)
    found = result(ProvenanceAudit(shadows=4), world, world.build_memoriser())
    assert found.finding("auc").value == 1
    assert (found.outcome, found.outcome_code) == ("inconclusive", "no_power")
    assert "smallest_p" in found.note_codes


def test_without_power_nothing_is_decided_about_anybody_and_no_share_of_decisions_is_told():
    world = World(members=4, others=20, controls=80)
    found = result(ProvenanceAudit(shadows=4), world, world.build_memoriser())
    assert {row["decision"] for row in rows(found).values()} == {"not decided"}
    decided = {"users_found", "accuracy", "recall", "false_positive_rate"}
    assert {(each.finding, each.code) for each in found.withheld} == {(name, "no_power") for name in decided}
    assert not decided & {each.name for each in found.findings}
    assert found.finding("lowest_p_corrected").value > 0.05


def test_without_power_the_verdict_says_what_is_expected_and_one_need_in_controls():
    world = World(members=4, others=20, controls=80)
    found = result(ProvenanceAudit(shadows=4), world, world.build_memoriser())
    highest = sum(row["p_value"] < 1.5 / 21 for row in rows(found).values())
    calibrating = required_controls(0.05 * highest / 24)
    assert f"{highest} of 24 people are predicted better than all 20 calibration users" in found.verdict
    assert "about 1 would be expected by chance" in found.verdict
    assert found.power.needed.keys() == {"control_users"}
    needed = found.power.needed["control_users"]
    assert f"at least {needed:,} control users" in found.verdict
    assert round(0.25 * needed) >= calibrating > round(0.25 * (needed - 1))


def test_a_larger_share_is_a_way_out_where_controls_are_enough():
    supply = ControlSupply(controls=164, calibrating=41, share=0.25)
    assert supply.find_share(42, usable=41) == 0.3
    assert supply.find_share(60, usable=30) == 0.5, "only those who have as much text can be compared with"
    assert supply.find_share(140, usable=41) is None, "nobody would be left to train the shadows"
    given = ControlSupply(controls=164, calibrating=100, share=0.25)
    assert given.find_share(120, usable=100) is None
    assert given.count_controls(120) == 184, "with given shadows, every further user calibrates"


def test_with_too_few_controls_nothing_is_trained_or_scored():
    audit, world = ProvenanceAudit(shadows=4), World(controls=60)
    evidence = gather(audit, world, world.build_memoriser())
    assert not evidence.answers
    assert evidence.models.keys() == {TARGET, "reference"}
    found = audit.run(evidence, stream(0, "provenance"))
    assert (found.outcome, found.outcome_code) == ("inconclusive", "too_few_controls")


def test_the_next_person_needs_no_new_shadows():
    audit, first = ProvenanceAudit(shadows=4), gather(ProvenanceAudit(shadows=4), WORLD, WORLD.build_memoriser())
    somebody = {**WORLD.corpora, AUDITED: Corpus.of([Record(id="1", user="somebody", text="word3 word4")])}
    second = gather(audit, WORLD, Null(), corpora=somebody, cohorts={})
    for name in ("shadow-0", "shadow-3"):
        assert first.cohorts[CONTROLS].members(name) == second.cohorts[CONTROLS].members(name)


def test_a_model_that_shows_less_than_is_to_be_looked_at_is_refused():
    with pytest.raises(AccessError, match="top 50"):
        gather(ProvenanceAudit(top_k=50), WORLD, limited(WORLD.build_memoriser(), Access.top(5)))


def test_what_the_target_shows_is_all_that_is_looked_at():
    shown = result(ProvenanceAudit(shadows=4), WORLD, limited(WORLD.build_memoriser(), Access.top(3)))
    asked = result(ProvenanceAudit(shadows=4, top_k=3), WORLD, WORLD.build_memoriser())
    assert rows(shown) == rows(asked)


@pytest.mark.parametrize("kind", ["classifier", "masked"])
def test_models_that_do_not_write_word_by_word_are_refused(kind):
    with refused("unsupported_kind", PlanError):
        gather(ProvenanceAudit(), World(kind=kind), Null(kind=kind))


@pytest.mark.parametrize(
    ("settings", "code"),
    [
        ({"shadows": 0}, "out_of_range"),
        ({"queries": 0}, "out_of_range"),
        ({"alpha": 0}, "out_of_range"),
        ({"select": "best"}, "unknown_choice"),
        ({"method": "svm"}, "unknown_choice"),
    ],
)
def test_settings_that_make_no_sense_are_refused(settings, code):
    with refused(code, PlanError):
        ProvenanceAudit(**settings)


def test_people_of_whom_only_a_part_was_used_are_still_found():
    learnt = [record for record in WORLD.member_records if not record.id.endswith("-2")]
    found = result(ProvenanceAudit(shadows=4), WORLD, Memoriser(learnt, otherwise=Null(seed=0)))
    assert found.finding("auc").value > 0.95


def test_artificial_users_stand_in_for_a_corpus_without_any():
    plain = [Record(id=record.id, text=record.text) for record in World(controls=300).corpora[CONTROLS]]
    corpora = {**WORLD.corpora, CONTROLS: Corpus.of(plain)}
    found = result(ProvenanceAudit(shadows=4), WORLD, WORLD.build_memoriser(), corpora=corpora)
    assert found.finding("auc").value == 1


def test_round_0_tells_what_will_be_trained():
    needs = ProvenanceAudit().needs(Evidence())
    assert needs.fleet == {"shadow": 10}
    assert needs.access == {TARGET: Access.LABEL}


def member(found, user):
    return rows(found)[user]["member"]


def test_the_truth_may_be_known_of_some_people_only():
    audit = ProvenanceAudit(shadows=4)
    some = Members(
        unit="user", members=frozenset({"member-0", "member-1"}), non_members=frozenset({"other-0", "other-1"})
    )
    found = result(audit, WORLD, WORLD.build_memoriser(), cohorts={}, members=some)
    assert (member(found, "member-0"), member(found, "other-1"), member(found, "member-2")) == (True, False, None)
    assert (found.finding("auc").n["members"], found.finding("auc").n["others"]) == (2, 2)
    everybody = result(audit, WORLD, WORLD.build_memoriser())
    assert (
        found.tables_in_memory["users"]
        .drop_columns(["member"])
        .equals(everybody.tables_in_memory["users"].drop_columns(["member"]))
    )
    assert found.tables_in_memory["roc"]["tpr"].to_pylist() == [0.0, 0.5, 1.0, 1.0, 1.0]


def test_one_text_that_was_used_makes_a_member_and_all_must_be_known_for_a_non_member():
    ids = {"members": frozenset({"member-0-0"}), "non_members": frozenset({"member-0-1", "other-0-0"})}
    whole = frozenset({f"other-1-{number}" for number in range(3)})
    known = Members(unit="record", members=ids["members"], non_members=ids["non_members"] | whole)
    found = result(ProvenanceAudit(shadows=4), WORLD, WORLD.build_memoriser(), cohorts={}, members=known)
    assert (member(found, "member-0"), member(found, "other-0"), member(found, "other-1")) == (True, None, False)
    assert "roc" in found.tables_in_memory


def test_shadows_alone_in_the_cohorts_are_no_truth():
    shadow = WORLD.build_evidence(WORLD.build_null()).cohorts
    found = result(ProvenanceAudit(shadows=4), WORLD, WORLD.build_memoriser(), cohorts=shadow)
    assert set(found.tables_in_memory["users"]["member"].to_pylist()) == {None}
    assert "roc" not in found.tables_in_memory


def test_shadows_that_were_all_trained_on_everybody_are_inconclusive():
    controls = WORLD.corpora[CONTROLS]
    users = sorted({record.owner for record in controls})
    halves = {"shadow-0": users[:100], "shadow-1": users[:100]}
    cohorts = Cohorts.of(halves, units=users, unit="user", corpus=controls.digest, seed=0)
    models = {TARGET: WORLD.build_null(), **WORLD.train(cohorts, controls)}
    found = result(
        ProvenanceAudit(method="histogram"), WORLD, WORLD.build_null(), models=models, cohorts={CONTROLS: cohorts}
    )
    assert (found.outcome, found.outcome_code) == ("inconclusive", "one_sided_shadows")


class Silent(Null):
    """A target whose first guesses never contain the word."""

    def answer(self, records):
        answers = super().answer(records)
        return replace(answers, rank=np.zeros_like(answers.rank))


@pytest.mark.parametrize(
    ("target", "said"),
    [(Silent(access=Access.top(5)), "shows none of the"), (Uniform(), "the same rank")],
)
@pytest.mark.parametrize("method", ["calibrated", "histogram"])
def test_a_target_that_shows_the_same_of_all_words_is_inconclusive(method, target, said):
    """Without this the shadows alone decided, and a person was accused of whom the target shows nothing."""
    person = [record for record in WORLD.corpora[AUDITED] if record.owner == "other-0"]
    corpora = {**WORLD.corpora, AUDITED: Corpus.of(person)}
    found = result(ProvenanceAudit(shadows=2, method=method), WORLD, target, corpora=corpora, cohorts={})
    assert (found.outcome, found.outcome_code) == ("inconclusive", "no_power")
    assert said in found.verdict


def test_texts_that_somebody_else_wrote_are_named_where_too_little_is_left():
    person = [replace(record, user="me") for record in WORLD.corpora[CONTROLS] if record.owner == "control-0"]
    corpora = {**WORLD.corpora, AUDITED: Corpus.of(person)}
    found = result(ProvenanceAudit(shadows=2), WORLD, Null(), corpora=corpora, cohorts={})
    assert found.outcome_code == "too_little_text"
    assert found.verdict.endswith("left out because somebody else wrote nearly the same: 3.")


@pytest.mark.parametrize("code", ["explained_by_texts", "placebo_failed"])
def test_nobody_is_named_in_the_table_where_the_outcome_is_inconclusive(code, monkeypatch):
    if code == "explained_by_texts":
        monkeypatch.setattr("recollect.audits.provenance.safeguards.explains_scores", lambda *_: True)
    else:
        failed = Placebo(status="failed", reason="it accuses controls")
        monkeypatch.setattr("recollect.audits.provenance.audit.play_placebo", lambda *_, **__: failed)
    found = result(ProvenanceAudit(shadows=4), WORLD, WORLD.build_memoriser())
    assert (found.outcome, found.outcome_code) == ("inconclusive", code)
    assert {each.finding for each in found.withheld} >= {"users_found", "lowest_p_corrected"}
    assert {(row["decision"], row["p_value"]) for row in rows(found).values()} == {("not decided", None)}


def test_people_who_could_not_be_found_at_all_are_not_said_to_show_no_sign():
    """Who is cut has twice the p-value, and needs 39 calibration users for one of 0.05; here there are 30."""
    none, nobody = np.zeros(3), np.zeros(3, dtype=bool)
    found = Scored(
        score=none,
        p=np.array([0.4, 0.4, np.nan]),
        compared_with=np.array([30, 30, 30]),
        matched=nobody,
        cut=np.array([True, False, False]),
        differences=np.full(3, "", dtype=object),
        calibration=none,
    )
    leave_out_hopeless(found, 0.05)
    assert np.isnan(found.p).tolist() == [True, False, True]
    alone = replace(found, p=np.array([0.4, np.nan, np.nan]))
    leave_out_hopeless(alone, 0.05)  # a run in which nobody can be found says so itself
    assert np.isnan(alone.p).tolist() == [False, True, True]
