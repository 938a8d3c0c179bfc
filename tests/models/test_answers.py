"""Answers keep every number with its record, however they are selected and joined."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from recollect.models.answers import Answers

lengths = st.lists(st.integers(0, 4), min_size=1, max_size=8)


def answers_of(sizes: list[int], first: int = 0) -> Answers:
    """Answers whose rank says record and row: 100 * record + row + 1."""
    ranks = [100 * (first + i) + row + 1 for i, size in enumerate(sizes) for row in range(size)]
    rows = len(ranks)
    return Answers(
        records=tuple(f"r{first + i}" for i in range(len(sizes))),
        offsets=np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64),
        pattern=np.zeros(rows, np.int32),
        position=np.zeros(rows, np.int32),
        start=np.zeros(rows, np.int32),
        end=np.zeros(rows, np.int32),
        known=np.ones(rows, np.bool_),
        rank=np.array(ranks, np.int32),
        logprob=None,
        entropy=np.arange(rows, dtype=np.float32),
        logprob_std=None,
    )


@given(lengths, st.randoms(use_true_random=False))
def test_selecting_keeps_rows_with_their_record(sizes, random):
    answers = answers_of(sizes)
    wanted = list(answers.records)
    random.shuffle(wanted)
    chosen = answers.select(wanted)
    assert chosen.records == tuple(wanted)
    assert chosen.logprob is None
    for record in wanted:
        np.testing.assert_array_equal(chosen.rank[chosen.get_rows(record)], answers.rank[answers.get_rows(record)])
        np.testing.assert_array_equal(
            chosen.entropy[chosen.get_rows(record)], answers.entropy[answers.get_rows(record)]
        )


@given(lengths, lengths)
def test_joining_is_reading_one_after_the_other(one, other):
    parts = [answers_of(one), answers_of(other, first=len(one))]
    joined = Answers.concatenate(parts)
    assert joined.records == parts[0].records + parts[1].records
    assert [rows.tolist() for rows in joined.iter_column("rank")] == [
        rows.tolist() for part in parts for rows in part.iter_column("rank")
    ]


def test_a_record_that_comes_again_is_taken_the_first_time_only():
    joined = Answers.concatenate([answers_of([2, 1]), answers_of([2, 3, 1])])
    assert joined.records == ("r0", "r1", "r2")
    assert joined.rank.tolist() == [1, 2, 101, 201]
