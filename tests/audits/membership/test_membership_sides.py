"""Whoever decides is guarded: members and non-members beside controls, one user, users on both sides, equal scores."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from recollect.audits.membership.audit import MembershipAudit
from recollect.audits.rounds import collect_evidence
from recollect.corpora.cohorts import Cohorts
from recollect.corpora.corpus import Corpus
from recollect.corpora.members import Members
from recollect.corpora.record import Record
from recollect.errors import PlanError
from recollect.signals.evidence import AUDITED, CONTROLS, TARGET, Evidence
from recollect.streams import stream
from recollect.testing.fakes import Memoriser, Null, Scripted, Uniform
from recollect.testing.world import WorldAnswers


def write(seed, name, people, each, words=300):
    """Records of people who take their words from the first so many."""
    rng = stream(seed, name)
    return [
        Record(
            id=f"{name}-{i}-{j}",
            user=f"{name}-{i}",
            text=" ".join(f"word{int(words ** rng.random())}" for _ in range(int(rng.integers(8, 16)))),
        )
        for i in range(people)
        for j in range(each)
    ]


def guess(records, easy=(), *, seed=0):
    """A model that saw nobody; some users write what is easy to guess."""
    rng = np.random.default_rng(seed)
    chance = {record.id: 0.6 if record.owner.startswith(tuple(easy)) else 0.2 for record in records}
    return Scripted(
        {record.id: chance[record.id] * rng.uniform(0.5, 1, len(record.text.split())) for record in records}
    )


def judge(audited, controls=None, *, target, members=None, by="user", seed=1):
    audit = MembershipAudit(signal="loss", by=by, fpr=(0.1,))
    corpora = {AUDITED: Corpus.of(audited)} | ({} if controls is None else {CONTROLS: Corpus.of(controls)})
    given = Evidence(models={TARGET: target}, corpora=corpora, members=members, seed=seed)
    complete = collect_evidence(audit, given, score=lambda model, corpus: WorldAnswers(model), train=None)
    return audit.run(complete, stream(seed, audit.name))


def known(records, members, others, unit="user"):
    names = {record.owner if unit == "user" else record.id for record in records}
    sides = (frozenset(name for name in names if name.startswith(tuple(start))) for start in (members, others))
    return Members(unit=unit, members=next(sides), non_members=next(sides))


@pytest.mark.parametrize("by", ["user", "record"])
def test_members_who_write_otherwise_than_non_members_are_no_evidence_beside_controls(by):
    audited = [*write(1, "easy", 10, 4, words=6), *write(1, "hard", 10, 4), *write(1, "new", 1, 4)]
    controls = [*write(2, "easier", 20, 4, words=6), *write(2, "harder", 20, 4)]
    target = guess([*audited, *controls], ("easy", "easier"))
    result = judge(audited, controls, target=target, members=known(audited, ["easy"], ["hard"]), by=by)
    assert result.outcome == "not_found"
    assert {"auc", "membership_p"} <= {each.finding for each in result.withheld}
    assert "controls" in result.verdict


def test_members_and_non_members_are_named_so_wherever_they_are_compared():
    audited = [*write(1, "easy", 20, 4, words=6), *write(1, "hard", 19, 4)]
    members = known(audited, ["easy"], ["hard"])
    result = judge(audited, target=guess(audited, ("easy",)), members=members)
    assert result.outcome_code == "not_comparable"
    assert {each.code for each in result.withheld} == {"not_comparable"}, "no other reason beside the verdict's"
    assert result.finding("blind_auc").n == {"member_users": 20, "non_member_users": 19}
    assert result.power.effect_unit.startswith("AUC of members against non-members")
    assert "19 non-members, one of which plays the members" in result.placebo.reason


def test_members_of_other_amounts_who_are_not_comparable_are_withheld_for_that_alone():
    audited = [*write(1, "easy", 20, 9, words=6), *write(1, "hard", 20, 2)]
    result = judge(audited, target=guess(audited, ("easy",)), members=known(audited, ["easy"], ["hard"]))
    assert result.outcome_code == "not_comparable"
    assert {"auc", "membership_p"} <= {each.finding for each in result.withheld}
    assert {each.code for each in result.withheld} == {"not_comparable"}


@pytest.mark.parametrize("easy", [("ann",), ()])
def test_the_p_value_that_decides_says_how_it_was_made_and_candidates_are_not_counted_as_members(easy):
    audited, controls = write(1, "ann", 30, 4), write(2, "bob", 60, 4)
    result = judge(audited, controls, target=guess([*audited, *controls], easy))
    decides, group = result.finding("any_member_p"), result.finding("training_p").value
    smallest = min(result.tables_in_memory["candidates"]["p_corrected"].to_pylist())
    if easy:
        assert decides.value == 2 * min(group, smallest) <= 0.005
        assert decides.method == "twice the smaller of the smallest corrected p-value and training_p"
    else:
        assert decides.value < 2 * min(group, smallest)
        assert "permutation" in decides.method
    counted = result.finding("auc_against_controls").n
    assert counted == {"candidates": 30, "controls": 60, "candidate_users": 30, "control_users": 60}


def test_where_controls_decide_about_two_known_users_the_controls_are_checked():
    audited, controls = write(1, "easy", 2, 4, words=6), write(2, "hard", 45, 4)
    members = Members(unit="user", members=frozenset({"easy-0"}), non_members=frozenset({"easy-1"}))
    result = judge(audited, controls, target=guess([*audited, *controls], ("easy",)), members=members)
    assert (result.outcome, result.outcome_code) == ("inconclusive", "not_comparable")


@pytest.mark.parametrize("controls", [True, False])
def test_records_of_one_member_are_inconclusive_and_the_sentence_counts_who_was_compared(controls):
    audited = [*write(1, "ann", 1, 30), *write(1, "bob", 20, 3)]
    others = write(2, "cid", 45, 4) if controls else None
    members = known(audited, ["ann"], ["bob"])
    result = judge(audited, others, target=Null(), members=members, by="record")
    assert result.outcome_code == "no_power"
    assert "1 user in the training set and" in result.verdict
    assert "control users would be enough" not in result.verdict
    assert result.power.needed["non_member_users"] > result.finding("membership_p").n["other_users"]


@pytest.mark.parametrize("each", [(20, 4), (4, 4)])
def test_without_controls_the_verdict_does_not_speak_of_controls(each):
    audited = [*write(1, "ann", 15, each[0]), *write(1, "bob", 15, each[1])]
    result = judge(audited, target=Null(), members=known(audited, ["ann"], ["bob"]))
    assert "significantly above the controls" not in result.verdict
    assert "reveals" in result.verdict


def test_users_of_whom_some_records_are_members_are_compared_within_and_the_verdict_says_so():
    audited, controls = write(4, "ann", 12, 6), write(4, "cid", 45, 4)
    members = Members(
        unit="record",
        members=frozenset(record.id for record in audited[::2]),
        non_members=frozenset(record.id for record in audited[1::2]),
    )
    result = judge(audited, controls, target=Null(), members=members)
    assert result.outcome == "not_found"
    assert "every user has members and non-members among their records" in result.verdict


def test_where_all_scores_are_the_same_nothing_can_be_determined():
    result = judge(write(1, "ann", 6, 4), write(2, "cid", 45, 4), target=Uniform())
    assert (result.outcome, result.outcome_code) == ("inconclusive", "no_power")
    assert result.power.smallest_p == 1
    assert "many of whose scores are the same" in result.verdict
    assert "control_users" not in result.power.needed


def test_a_single_candidate_is_not_tested_twice():
    audited, controls = write(4, "ann", 1, 1), write(4, "cid", 60, 5)
    target = Scripted(
        {
            record.id: [0.9 if record.owner == "ann-0" else 0.2] * len(record.text.split())
            for record in [*audited, *controls]
        }
    )
    result = judge(audited, controls, target=target)
    assert result.finding("any_member_p").value == result.tables_in_memory["candidates"]["p_value"][0].as_py()
    assert result.verdict.startswith("Evidence that the candidate user was in the training data")


def test_the_target_is_no_reference_of_its_own():
    audit, audited, controls = MembershipAudit(signal="ratio"), write(4, "ann", 6, 2), write(4, "cid", 20, 2)
    given = Evidence(
        models={TARGET: Null(), "reference": Null()},
        corpora={AUDITED: Corpus.of(audited), CONTROLS: Corpus.of(controls)},
    )
    with pytest.raises(PlanError, match="target itself"):
        audit.needs(given)


@pytest.mark.parametrize("signal", ["lira", "lira-offline", "rmia"])
@pytest.mark.parametrize("halves", [True, False])
def test_candidates_that_trained_every_shadow_get_no_score(signal, halves):
    audited, controls = write(4, "ann", 8, 3), write(4, "cid", 40, 3)
    always, users = {"ann-0", "ann-1"}, sorted({record.owner for record in audited})
    trained = {f"shadow-{i}": sorted(always | set(users[2 + i % 2 :: 2] if halves else ())) for i in range(4)}
    models = {
        name: Memoriser([r for r in audited if r.owner in chosen], otherwise=Null(seed=i + 2), name=name)
        for i, (name, chosen) in enumerate(trained.items())
    }
    corpus, audit = Corpus.of(audited), MembershipAudit(signal=signal, by="user", fpr=(0.1,))
    cohorts = Cohorts.of(trained, units=users, unit="user", corpus=corpus.digest, seed=0)
    corpora = {AUDITED: corpus, CONTROLS: Corpus.of(controls)}
    given = Evidence(models={TARGET: Null(seed=1), **models}, corpora=corpora, cohorts={AUDITED: cohorts}, seed=1)
    complete = collect_evidence(audit, given, score=lambda model, corpus: WorldAnswers(model), train=None)
    if signal == "lira" and not halves:
        with pytest.raises(PlanError, match="some were and others were not"):
            audit.run(complete, stream(1, audit.name))
        return
    result = audit.run(complete, stream(1, audit.name))
    assert result.outcome != "found"
    assert result.dropped["candidates_without_score"] == 6
    assert always.isdisjoint(result.tables_in_memory["candidates"]["user"].to_pylist())


def test_where_all_texts_are_copies_the_verdict_says_that_they_were_left_out():
    audited = write(4, "ann", 6, 2)
    copies = [Record(id=f"copy-{r.id}", user=f"copy-{r.user}", text=r.text.upper()) for r in audited]
    result = judge(audited, copies, target=Null())
    assert result.outcome_code == "too_few_records"
    assert "0 candidate users and 0 controls are too few (12 records of candidates and 12 of controls" in result.verdict


def test_controls_that_are_many_but_have_too_little_text_are_not_said_to_be_too_few():
    audited, controls = write(4, "ann", 1, 400), write(4, "cid", 60, 5)
    result = judge(audited, controls, target=Null())
    assert result.outcome_code == "no_power"
    assert "control users with as much text would be enough" in result.verdict


def audit_people_who_score_higher_by(gain, records):
    """Six people against 45 with four records each."""
    audited, controls, rng = write(4, "ann", 6, records), write(4, "cid", 45, 4), np.random.default_rng(0)
    ease = {user: rng.normal() for user in sorted({r.owner for r in [*audited, *controls]})}
    chance = {user: 0.2 * np.exp(0.3 * (z + gain * user.startswith("ann"))) for user, z in ease.items()}
    target = Scripted({r.id: np.full(len(r.text.split()), min(0.9, chance[r.owner])) for r in [*audited, *controls]})
    return judge(audited, controls, target=target)


@pytest.mark.parametrize(("gain", "near"), [(0.0, False), (1.0, True)])
def test_a_p_value_near_the_threshold_of_unequal_amounts_is_said_to_depend_on_the_seed(gain, near):
    result = audit_people_who_score_higher_by(gain, records=8)
    assert (0.025 < result.finding("any_member_p").value <= 0.1) is near
    assert ("near_the_threshold" in result.note_codes) is near


@pytest.mark.parametrize(("gain", "near"), [(0.5, False), (0.7, True), (1.0, False)])
def test_a_p_value_of_equal_amounts_is_said_to_depend_on_the_seed_within_the_error_of_its_permutations(gain, near):
    result = audit_people_who_score_higher_by(gain, records=4)
    assert (abs(result.finding("any_member_p").value - 0.05) < 0.0147) is near
    assert ("near_the_threshold" in result.note_codes) is near


def test_copies_of_a_users_own_texts_count_once():
    audited, controls = write(4, "ann", 1, 12), write(4, "cid", 45, 12)
    copied = [*audited[:4], *(replace(audited[i % 4], id=audited[i].id) for i in range(4, 12))]
    result = judge(copied, controls, target=Null())
    assert result.dropped["audited.near_duplicate"] == 8
    alone = judge(audited[:4], controls, target=Null())
    assert result.finding("any_member_p").value == alone.finding("any_member_p").value


def test_copies_of_candidates_without_users_count_once():
    audited, controls = (
        [replace(r, user=None) for r in write(4, name, n, 1)] for name, n in (("ann", 12), ("cid", 45))
    )
    copied = [*audited, *(replace(record, id=f"{record.id}-again") for record in audited)]
    result, alone = (judge(records, controls, target=Null(), by="record") for records in (copied, audited))
    assert result.dropped["audited.near_duplicate"] == 12
    assert result.finding("any_member_p").value == alone.finding("any_member_p").value
