"""Texts that are asked about in pieces, too."""

from dataclasses import replace

import numpy as np

from recollect.audits.provenance.audit import ProvenanceAudit
from recollect.audits.provenance.queries import (
    CALIBRATION,
    CALIBRATION_PIECES,
    PIECES,
    QUERIES,
    build_piece_queries,
    choose_queries,
    cut_pieces,
    find_text_of_piece,
)
from recollect.audits.provenance.reference_users import divide_reference
from recollect.audits.provenance.word_alignment import align_words
from recollect.audits.rounds import collect_evidence
from recollect.corpora.corpus import Corpus
from recollect.corpora.messages import say
from recollect.corpora.record import Record
from recollect.errors import PlanError
from recollect.signals.evidence import AUDITED, TARGET, Evidence
from recollect.streams import stream
from recollect.testing.contracts import check_audit
from recollect.testing.refusals import refused
from recollect.testing.world import World

WORLD = World(members=4, others=4, controls=120)
SETTINGS = {"shadows": 4, "top_k": 1, "pieces": 4}


def written(*texts, user="ann"):
    return [Record(id=f"{user}-{place}", user=user, text=text) for place, text in enumerate(texts)]


def test_a_piece_begins_after_every_half_of_its_width_but_not_where_the_text_does():
    found = cut_pieces(written("a b  c\td e f g"), 4)
    assert [piece.text for piece in found] == ["c\td e f", "e f g"]
    assert [piece.text for piece in cut_pieces(written("a b c d e"), 3)] == ["b c d", "c d e", "d e"]
    assert not cut_pieces(written("a b c", "", "a"), 4)


def test_what_was_asked_already_is_not_asked_again():
    found = cut_pieces(written("a b c d e", "z z c d e", "c d e", "y y e e e"), 4)
    assert [(find_text_of_piece(piece), piece.text) for piece in found] == [(3, "e e e")]


def test_pieces_are_distinguished_and_their_texts_found_whatever_people_are_called():
    texts = {"a": written("a b c d", user="a"), "a/0": written("x y c d", "p q r s", user="a/0")}
    corpus = build_piece_queries(texts, 2, 4, name="pieces")
    assert len({piece.id for piece in corpus}) == 3
    assert [(piece.user, find_text_of_piece(piece), piece.text) for piece in corpus] == [
        ("a", 0, "c d"),
        ("a/0", 0, "c d"),
        ("a/0", 1, "r s"),
    ]
    assert [find_text_of_piece(piece) for piece in build_piece_queries(texts, 1, 4, name="pieces")] == [0, 0]


def planned(**settings):
    audit, evidence = ProvenanceAudit(**{**SETTINGS, **settings}), Evidence(corpora=WORLD.corpora)
    return choose_queries(
        audit, evidence, divide_reference(evidence, shadows=4, share=audit.calibration, artificial=60)
    )


def test_pieces_are_queries_to_the_budget():
    everything = {part: len(corpus) for part, corpus in planned().items()}
    assert everything[PIECES] > everything[QUERIES]
    total = sum(everything.values())
    with refused("budget_too_small", PlanError) as refusal:
        planned(budget=total // 3)
    enough = int(refusal.error.do.split()[1].replace(",", ""))
    limited = {part: len(corpus) for part, corpus in planned(budget=enough).items()}
    assert sum(limited.values()) <= enough < total
    assert limited[CALIBRATION_PIECES] < everything[CALIBRATION_PIECES]
    assert {part: len(corpus) for part, corpus in planned(budget=total).items()} == everything


def gather(audit, world, target):
    return collect_evidence(
        audit, replace(world.build_given(target), seed=world.seed), score=world.score, train=world.train
    )


def test_a_piece_adds_looks_at_words_of_the_text_that_it_is_cut_from():
    evidence = gather(ProvenanceAudit(**SETTINGS), WORLD, WORLD.build_memoriser())
    whole = align_words(evidence, QUERIES, [TARGET])
    again = whole.add_pieces(align_words(evidence, PIECES, [TARGET], text_of=find_text_of_piece))
    assert len(again) > len(whole)
    for code, user in enumerate(whole.users):
        theirs = [record for record in evidence.corpora[QUERIES] if record.user == user]
        for place in range(int(whole.texts[code])):
            seen, more = (int(((each.user == code) & (each.text == place)).sum()) for each in (whole, again))
            cut = [piece for piece in cut_pieces(theirs, 4) if find_text_of_piece(piece) == place]
            assert more - seen == sum(len(aligned_words(evidence, piece)) for piece in cut)
    np.testing.assert_array_equal(again.texts, whole.texts)
    np.testing.assert_array_equal(again.unknown, whole.unknown)


def aligned_words(evidence, piece):
    """The words of one piece that the target predicted and knows."""
    answers = evidence.answers[TARGET, PIECES].get_answers([piece])
    return np.flatnonzero(answers.known)


def test_queries_are_counted_with_their_pieces():
    audit = ProvenanceAudit(**SETTINGS)
    evidence = gather(audit, WORLD, WORLD.build_memoriser())
    found = audit.run(evidence, stream(0, "provenance"))
    texts, cut = len(evidence.corpora[QUERIES]), len(evidence.corpora[PIECES])
    assert sum(row["queries"] for row in found.tables_in_memory["users"].to_pylist()) == texts + cut
    total = sum(len(evidence.corpora[part]) for part in (QUERIES, PIECES, CALIBRATION, CALIBRATION_PIECES))
    assert found.note_codes[:2] == ("queries", "pieces")
    assert f"{total:,} queries" in found.notes[1].text
    whole = ProvenanceAudit(shadows=4, top_k=1)
    plain = whole.run(gather(whole, WORLD, WORLD.build_memoriser()), stream(0, "provenance"))
    for column in ("words", "unknown_words"):
        assert (
            found.tables_in_memory["users"][column].to_pylist() == plain.tables_in_memory["users"][column].to_pylist()
        )


def test_the_contract_is_kept():
    check_audit(ProvenanceAudit(**SETTINGS), WORLD)


def test_who_has_only_short_texts_is_tested_by_whole_ones():
    audit = ProvenanceAudit(shadows=4, pieces=400)
    evidence = gather(audit, WORLD, WORLD.build_memoriser())
    assert PIECES not in evidence.corpora
    assert audit.run(evidence, stream(0, "provenance")).finding("auc").value == 1


def test_whoever_has_no_text_is_reported_how_much_is_needed():
    audit = ProvenanceAudit(**SETTINGS)
    given = replace(WORLD.build_given(WORLD.build_memoriser()), seed=WORLD.seed)
    blank = replace(given, corpora={**given.corpora, AUDITED: Corpus.of(written(" "))}, cohorts={})
    found = audit.run(collect_evidence(audit, blank, score=WORLD.score, train=WORLD.train), stream(0, "provenance"))
    assert (found.outcome, found.outcome_code) == ("inconclusive", "too_little_text")


def test_only_texts_are_cut_and_not_for_the_papers_method():
    with refused("pieces_with_histogram", PlanError):
        ProvenanceAudit(method="histogram", pieces=8)
    with refused("out_of_range", PlanError):
        ProvenanceAudit(pieces=1)
    world = replace(WORLD, kind="seq2seq")
    with refused("pieces_of_pairs", PlanError):
        gather(ProvenanceAudit(**SETTINGS), world, world.build_memoriser())


def test_pieces_of_a_conversation_are_replies_in_the_same_context():
    turns = say("user", "hi"), say("assistant", "a b c d"), say("user", "on"), say("assistant", "e f")
    record = Record(id="r", user="u", messages=turns)
    pieces = cut_pieces([record], 4)
    assert [piece.scored_text for piece in pieces] == ["c d e f", "e f"]
    assert all([each.content for each in piece.messages[:-1]] == ["hi"] for piece in pieces)
    assert all(piece.kind == "conversation" and piece.user == "u" for piece in pieces)
