"""Predicted runs: words against regular expressions, runs against a twin by character, their store against a list."""

from __future__ import annotations

import math
import re
import sys
from itertools import pairwise

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from recollect.audits.leakage.predicted_runs import ROW, PredictedTokens, PredictedWords, RunStore, select_best_rows
from recollect.corpora.messages import say
from recollect.corpora.record import Record
from recollect.models.answers import Answers

SPACES = "".join(chr(sign) for sign in range(sys.maxunicode + 1) if chr(sign).isspace())
TEXTS = st.lists(
    st.text(st.one_of(st.sampled_from(SPACES), st.sampled_from("aZ.é\u0301ß🙂\u200b\ufeff"), st.characters()))
)


@settings(deadline=None, max_examples=200)
@given(TEXTS)
def test_words_stand_where_a_regular_expression_finds_them(texts):
    read = PredictedWords.of([Record(id=str(i), text=text) for i, text in enumerate(texts)])
    expected = [(i, m.group(), *m.span()) for i, text in enumerate(texts) for m in re.finditer(r"\S+", text)]
    start, end = read.start - read.base[read.record], read.end - read.base[read.record]
    assert list(zip(read.record.tolist(), read.texts, start.tolist(), end.tolist(), strict=True)) == expected


def test_every_white_space_parts_words_and_nothing_else_does():
    read = PredictedWords.of([Record(id="a", text=f"a{sign}b") for sign in SPACES])
    assert read.texts == ("a", "b") * len(SPACES)
    assert all(chr(sign).isspace() == (len(PredictedWords.of([Record(id="a", text=f"a{chr(sign)}b")])) == 2)
               for sign in (0x200B, 0x3001, 0x3002, 0xFEFF, 0x10FFFF))  # fmt: skip


def test_words_of_two_turns_are_in_two_pieces_and_no_run_crosses_them():
    turns = say("user", "hi"), say("assistant", "one two"), say("user", "go on"), say("assistant", "three four")
    records = [Record(id="a", messages=turns), Record(id="b", text="five six")]
    words = PredictedWords.of(records)
    assert words.texts == ("one", "two", "three", "four", "five", "six")
    assert words.piece.tolist() == [0, 0, 1, 1, 2, 2]
    spans = [m.span() for record in records for m in re.finditer(r"\S+", record.scored_text)]
    answers = Answers(
        records=tuple(record.digest for record in records),
        offsets=np.array([0, 4, 6]),
        pattern=np.zeros(6, np.int32),
        position=np.arange(6, dtype=np.int32),
        start=np.array([a for a, _ in spans], np.int32),
        end=np.array([b for _, b in spans], np.int32),
        known=np.ones(6, np.bool_),
        rank=np.ones(6, np.int32),
        logprob=np.zeros(6),
        entropy=None,
        logprob_std=None,
    )
    runs = PredictedTokens.of(records, words, answers).find_runs(1)
    assert list(zip(runs.first.tolist(), runs.beyond.tolist(), strict=True)) == [(0, 2), (2, 4), (4, 6)]


CHARACTERS = st.text(alphabet="aB é\u00a0\n ", max_size=14)


def answers_of(records, tokens):
    """Answers of these tokens: per record (start, end, known, rank, logprob)."""
    columns = [np.array([token[i] for each in tokens for token in each]) for i in range(5)]
    rows = len(columns[0])
    counts = [len(each) for each in tokens]
    return Answers(
        records=tuple(record.digest for record in records),
        offsets=np.cumsum([0, *counts]).astype(np.int64),
        pattern=np.zeros(rows, np.int32),
        position=np.concatenate([np.arange(count) for count in counts] or [[]]).astype(np.int32),
        start=columns[0].astype(np.int32),
        end=columns[1].astype(np.int32),
        known=columns[2].astype(bool),
        rank=columns[3].astype(np.int32),
        logprob=columns[4].astype(np.float64),
        entropy=None,
        logprob_std=None,
    )


def tokens_of(text, cuts, numbers):
    """The text cut into tokens; the first is not predicted if the first number says so."""
    borders = sorted({0, len(text), *(cut % (len(text) + 1) for cut in cuts)})
    spans = list(pairwise(borders))
    return [
        (a, b, number % 7 != 0, number % 4, -0.5 - number)
        for (a, b), number in zip(spans, numbers, strict=False)
        if number % 11 != 10
    ]


def twin(text, tokens, k):
    """Runs of one text the slow way, as tuples of words with their nats."""
    runs, run, place = [], [], 0
    for word in text.split():
        begin = text.index(word, place)
        place = begin + len(word)
        touching = [token for token in tokens if token[0] < place and token[1] > begin]
        covered = all(any(p[0] <= character < p[1] for p in touching) for character in range(begin, place))
        if covered and all(p[2] and 1 <= p[3] <= k for p in touching):
            run.append((word, begin, place))
        elif run:
            runs.append(run)
            run = []
    runs += [run] if run else []
    return [
        (" ".join(w for w, _, _ in run), -sum(p[4] for p in tokens if p[0] < run[-1][2] and p[1] > run[0][1]))
        for run in runs
    ]


@settings(deadline=None, max_examples=150)
@given(
    st.lists(
        st.tuples(CHARACTERS, st.lists(st.integers(0, 40), max_size=6), st.lists(st.integers(0, 60), max_size=14)),
        min_size=1,
        max_size=4,
        unique_by=lambda each: each[0],
    ),
    st.integers(1, 3),
)
def test_runs_are_those_of_a_reader_who_looks_at_every_word(drawn, k):
    records = [Record(id=str(i), text=text) for i, (text, _, _) in enumerate(drawn)]
    tokens = [tokens_of(*each) for each in drawn]
    block = PredictedTokens.of(records, PredictedWords.of(records), answers_of(records, tokens))
    runs = block.find_runs(k)
    expected = [run for record, each in zip(records, tokens, strict=True) for run in twin(record.text, each, k)]
    assert runs.get_texts() == [text for text, _ in expected]
    np.testing.assert_allclose(block.sum_nats(runs), [nats for _, nats in expected])


def test_a_run_ends_with_its_record_and_at_an_unknown_word():
    records = [Record(id="a", text="one two three"), Record(id="b", text="four five")]
    rows = [[(0, 3, True, 1, 0), (4, 7, False, 1, 0), (8, 13, True, 1, 0)], [(0, 4, True, 1, 0), (5, 9, True, 1, 0)]]
    runs = PredictedTokens.of(records, PredictedWords.of(records), answers_of(records, rows)).find_runs(1)
    assert runs.get_texts() == ["one", "three", "four five"]


def test_a_word_counts_only_if_every_token_of_it_is_among_the_most_likely():
    records = [Record(id="a", text="unseen things")]
    tokens = [[(0, 2, True, 1, -1.0), (2, 6, True, 2, -2.0), (6, 13, True, 1, -4.0)]]
    block = PredictedTokens.of(records, PredictedWords.of(records), answers_of(records, tokens))
    assert block.find_runs(1).get_texts() == ["things"]
    assert block.find_runs(2).get_texts() == ["unseen things"]
    assert block.find_runs(2, min_length=3).get_texts() == []


def test_the_same_text_twice_in_a_block_is_read_twice():
    records = [Record(id="a", text="hi"), Record(id="b", text="hi")]
    block = PredictedTokens.of(records, PredictedWords.of(records), answers_of(records[:1], [[(0, 2, True, 1, -1.0)]]))
    assert block.find_runs(1).get_texts() == ["hi", "hi"]


def test_a_word_that_was_not_predicted_in_whole_has_no_nats():
    records = [Record(id="a", text="first second")]
    read = PredictedWords.of(records)
    whole = PredictedTokens.of(
        records, read, answers_of(records, [[(0, 5, True, 1, -1.0), (6, 12, True, 1, -1.0)]])
    ).find_runs(1)
    other = PredictedTokens.of(records, read, answers_of(records, [[(6, 12, True, 1, -1.0)]]))
    assert np.isnan(other.sum_nats(whole)).all()


PLACES = st.lists(
    st.tuples(
        st.sampled_from([1, 3]),
        st.integers(0, 5),
        st.integers(0, 9),
        st.integers(0, 9),
        st.integers(0, 9),
        st.just(1),
        st.sampled_from([0.5, 1.0]),
        st.sampled_from([0.5, 2.0, 4.0, math.nan]),
    ),
    max_size=40,
)


def gain(row):
    return -math.inf if math.isnan(row[7]) else row[7] - row[6]


@settings(deadline=None, max_examples=150)
@given(PLACES, st.lists(st.booleans(), min_size=6, max_size=6), st.sampled_from([1, 7, 1000]))
def test_the_rows_of_chosen_runs_come_back_and_the_best_of_each_are_found(drawn, chosen, held):
    store = RunStore(held)
    for begin in range(0, len(drawn), 3):
        store.add(np.array(drawn[begin : begin + 3], dtype=ROW))
    rows = store.select(np.array(chosen))
    expected = [row for row in drawn if chosen[row[1]]]
    assert [repr(row) for row in rows.tolist()] == [repr(row) for row in expected]
    best, sizes = select_best_rows(rows)
    groups = {}
    for row in expected:
        groups.setdefault(row[:2], []).append(row)
    assert sizes == {key: len(each) for key, each in groups.items()}
    most = {key: max(map(gain, each)) for key, each in groups.items()}
    assert sorted(map(repr, best.tolist())) == sorted(repr(row) for row in expected if gain(row) == most[row[:2]])
