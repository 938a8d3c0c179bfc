"""A person's texts of January beside controls' of March: nobody is accused for the month they wrote in."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import UTC, datetime

import numpy as np
import pytest

from recollect.audits.provenance.audit import ProvenanceAudit
from recollect.audits.rounds import collect_evidence
from recollect.corpora.corpus import Corpus
from recollect.corpora.record import Record
from recollect.signals.evidence import AUDITED, CONTROLS, TARGET, Evidence
from recollect.streams import stream
from recollect.testing.fakes import Memoriser, Null
from recollect.testing.world import WorldAnswers

EACH = 4
JANUARY, MARCH = 1, 3


def write(name, users, months, *, seed, named=True):
    """People who write about the news of the month: some words that occur in no other month."""
    rng, records = np.random.default_rng([seed, *name.encode()]), []
    for user in range(users):
        for number in range(EACH):
            month = int(rng.choice(months))
            news = [f"news{month}x{int(rng.integers(12))}" for _ in range(4)]
            words = [*(f"word{int(300 ** rng.random())}" for _ in range(8)), *news]
            records.append(
                Record(
                    id=f"{name}{user}-{number}",
                    user=f"{name}{user}" if named else None,
                    text=" ".join(rng.permutation(words).tolist()),
                    time=datetime(2026, month, int(rng.integers(1, 28)), tzinfo=UTC),
                )
            )
    return records


@dataclass(frozen=True, kw_only=True)
class OfJanuary(Null):
    """A model of January's texts, which none of these people wrote: it finds January's news easier than others do."""

    name: str = "of january"

    def score_words(self, record, words):
        told = super().score_words(record, words)
        easier = np.array([word.startswith(f"news{JANUARY}x") for word in words])
        probability = np.exp(told.logprob)
        return self.score_with_probability(record, np.where(easier, 0.5 + probability / 2, probability))


def judge(seed, months, *, timed=True, target=None, person=None, controls=None):
    """What the audit says of one person who wrote in January."""
    person = write("me", 1, [JANUARY], seed=seed, named=False) if person is None else person
    controls = write("c", 100, months, seed=seed) if controls is None else controls
    if not timed:
        person, controls = ([replace(record, time=None) for record in side] for side in (person, controls))
    corpora = {AUDITED: Corpus.of(person), CONTROLS: Corpus.of(controls)}
    models = {TARGET: target or OfJanuary(seed=seed)}
    audit = ProvenanceAudit(shadows=2)

    def train(cohorts, corpus):
        return {
            name: Memoriser(tuple(cohorts.select_corpus(corpus, name)), otherwise=Null(seed=50 + i), name=name)
            for i, name in enumerate(cohorts.models)
        }

    given = Evidence(models=models, corpora=corpora, seed=seed, trainable=True)
    evidence = collect_evidence(audit, given, score=lambda model, texts: WorldAnswers(model), train=train)
    return audit.run(evidence, stream(seed, audit.name))


@pytest.mark.parametrize("timed", [True, False])
def test_a_person_of_january_beside_controls_of_march_is_not_accused(timed):
    results = [judge(seed, [MARCH], timed=timed) for seed in range(4)]
    assert all(result.outcome_code == "not_comparable" for result in results)
    assert not any(finding.name == "lowest_p_corrected" for result in results for finding in result.findings)


@pytest.mark.parametrize(("month", "comparable"), [(6, True), (12, False)])
def test_dates_that_are_scattered_are_compared_and_dates_that_are_shifted_are_not(month, comparable):
    controls = [record for m in range(1, 12) for record in write(f"c{m}-", 9, [m], seed=m)]
    person = write("me", 1, [month], seed=1, named=False)
    result = judge(1, None, target=Null(seed=1), person=person, controls=controls)
    assert (result.outcome_code != "not_comparable") == comparable
    assert ("0 calibration users have texts of the same month" in result.verdict_text) != comparable


def judge_beside_few_of_january(seed, people, target):
    """What the audit says of people if a few controls wrote in January, and all others in March."""
    few, most = write("few", 12, [JANUARY], seed=seed), write("most", 88, [MARCH], seed=seed)
    return judge(seed, None, target=target, person=people, controls=[*few, *most])


def test_nobody_is_accused_for_a_month_that_few_controls_wrote_in():
    people = {seed: write("me", 1, [JANUARY], seed=seed) for seed in range(11, 16)}
    results = [judge_beside_few_of_january(seed, each, OfJanuary(seed=seed)) for seed, each in people.items()]
    assert {result.outcome for result in results} == {"inconclusive", "not_found"}


def test_a_person_who_scores_high_for_that_month_is_told_so_and_has_no_p_value():
    person = write("me", 1, [JANUARY], seed=2)
    result = judge_beside_few_of_january(2, person, Memoriser(person, otherwise=OfJanuary(seed=2)))
    assert (result.outcome, result.outcome_code) == ("inconclusive", "not_comparable")
    assert "fewer than 19 of these wrote in the same period" in result.verdict_text
    (row,) = result.tables_in_memory["users"].to_pylist()
    assert (row["decision"], row["unlike"], row["p_value"]) == ("unlike the controls", "another period", None)


def test_controls_who_wrote_in_both_months_are_cut_to_the_month_of_the_person():
    result = judge(1, [JANUARY, MARCH])
    assert result.guard.comparable
    assert {check.name for check in result.guard.checks} >= {"date", "vocabulary"}
    assert "periods_not_compared" not in result.note_codes
    assert result.outcome == "not_found"


def test_a_person_who_was_trained_on_is_found_among_controls_of_the_same_month():
    person = write("me", 1, [JANUARY], seed=1, named=False)
    target = Memoriser(person, otherwise=OfJanuary(seed=1))
    result = judge(1, [JANUARY, MARCH], target=target, person=person)
    assert result.outcome == "found"
    assert "another period" not in result.verdict_text
    assert result.placebo.status in ("passed", "not_run")
    assert result.power.smallest_p <= 0.05


def test_a_finding_without_times_says_on_what_condition_it_holds():
    person = write("me", 1, [JANUARY], seed=1, named=False)
    target = Memoriser(person, otherwise=Null(seed=1))
    result = judge(1, [JANUARY], target=target, person=person, timed=False)
    assert result.outcome == "found"
    assert "if the controls wrote in another period, this may be that difference" in result.verdict_text
