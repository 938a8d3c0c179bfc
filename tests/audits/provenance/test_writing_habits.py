"""People who are unlike the calibration users: told, and not accused."""

from dataclasses import replace

import numpy as np
import pytest

from recollect.audits.provenance.audit import ProvenanceAudit
from recollect.audits.provenance.word_alignment import WordRanks
from recollect.audits.provenance.writing_habits import FAR, find_unusual_habits
from recollect.audits.rounds import collect_evidence
from recollect.corpora.corpus import Corpus
from recollect.corpora.record import Record
from recollect.signals.evidence import AUDITED
from recollect.streams import stream
from recollect.testing.fakes import Memoriser, Null
from recollect.testing.world import World

PEOPLE, CALIBRATING, EACH = 5, 60, 40


def writers(rng, person=None, **habits):
    """Words of people who write alike, but for one."""
    users = PEOPLE + CALIBRATING
    lengths = rng.integers(EACH - 8, EACH + 9, users)
    lengths[0] = habits.get("length", lengths[0])
    user = np.repeat(np.arange(users), lengths)
    hard = rng.normal(3, 1, len(user)) + np.where(user == 0, habits.get("harder", 0), 0)
    count = np.exp(rng.normal(3, 1, len(user)) - np.where(user == 0, habits.get("rarer", 0), 0)).astype(np.int64)
    unknown = rng.integers(2, 6, users)
    unknown[0] = habits.get("unknown", unknown[0])
    log_rank = np.maximum(0, hard + rng.normal(0, 0.3, (4, len(user))))
    return WordRanks(
        users=tuple(f"u{i:03}" for i in range(users)),
        user=user,
        text=np.zeros(len(user), np.int64),
        texts=np.ones(users, np.int64),
        log_rank=log_rank,
        max_rank=np.exp(log_rank),
        frequency=count,
        unknown=unknown,
        incomplete=np.zeros(users, np.int64),
    )


def differences_of(words):
    within = np.ones(len(words), dtype=bool)
    return find_unusual_habits(words, within, np.arange(PEOPLE), np.arange(PEOPLE, PEOPLE + CALIBRATING))


@pytest.mark.parametrize(
    ("habits", "reason"),
    [
        ({"length": 400}, "longer texts"),
        ({"length": 8}, "shorter texts"),
        ({"harder": 1.5}, "harder words"),
        ({"rarer": 1.5}, "rarer words"),
        ({"rarer": -1.5}, "commoner words"),
        ({"unknown": 80}, "more unknown words"),
    ],
)
def test_whoever_writes_unlike_all_calibration_users_is_distinguished(habits, reason):
    first, *others = differences_of(writers(np.random.default_rng(0), **habits))
    assert reason in first.split(", ")
    assert others == [""] * (PEOPLE - 1)


def test_people_who_write_alike_are_hardly_ever_called_unlike():
    called = [reason for seed in range(200) for reason in differences_of(writers(np.random.default_rng(seed)))]
    assert sum(map(bool, called)) <= 5  # of 1000
    assert FAR >= 4


def test_the_target_has_no_say_in_who_is_unlike():
    words = writers(np.random.default_rng(1))
    known = words.log_rank.copy()
    known[0, words.user == 0] = 0
    assert differences_of(words) == differences_of(replace(words, log_rank=known)) == [""] * PEOPLE
    fewer = words.unknown.copy()
    fewer[0] = 0
    assert differences_of(replace(words, unknown=fewer)) == [""] * PEOPLE


def found_about(texts, learnt=()):
    """What the audit says of one person, and of another like everybody else."""
    world = World(members=1, others=1, controls=240)
    person = [Record(id=f"me-{i}", user="me", text=text) for i, text in enumerate(texts)]
    corpora = {**world.corpora, AUDITED: Corpus.of([*world.corpora[AUDITED], *person])}
    target = Memoriser([*person, *world.member_records], otherwise=Null(seed=0)) if learnt else Null(seed=0)
    audit = ProvenanceAudit(shadows=4, least=5)
    evidence = replace(world.build_given(target), corpora=corpora, cohorts={})
    return audit.run(collect_evidence(audit, evidence, score=world.score, train=world.train), stream(0, "provenance"))


def write_long(words=300):
    """Three texts that are longer than anybody's."""
    rng = stream(3, "long")
    texts = [" ".join(f"word{int(words ** rng.random())}" for _ in range(400)) for _ in range(3)]
    return [text.capitalize() for text in texts]


def test_a_person_with_longer_texts_is_compared_from_the_beginnings_of_them():
    found = found_about(write_long(), learnt=True)
    rows = {row["user"]: row for row in found.tables_in_memory["users"].to_pylist()}
    assert found.outcome == "found"
    assert rows["me"]["decision"] == "member"
    assert rows["me"]["unlike"] is None
    assert rows["member-0"]["decision"] == "member"
    assert "amounts_matched" in found.note_codes
    untrained = found_about(write_long())
    assert untrained.outcome != "found"


def test_alone_an_unlike_person_gets_no_verdict():
    world = World(members=1, others=1, controls=160)
    person = Corpus.of(Record(id=str(i), text=text.upper()) for i, text in enumerate(write_long()))
    audit = ProvenanceAudit(shadows=4, least=5)
    evidence = replace(world.build_given(Null(seed=0)), corpora={**world.corpora, AUDITED: person}, cohorts={})
    found = audit.run(collect_evidence(audit, evidence, score=world.score, train=world.train), stream(0, "provenance"))
    assert (found.outcome, found.outcome_code) == ("inconclusive", "not_comparable")


def test_people_unlike_the_controls_have_no_p_value():
    world = World(members=6, others=6, controls=170)
    person = [Record(id=f"me-{i}", user="me", text=text.lower()) for i, text in enumerate(write_long())]
    audited = Corpus.of([*world.corpora[AUDITED], *person])
    audit = ProvenanceAudit(shadows=2)
    evidence = replace(world.build_given(Memoriser(world.member_records)), cohorts={})
    evidence = replace(evidence, corpora={**world.corpora, AUDITED: audited})
    found = audit.run(collect_evidence(audit, evidence, score=world.score, train=world.train), stream(0, "provenance"))
    rows = {row["user"]: row for row in found.tables_in_memory["users"].to_pylist()}
    unlike = {user for user, row in rows.items() if row["decision"] == "unlike the controls"}
    assert (len(unlike), found.outcome) == (1, "found")
    assert {user for user, row in rows.items() if row["p_value"] is None} == unlike
