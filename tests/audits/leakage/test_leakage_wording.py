"""What the leakage audit says, kept in one file."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from recollect.audits.leakage.audit import LeakageAudit
from recollect.audits.rounds import collect_evidence
from recollect.corpora import Corpus, Record
from recollect.errors import RecollectError
from recollect.models.access import Access
from recollect.models.limited import limited
from recollect.signals.evidence import AUDITED, CONTROLS, TARGET
from recollect.streams import stream
from recollect.testing.fakes import Memoriser, Null
from recollect.testing.wording import check_wording
from recollect.testing.world import World


@dataclass(frozen=True, kw_only=True)
class Silent(Null):
    """A model that never finds a true word most likely."""

    name: str = "silent"

    def score_words(self, record, words):
        return self.score_with_probability(record, np.full(len(words), 1e-4))


def judge(world, target, **changes):
    """The result, or the error that was raised instead."""
    audit = changes.pop("audit", LeakageAudit())
    given = replace(world.build_given(target), **changes)
    try:
        return audit.run(collect_evidence(audit, given, score=world.score, train=world.train), stream(0, audit.name))
    except RecollectError as error:
        return error


def shout(world):
    """The controls in capitals."""
    return Corpus.of(replace(record, text=record.text.upper()) for record in world.corpora[CONTROLS])


def halve(world):
    """The audited users with two records of three."""
    return Corpus.of(record for record in world.corpora[AUDITED] if not record.id.endswith("-0"))


def cases():
    """Small worlds, each of which has something else said of it."""
    world, few = World(members=24, others=0, controls=30, seed=2), World(members=5, others=0, controls=2)
    memoriser, masked = world.build_memoriser(), World(kind="masked")
    alone = {"models": {TARGET: memoriser}}
    audited = {"corpora": {AUDITED: world.corpora[AUDITED]}}
    records = Corpus.of(Record(id=record.id, text=record.text) for record in world.corpora[AUDITED])
    cohorts = {
        "target": sorted(world.build_given(memoriser).cohorts[AUDITED].members(TARGET)),
        "reference": ["member-0"],
    }
    crowd = World(members=100, others=0, controls=0)
    leaking = [record for record in crowd.corpora[AUDITED] if record.owner in {f"member-{i}" for i in range(10)}]
    hushed = Memoriser(leaking, otherwise=Silent())
    return {
        "memorised, with a reference and controls": judge(world, memoriser),
        "nothing seen": judge(replace(world, members=0, others=24, seed=3), Null(seed=7)),
        "controls of another kind": judge(world, memoriser, corpora={**world.corpora, CONTROLS: shout(world)}),
        "fewer records than the controls": judge(world, memoriser, corpora={**world.corpora, AUDITED: halve(world)}),
        "nothing comes out": judge(world, Silent()),
        "a reference that has seen somebody": judge(world, memoriser, cohorts={AUDITED: world._build_cohorts(cohorts)}),
        "no users": judge(world, memoriser, corpora={**world.corpora, AUDITED: records}, cohorts={}),
        "ranks alone": judge(world, limited(memoriser, Access.top(1))),
        "no reference and no recipe": judge(world, memoriser, trainable=False, **alone, **audited),
        "folds": judge(world, memoriser, **alone, **audited),
        "retrained without few users": judge(
            crowd, hushed, models={TARGET: hushed}, corpora={AUDITED: crowd.corpora[AUDITED]}
        ),
        "too few controls": judge(few, few.build_memoriser()),
        "fewer users than folds": judge(few, few.build_memoriser(), models={TARGET: few.build_memoriser()}),
        "a reference that has seen everybody": judge(
            world, memoriser, cohorts={AUDITED: world._build_cohorts({**cohorts, "reference": cohorts["target"]})}
        ),
        "a masked model": judge(masked, masked.build_null()),
    }


def test_leakage_says_what_it_did():
    check_wording(cases(), Path(__file__).with_name("wording.txt"))
