"""Unequal designs: whoever has few or short records is accused no more often than stated, and outcomes agree."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest

from recollect.audits.membership import comparison
from recollect.audits.membership.audit import MembershipAudit
from recollect.audits.rounds import collect_evidence
from recollect.corpora.corpus import Corpus
from recollect.corpora.members import Members
from recollect.corpora.record import Record
from recollect.signals.evidence import AUDITED, CONTROLS, TARGET, Evidence
from recollect.stats.significance import binomial_p, conformal_p
from recollect.stats.strata import van_elteren
from recollect.stats.two_sample_tests import mann_whitney
from recollect.streams import stream
from recollect.testing.fakes import Memoriser, Null
from recollect.testing.world import WorldAnswers

FEW, MANY = 4, 60


def write(rng, name, people, each, words=(6, 18)):
    """Records of people who all write alike."""
    return [
        Record(
            id=f"{name}-{i}-{j}",
            user=f"{name}-{i}",
            text=" ".join(f"word{int(300 ** rng.random())}" for _ in range(int(rng.integers(*words)))),
        )
        for i in range(people)
        for j in range(each)
    ]


def judge(audited, controls, *, by="user", seed=0, learnt=(), members=None, source=WorldAnswers):
    target = Memoriser(learnt, otherwise=Null(seed=seed)) if learnt else Null(seed=seed)
    corpora = {AUDITED: Corpus.of(audited), **({CONTROLS: Corpus.of(controls)} if controls else {})}
    given = Evidence(models={TARGET: target}, corpora=corpora, seed=seed, members=members)
    audit = MembershipAudit(signal="loss", by=by, fpr=(0.1,))
    evidence = collect_evidence(audit, given, score=lambda model, corpus: source(model), train=None)
    return audit.run(evidence, stream(seed, audit.name))


def check_agreement(result):
    """`found`, `identified` and the table say the same."""
    rows = result.tables_in_memory["candidates"].to_pydict()
    named = sum(rows.get("identified", []))
    told = {finding.name: finding.value for finding in result.findings}
    assert told.get("identified", 0) == named == sum(p <= 0.05 for p in rows.get("p_corrected", []))
    assert not named or result.outcome == "found"


def count_alarms(worlds, *, people, ours, theirs, by="user", words=(6, 18)):
    """How often nobody's model is accused, and how often single people would be without matching."""
    counts = Counter()
    for seed in range(worlds):
        rng = np.random.default_rng(seed)
        audited, controls = write(rng, "ann", people, ours, words), write(rng, "bob", 60, theirs)
        result = judge(audited, controls, by=by, seed=seed)
        check_agreement(result)
        counts["found"] += result.outcome == "found"
        table = result.tables_in_memory
        counts["named"] += any(table["candidates"].to_pydict().get("identified", []))
        if "p_value" in table["candidates"].column_names:
            counts["first"] += table["candidates"].to_pydict()["p_value"][0] <= 0.05
        plain = conformal_p(table["candidates"]["score"].to_numpy()[:1], table["controls"]["score"].to_numpy())
        counts["plain"] += plain[0] <= 0.05
        counts["inconclusive"] += result.outcome == "inconclusive"
    return counts


DESIGNS = {
    "one record against twelve": {"people": 10, "ours": 1, "theirs": 12},
    "one person, one record": {"people": 1, "ours": 1, "theirs": 12},
    "short records": {"people": 10, "ours": 1, "theirs": 1, "by": "record", "words": (3, 6)},
    "one person, two records": {"people": 1, "ours": 2, "theirs": 12},
    "one person, five records": {"people": 1, "ours": 5, "theirs": 12},
    "two records against twelve": {"people": 10, "ours": 2, "theirs": 12},
    "five records against twelve": {"people": 10, "ours": 5, "theirs": 12},
    "twelve records against four": {"people": 10, "ours": 12, "theirs": 4},
    "three people": {"people": 3, "ours": 12, "theirs": 12},
}


def check(design, worlds):
    counts = count_alarms(worlds, **DESIGNS[design])
    for what in ("found", "named", "first"):
        assert binomial_p(counts[what], worlds, 0.05) > 0.001, (what, counts)
    return counts


@pytest.mark.parametrize("design", list(DESIGNS)[:3])
def test_people_with_little_are_seldom_accused(design):
    check(design, FEW)


@pytest.mark.slow
@pytest.mark.parametrize("design", DESIGNS)
def test_people_with_little_are_accused_no_more_often_than_stated(design):
    counts = check(design, MANY)
    if design == "one person, one record":
        assert binomial_p(counts["plain"], MANY, 0.05) < 0.001


def test_people_with_little_who_were_trained_on_are_found():
    rng = np.random.default_rng(0)
    audited, controls = write(rng, "ann", 10, 2), write(rng, "bob", 60, 12)
    result = judge(audited, controls, learnt=audited)
    assert result.outcome == "found"
    assert result.finding("identified").value == 10
    assert "control_users_to_identify_one" not in result.power.needed, "so many were identified with these"
    assert set(result.tables_in_memory["candidates"]["records_compared"].to_pylist()) == {2}
    assert "amounts_matched" in result.note_codes
    assert {"auc_against_controls"} <= {each.finding for each in result.withheld}


def test_the_note_and_the_power_need_the_same_number_of_controls_where_candidates_are_cut():
    rng = np.random.default_rng(0)
    result = judge(write(rng, "ann", 10, 12), write(rng, "bob", 60, 4))
    needed = result.power.needed["control_users_to_identify_one"]
    assert needed == 2 * 199 + 1
    (note,) = (str(each.text) for each in result.notes if each.code == "too_few_controls_to_identify")
    assert f"{needed:,} control users" in note


def test_no_smaller_p_value_is_promised_than_the_tests_can_give():
    rng = np.random.default_rng(0)
    unequal = judge(write(rng, "ann", 10, 2), write(rng, "bob", 60, 12))
    assert unequal.power.smallest_p >= 2 / 10_000
    above, below = np.arange(30.0) + 100, np.arange(40.0)
    mixed = rng.permutation(np.concatenate([above, below]))
    assert comparison._find_smallest_group_p(mixed[:30], mixed[30:]) == mann_whitney(above, below).p
    strata = [(mixed[:10], mixed[10:30]), (mixed[30:40], mixed[40:])]
    best = [comparison._divide_best(*each) for each in strata]
    assert comparison._find_smallest_stratified_p(strata) == van_elteren(best, rng=rng).p == 1 / 10_000


def test_controls_too_few_for_any_finding_are_inconclusive_with_what_would_be_enough():
    rng = np.random.default_rng(0)
    audited, controls = write(rng, "ann", 1, 4), write(rng, "bob", 12, 4)
    result = judge(audited, controls, learnt=audited)
    assert (result.outcome, result.outcome_code) == ("inconclusive", "no_power")
    assert result.power.smallest_p == pytest.approx(1 / 13)
    assert result.power.needed["control_users"] >= 19
    assert ("identified", "no_power") in {(each.finding, each.code) for each in result.withheld}


def test_members_known_by_record_are_compared_within_their_users():
    rng = np.random.default_rng(1)
    records = write(rng, "ann", 6, 8)
    known = Members(
        unit="record",
        members=frozenset(r.id for r in records if int(r.id[-1]) < 4),
        non_members=frozenset(r.id for r in records if int(r.id[-1]) >= 4),
    )
    learnt = [record for record in records if record.id in known.members]
    found = judge(records, [], by="record", learnt=learnt, members=known)
    assert found.outcome == "found"
    assert found.finding("membership_p").value < 0.001
    nobody = judge(records, [], by="record", members=known)
    assert nobody.outcome == "not_found"
    assert nobody.finding("membership_p").value > 0.05


class Astonished(WorldAnswers):
    """A model that gives one token of bob-0's and bob-1's records probability zero."""

    def get_answers(self, records):
        listed = list(records)
        answers = super().get_answers(listed)
        logprob = answers.logprob.copy()
        for record in listed:
            if record.owner in ("bob-0", "bob-1"):
                logprob[answers.get_rows(record.digest).start] = -np.inf
        return replace(answers, logprob=logprob)


def test_controls_without_probability_are_counted():
    rng = np.random.default_rng(2)
    audited, controls = write(rng, "ann", 4, 2), write(rng, "bob", 30, 2)
    plain, astonished = judge(audited, controls), judge(audited, controls, source=Astonished)
    assert "infinite_scores" not in plain.note_codes
    assert "infinite_scores" in astonished.note_codes
    assert plain.placebo.status == "passed"


def test_results_are_the_same_whether_scores_of_cuts_are_kept_or_computed_anew(monkeypatch):
    rng = np.random.default_rng(3)
    audited, controls = write(rng, "a", 4, 12), write(rng, "c", 30, 5)
    kept = judge(audited, controls)
    monkeypatch.setattr(comparison, "MAX_KEPT", 0)
    anew = judge(audited, controls)
    assert "cuts" in repr(kept)
    assert (kept.outcome, kept.findings) == (anew.outcome, anew.findings)
    assert kept.tables_in_memory["candidates"].equals(anew.tables_in_memory["candidates"])
