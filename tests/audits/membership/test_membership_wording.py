"""The sentences of the membership audit, kept in wording.txt."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from recollect.audits.membership.audit import MembershipAudit
from recollect.audits.rounds import collect_evidence, refuse_missing
from recollect.corpora.corpus import Corpus
from recollect.corpora.members import Members
from recollect.errors import RecollectError
from recollect.models.model import Question
from recollect.signals.evidence import AUDITED, TARGET
from recollect.streams import stream
from recollect.testing.fakes import Null
from recollect.testing.wording import check_wording
from recollect.testing.world import World

WORLD = World(members=8, others=8, controls=20, seed=1)
FEW = World(members=1, others=1, controls=1)
LARGE = World(members=50, others=10, controls=40)


def judge(audit, given, world=WORLD):
    return audit.run(collect_evidence(audit, given, score=world.score, train=world.train), stream(0, audit.name))


def given(target, world=WORLD, *, truth=True, controls=True):
    whole = world.build_given(target)
    corpora = dict(whole.corpora) if controls else {AUDITED: whole.corpora[AUDITED]}
    return replace(whole, corpora=corpora, cohorts=whole.cohorts if truth else {})


def partly(evidence):
    members, others = (frozenset({f"{side}-0", f"{side}-1"}) for side in ("member", "other"))
    return replace(evidence, cohorts={}, members=Members(unit="user", members=members, non_members=others))


def marked(evidence):
    """Candidates who all end their texts in the same way, as no control does."""
    records = [replace(record, text=f"{record.text} Mrs Example") for record in evidence.corpora[AUDITED]]
    return replace(evidence, corpora={**evidence.corpora, AUDITED: Corpus.of(records)})


def shadowed(world=WORLD):
    ready = world.build_evidence(world.build_memoriser())
    return replace(ready, answers={})


def caught(call: Callable[[], object]) -> RecollectError:
    try:
        call()
    except RecollectError as error:
        return error
    raise AssertionError("nothing was refused")


def test_every_sentence_is_as_it_was():
    knowing, unlike = given(WORLD.build_memoriser()), Null(kind="masked", question=Question(mask_seed=7))
    masked = World(kind="masked", members=2, others=2, controls=2)
    mixed = masked.build_given(masked.build_null())
    claim = MembershipAudit(claimed_epsilon=0.5, claimed_unit="user", delta=1e-6, by="user", fpr=(0.1,))
    results = {
        "truth known, model memorised": judge(MembershipAudit(), knowing),
        "truth known, model saw nobody": judge(MembershipAudit(signal="loss", fpr=(0.1,)), given(WORLD.build_null())),
        "truth unknown, model memorised": judge(
            MembershipAudit(by="user"), given(WORLD.build_memoriser(), truth=False)
        ),
        "truth unknown, model saw nobody": judge(MembershipAudit(), given(WORLD.build_null(), truth=False)),
        "truth partly known": judge(MembershipAudit(by="user"), partly(knowing)),
        "no controls, truth known": judge(MembershipAudit(), given(WORLD.build_memoriser(), controls=False)),
        "no controls, model saw nobody": judge(MembershipAudit(), given(WORLD.build_null(), controls=False)),
        "too few": judge(MembershipAudit(), given(FEW.build_null(), FEW), FEW),
        "too few, no controls": judge(MembershipAudit(), given(FEW.build_null(), FEW, controls=False), FEW),
        "claim refuted": judge(claim, given(LARGE.build_memoriser(), LARGE), LARGE),
        "not comparable": judge(MembershipAudit(), marked(given(WORLD.build_null(), truth=False))),
        "shadows given": judge(MembershipAudit(signal="lira"), shadowed()),
    }
    one, other = knowing.cohorts[AUDITED], {"a": [], "b": []}
    several = type(one).of(other, units=one.units, unit="user", corpus=one.corpus, seed=0)
    refusals = {
        "nothing given": lambda: refuse_missing(MembershipAudit(), ()),
        "no controls": lambda: refuse_missing(MembershipAudit(), {TARGET, AUDITED}),
        "no controls for a reference": lambda: judge(
            MembershipAudit(signal="ratio"),
            replace(given(WORLD.build_null(), controls=False), models={TARGET: WORLD.build_null()}),
        ),
        "no false positive rate": lambda: MembershipAudit(fpr=()),
        "settings without a signal": lambda: MembershipAudit(signal_settings={"fraction": 0.1}),
        "wrong kind": lambda: judge(MembershipAudit(signal="confidence"), knowing),
        "other kind": lambda: judge(
            MembershipAudit(), replace(mixed, models={TARGET: masked.build_null(), "reference": Null()}), masked
        ),
        "other mask patterns": lambda: judge(
            MembershipAudit(), replace(mixed, models={TARGET: masked.build_null(), "reference": unlike}), masked
        ),
        "embedder": lambda: judge(
            MembershipAudit(), replace(knowing, models={**knowing.models, "embedder": WORLD.build_null()})
        ),
        "no target in the cohorts": lambda: judge(MembershipAudit(), replace(knowing, cohorts={AUDITED: several})),
    }
    cases = {**results, **{name: caught(call) for name, call in refusals.items()}}
    check_wording(cases, Path(__file__).with_name("wording.txt"))
