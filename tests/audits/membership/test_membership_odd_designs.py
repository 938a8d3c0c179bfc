"""Designs that invite a false accusation: tiny, tied, copied, lopsided. Nobody in them was trained on."""

from __future__ import annotations

import numpy as np
import pytest

from recollect.audits.membership.audit import MembershipAudit
from recollect.audits.rounds import collect_evidence
from recollect.corpora.corpus import Corpus
from recollect.corpora.record import Record
from recollect.errors import RecollectError
from recollect.signals.evidence import AUDITED, CONTROLS, TARGET, Evidence
from recollect.stats.significance import binomial_p
from recollect.streams import stream
from recollect.testing.fakes import Null
from recollect.testing.world import WorldAnswers

FEW, MANY = 4, 60


def write(rng, name, people, each, words=(6, 18)):
    """Records of people who all write alike; the number of records may differ from person to person."""
    return [
        Record(
            id=f"{name}-{i}-{j}",
            user=f"{name}-{i}",
            text=" ".join(f"word{int(300 ** rng.random())}" for _ in range(int(rng.integers(*words)))),
        )
        for i in range(people)
        for j in range(each if isinstance(each, int) else int(rng.integers(*each)))
    ]


def repeat(records, times):
    """Every text several times, under new ids."""
    return [Record(id=f"{r.id}/{n}", user=r.user, text=r.text) for r in records for n in range(times)]


def copy(records, name):
    """The same texts of other people."""
    return [Record(id=f"{name}{r.id}", user=f"{name}{r.user}", text=r.text) for r in records]


def say(text, people=6):
    """One text of several people."""
    return [Record(id=f"a{i}", user=f"a{i}", text=text) for i in range(people)]


DESIGNS = {
    "one person, one word": lambda rng, others: (write(rng, "ann", 1, 1, (1, 2)), others),
    "every text three times": lambda rng, others: (repeat(write(rng, "ann", 6, 4), 3), others),
    "the same text for all": lambda rng, others: (say("see you at nine then"), others),
    "texts of the controls": lambda rng, others: (copy(others[:24], "a"), others),
    "amounts from one to forty": lambda rng, others: (write(rng, "ann", 8, (1, 40)), write(rng, "bob", 45, (1, 40))),
    "two controls": lambda rng, others: (write(rng, "ann", 3, 4), others[:8]),
    "one person with one record": lambda rng, others: (
        [*write(rng, "ann", 5, 20), *write(rng, "eve", 1, 1)],
        write(rng, "bob", 45, 20),
    ),
    "long texts of few words": lambda rng, others: (say("word1 word2 " * 15), others),
}
"""The audited and the controls, by design."""


def count_accusations(design, worlds):
    """How often something is found, and somebody named."""
    found, named = 0, 0
    for seed in range(worlds):
        rng = np.random.default_rng(seed)
        audited, controls = DESIGNS[design](rng, write(rng, "bob", 45, 4))
        audit = MembershipAudit(signal="loss", by="user", fpr=(0.1,))
        given = Evidence(
            models={TARGET: Null(seed=seed)},
            corpora={AUDITED: Corpus.of(audited), CONTROLS: Corpus.of(controls)},
            seed=seed,
        )
        try:
            evidence = collect_evidence(audit, given, score=lambda model, corpus: WorldAnswers(model), train=None)
            result = audit.run(evidence, stream(seed, audit.name))
        except RecollectError:
            continue
        found += result.outcome == "found"
        named += any(result.tables_in_memory["candidates"].to_pydict().get("identified", []))
    return found, named


@pytest.mark.parametrize("design", list(DESIGNS)[:4])
def test_nobody_is_accused_for_an_odd_design(design):
    assert max(binomial_failures(design, FEW)) == 0


@pytest.mark.slow
@pytest.mark.parametrize("design", DESIGNS)
def test_odd_designs_accuse_no_more_often_than_stated(design):
    assert max(binomial_failures(design, MANY)) == 0


def binomial_failures(design, worlds):
    """Which of the two rates are significantly above the stated one."""
    return [binomial_p(count, worlds, 0.05) < 0.001 for count in count_accusations(design, worlds)]
