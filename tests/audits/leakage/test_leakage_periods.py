"""Users of one month beside controls of another: nobody is accused for the month they wrote in."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import UTC, datetime

import numpy as np
import pytest

from recollect.audits.leakage.audit import LeakageAudit
from recollect.audits.rounds import collect_evidence
from recollect.corpora.corpus import Corpus
from recollect.corpora.record import Record
from recollect.signals.evidence import AUDITED, CONTROLS, TARGET, Evidence
from recollect.stats.significance import binomial_p
from recollect.streams import stream
from recollect.testing.fakes import Memoriser, Null
from recollect.testing.world import WorldAnswers

JANUARY, MARCH = 1, 3


def write(name, users, months, *, seed, each=4):
    """People who write about the news of the month: some words that occur in no other month."""
    rng, records = np.random.default_rng([seed, *name.encode()]), []
    for user in range(users):
        for number in range(each):
            month = int(rng.choice(months))
            news = [f"news{month}x{int(rng.integers(60))}" for _ in range(4)]
            words = [*(f"word{int(300 ** rng.random())}" for _ in range(6)), *news]
            records.append(
                Record(
                    id=f"{name}{user}-{number}",
                    user=f"{name}{user}",
                    text=" ".join(rng.permutation(words).tolist()),
                    time=datetime(2026, month, int(rng.integers(1, 28)), tzinfo=UTC),
                )
            )
    return records


@dataclass(frozen=True, kw_only=True)
class OfJanuary(Null):
    """A model of January's texts, which none of these people wrote: it predicts January's news."""

    name: str = "of january"

    def score_words(self, record, words):
        probability = np.exp(super().score_words(record, words).logprob)
        news = np.array([word.startswith(f"news{JANUARY}x") for word in words])
        return self.score_with_probability(record, np.where(news, 0.9, probability))


def judge(seed, months, *, timed=True, memorised=False):
    """What the audit says of twenty users who wrote in January."""
    audited, controls = write("a", 20, [JANUARY], seed=seed), write("c", 60, months, seed=seed, each=6)
    target = OfJanuary(seed=seed)
    target = Memoriser(audited, otherwise=target) if memorised else target
    if not timed:
        audited, controls = ([replace(record, time=None) for record in side] for side in (audited, controls))
    corpora = {AUDITED: Corpus.of(audited), CONTROLS: Corpus.of(controls)}
    given = Evidence(models={TARGET: target, "reference": Null(seed=99)}, corpora=corpora, seed=seed)
    audit = LeakageAudit()
    evidence = collect_evidence(audit, given, score=lambda model, texts: WorldAnswers(model), train=None)
    return audit.run(evidence, stream(seed, audit.name))


@pytest.mark.parametrize("timed", [True, False])
def test_users_of_january_beside_controls_of_march_are_not_accused(timed):
    results = [judge(seed, [MARCH], timed=timed) for seed in range(3)]
    assert all(result.outcome_code == "not_comparable" for result in results)
    assert not any(finding.name == "leakage_p" for result in results for finding in result.findings)


def test_controls_who_wrote_in_both_months_are_cut_to_january():
    results = [judge(seed, [JANUARY, JANUARY, MARCH]) for seed in range(3)]
    assert binomial_p(sum(result.outcome == "found" for result in results), len(results), 0.05) > 0.001
    assert any(result.outcome == "not_found" for result in results)
    assert all("amounts_matched" in result.note_codes for result in results)


def test_what_leaks_is_found_among_controls_of_the_same_month():
    assert judge(1, [JANUARY, JANUARY, MARCH], memorised=True).outcome == "found"
