"""Runs of predicted words, against a twin that looks at every character."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from recollect.audits.leakage.runs import ScoredTokens
from recollect.audits.leakage.words import Words
from recollect.corpora.record import Record
from recollect.models.answers import Answers

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
    block = ScoredTokens.of(records, Words.of(records), answers_of(records, tokens))
    runs = block.find_runs(k)
    expected = [run for record, each in zip(records, tokens, strict=True) for run in twin(record.text, each, k)]
    assert runs.get_texts() == [text for text, _ in expected]
    np.testing.assert_allclose(block.sum_nats(runs), [nats for _, nats in expected])


def test_a_run_ends_with_its_record_and_at_an_unknown_word():
    records = [Record(id="a", text="one two three"), Record(id="b", text="four five")]
    rows = [[(0, 3, True, 1, 0), (4, 7, False, 1, 0), (8, 13, True, 1, 0)], [(0, 4, True, 1, 0), (5, 9, True, 1, 0)]]
    runs = ScoredTokens.of(records, Words.of(records), answers_of(records, rows)).find_runs(1)
    assert runs.get_texts() == ["one", "three", "four five"]


def test_a_word_counts_only_if_every_token_of_it_is_among_the_most_likely():
    records = [Record(id="a", text="unseen things")]
    tokens = [[(0, 2, True, 1, -1.0), (2, 6, True, 2, -2.0), (6, 13, True, 1, -4.0)]]
    block = ScoredTokens.of(records, Words.of(records), answers_of(records, tokens))
    assert block.find_runs(1).get_texts() == ["things"]
    assert block.find_runs(2).get_texts() == ["unseen things"]
    assert block.find_runs(2, min_length=3).get_texts() == []


def test_the_same_text_twice_in_a_block_is_read_twice():
    records = [Record(id="a", text="hi"), Record(id="b", text="hi")]
    block = ScoredTokens.of(records, Words.of(records), answers_of(records[:1], [[(0, 2, True, 1, -1.0)]]))
    assert block.find_runs(1).get_texts() == ["hi", "hi"]


def test_a_word_that_was_not_predicted_in_whole_has_no_nats():
    records = [Record(id="a", text="first second")]
    read = Words.of(records)
    whole = ScoredTokens.of(
        records, read, answers_of(records, [[(0, 5, True, 1, -1.0), (6, 12, True, 1, -1.0)]])
    ).find_runs(1)
    other = ScoredTokens.of(records, read, answers_of(records, [[(6, 12, True, 1, -1.0)]]))
    assert np.isnan(other.sum_nats(whole)).all()
