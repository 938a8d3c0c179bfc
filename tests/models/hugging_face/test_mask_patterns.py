"""Mask patterns and the windows they are read in."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from recollect.models.hugging_face.mask_patterns import (
    BEGIN,
    END,
    FIRST,
    LAST,
    PATTERN,
    RECORD,
    count_hidden,
    count_patterns,
    draw_hidden,
    plan_masked_reads,
    split_pattern_into_windows,
)
from recollect.models.model import Question

RECORD_A, RECORD_B = "a" * 32, "b" * 32


@pytest.mark.parametrize(("tokens", "share", "size"), [(1, 0.15, 1), (20, 0.15, 3), (21, 0.15, 4), (100, 0.07, 7)])
def test_a_pattern_hides_its_share_rounded_up(tokens, share, size):
    question = Question(masked=share)
    assert count_hidden(tokens, question) == size
    assert len(set(draw_hidden(RECORD_A, tokens, 0, question).tolist())) == size


def test_a_pattern_depends_on_record_number_and_seed_alone():
    question = Question(patterns=3)
    more = Question(patterns=50, precision="float64", window=16)
    patterns = [draw_hidden(RECORD_A, 40, k, question).tolist() for k in range(3)]
    assert patterns == [draw_hidden(RECORD_A, 40, k, more).tolist() for k in range(3)]
    others = [
        draw_hidden(RECORD_B, 40, 0, question).tolist(),
        draw_hidden(RECORD_A, 40, 0, Question(mask_seed=1)).tolist(),
        *patterns[1:],
    ]
    assert patterns[0] not in others


def test_every_place_is_hidden_equally_often():
    question, draws = Question(), 4000
    seen = np.bincount(np.concatenate([draw_hidden(RECORD_A, 13, k, question) for k in range(draws)]), minlength=13)
    # 2 of 13 each time: the mean is 615, the deviation 23
    assert abs(seen - draws * 2 / 13).max() < 5 * 23


def test_pairs_of_places_are_hidden_together_as_often_as_expected():
    together = sum({3, 4} <= set(draw_hidden(RECORD_A, 10, k, Question(masked=0.5)).tolist()) for k in range(4000))
    assert together / 4000 == pytest.approx(5 / 10 * 4 / 9, abs=0.035)


def test_one_by_one_hides_every_place_once():
    question = Question(one_by_one=True)
    assert [draw_hidden(RECORD_A, 5, k, question).tolist() for k in range(count_patterns(5, question))] == [
        [i] for i in range(5)
    ]


@settings(deadline=None, max_examples=200)
@given(st.data(), st.integers(2, 30), st.integers(1, 100))
def test_windows_score_every_place_once_with_context_on_both_sides(data, width, beyond):
    size = width + beyond
    places = np.array(sorted(data.draw(st.sets(st.integers(0, size - 1), min_size=1))))
    scored = []
    for begin, end, first, last in split_pattern_into_windows(places, size, width).tolist():
        assert 0 <= begin < end <= size
        assert end - begin == width
        for place in places[first:last].tolist():
            assert begin <= place < end
            assert place - begin >= min(place, width // 4 - 1)
            assert end - 1 - place >= min(size - 1 - place, width // 4 - 1)
            scored.append(place)
    assert scored == places.tolist()


@settings(deadline=None, max_examples=60)
@given(
    st.lists(st.integers(0, 40), max_size=6),
    st.one_of(st.none(), st.integers(2, 12)),
    st.booleans(),
    st.integers(1, 4),
)
def test_reads_score_every_hidden_place_of_every_pattern_once(sizes, width, one_by_one, patterns):
    question = Question(patterns=patterns, one_by_one=one_by_one)
    records = [f"{i:032x}" for i in range(len(sizes))]
    reads = plan_masked_reads(records, np.array(sizes, dtype=np.int64), width, question)
    assert width is None or (reads[:, END] - reads[:, BEGIN] <= width).all()
    found = [
        (read[RECORD], read[PATTERN], place)
        for read in reads.tolist()
        for place in draw_hidden(records[read[RECORD]], sizes[read[RECORD]], read[PATTERN], question)[
            read[FIRST] : read[LAST]
        ].tolist()
    ]
    wanted = [
        (i, k, place)
        for i, size in enumerate(sizes)
        for k in range(count_patterns(size, question))
        for place in draw_hidden(records[i], size, k, question).tolist()
    ]
    assert sorted(found) == wanted
