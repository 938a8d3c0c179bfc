"""The sentences of the provenance audit, kept in wording.txt."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from recollect.audits.provenance.audit import ProvenanceAudit
from recollect.audits.rounds import collect_evidence, refuse_missing
from recollect.corpora.corpus import Corpus
from recollect.corpora.record import Record
from recollect.errors import RecollectError
from recollect.models.answers import Answers
from recollect.signals.evidence import AUDITED, TARGET
from recollect.streams import stream
from recollect.testing.fakes import Memoriser, Null
from recollect.testing.wording import check_wording
from recollect.testing.world import World

WORLD = World(members=6, others=6, controls=170)
MANY = World(members=3, others=20, controls=80)
GROUP = World(members=12, others=12, controls=100)


class Forgetful(Null):
    """A model that does not know the first word of any text."""

    def answer(self, records) -> Answers:
        answers = super().answer(records)
        return replace(answers, known=answers.start > 0)


def judge(audit, target, world=WORLD, people=None, **given):
    corpora = world.corpora if people is None else {**world.corpora, AUDITED: Corpus.of(people)}
    evidence = replace(world.build_given(target), corpora=corpora, **given)
    return audit.run(collect_evidence(audit, evidence, score=world.score, train=world.train), stream(0, audit.name))


def written(length, *, number=3, user="me"):
    rng = stream(3, "long")
    texts = [" ".join(f"word{int(300 ** rng.random())}" for _ in range(length)) for _ in range(number)]
    return [Record(id=f"{user}-{i}", user=user, text=text) for i, text in enumerate(texts)]


def marked(world):
    return [replace(record, text=f"Mrs Example {record.text}") for record in world.corpora[AUDITED]]


def caught(call: Callable[[], object]) -> RecollectError:
    try:
        call()
    except RecollectError as error:
        return error
    raise AssertionError("nothing was refused")


def test_every_sentence_is_as_it_was():
    audit, unknown = ProvenanceAudit(shadows=2), {"cohorts": {}}
    person = [record for record in WORLD.member_records if record.owner == WORLD.member_records[0].owner]
    few = World(controls=60)
    pairs, masked = (World(kind=kind, members=1, others=1, controls=80) for kind in ("seq2seq", "masked"))
    results = {
        "many, found": judge(audit, WORLD.build_memoriser()),
        "many, nobody found": judge(audit, Null(seed=7)),
        "histogram": judge(ProvenanceAudit(shadows=2, method="histogram"), WORLD.build_memoriser()),
        "pieces, random texts": judge(
            ProvenanceAudit(shadows=2, top_k=1, pieces=4, select="random"), WORLD.build_memoriser(), **unknown
        ),
        "one, found": judge(audit, WORLD.build_memoriser(), people=person, **unknown),
        "one, not found": judge(audit, Null(seed=5), people=person, **unknown),
        "one unlike the controls": judge(audit, Null(), people=written(400), **unknown),
        "some unlike the controls": judge(
            audit, Memoriser(WORLD.member_records), people=[*WORLD.corpora[AUDITED], *written(400)], **unknown
        ),
        "too little text": judge(audit, Null(), people=written(2, number=1), **unknown),
        "texts longer than any control's": judge(audit, Null(), people=written(60, number=1), **unknown),
        "too few controls": judge(audit, Null(), few),
        "no power": judge(audit, MANY.build_memoriser(), MANY),
        "a group of another kind": judge(audit, Null(), GROUP, people=marked(GROUP), **unknown),
        "unknown words": judge(audit, Forgetful(), people=person, **unknown),
    }
    refusals = {
        "nothing given": lambda: refuse_missing(audit, ()),
        "no controls": lambda: refuse_missing(audit, {TARGET, AUDITED}),
        "wrong kind": lambda: judge(audit, masked.build_null(), masked),
        "pieces of pairs": lambda: judge(ProvenanceAudit(pieces=4), pairs.build_null(), pairs),
        "pieces with the histogram": lambda: ProvenanceAudit(method="histogram", pieces=4),
        "budget": lambda: judge(ProvenanceAudit(shadows=2, budget=10), WORLD.build_null()),
        "budget with pieces": lambda: judge(ProvenanceAudit(shadows=2, budget=10, pieces=4), WORLD.build_null()),
    }
    cases = {**results, **{name: caught(call) for name, call in refusals.items()}}
    check_wording(cases, Path(__file__).with_name("wording.txt"))
