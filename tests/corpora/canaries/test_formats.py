"""The format language: exact sizes, uniform draws, every secret once, walks that count what is ahead."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from recollect.corpora.canaries.automaton import FormatAutomaton
from recollect.corpora.canaries.formats import compute_check_digit, parse_format
from recollect.errors import PlanError
from recollect.streams import stream
from recollect.testing.refusals import refused

SMALL = [
    "n {digits:2}",
    "{digits:1}-{letters:1}!",
    "{hex:2}",
    "it is {choice:red|reddish|blue}.",
    "{choice:a|ab}",
    "{{x}} {choice:ж|日本}{digits:1}",
]


@pytest.mark.parametrize("written", SMALL)
def test_the_size_is_the_number_of_different_texts(written):
    found = parse_format(written)
    listed = list(found.iter_all())
    assert len(listed) == len(set(listed)) == found.size


@pytest.mark.parametrize("written", SMALL)
def test_every_text_is_read_back_and_walked(written):
    found = parse_format(written)
    walk = FormatAutomaton(found)
    for text in found.iter_all():
        values = FormatAutomaton(found).parse_values(text)
        assert values is not None
        assert all(value in text for value in values)
        place = walk.advance(walk.start, text)
        assert place is not None
        assert walk.is_complete(place)


@settings(deadline=None, max_examples=60)
@given(st.sampled_from(SMALL), st.data())
def test_what_lies_ahead_is_counted_like_a_list_would(written, data):
    found = parse_format(written)
    walk, listed = FormatAutomaton(found), list(found.iter_all())
    text = data.draw(st.sampled_from(listed))
    begun = text[: data.draw(st.integers(0, len(text)))] + data.draw(st.sampled_from(["", "", "7", "z"]))
    place = walk.advance(walk.start, begun)
    expected = sum(other.startswith(begun) for other in listed)
    assert (0 if place is None else walk.count_completions(place)) == expected


def test_draws_are_uniform():
    found = parse_format("{choice:red|reddish|blue} {digits:1}")
    rng = stream(0, "draws")
    drawn = [found.draw(rng) for _ in range(6000)]
    counts = [drawn.count(text) for text in found.iter_all()]
    assert sum(counts) == len(drawn)
    assert stats.chisquare(counts).pvalue > 1e-3


def test_card_numbers_are_valid_and_counted_exactly():
    found = parse_format("card {card}, {digits:1}")
    assert found.size == 10**16
    walk, rng = FormatAutomaton(found), stream(0, "cards")
    for _ in range(50):
        text = found.draw(rng)
        number, digit = FormatAutomaton(found).parse_values(text)
        assert compute_check_digit(number[:-1]) == number[-1]
        assert text == f"card {number}, {digit}"
        broken = text.replace(number, number[:-1] + str((int(number[-1]) + 1) % 10))
        assert FormatAutomaton(found).parse_values(broken) is None
        place = walk.advance(walk.start, f"card {number[:14]}")
        assert walk.count_completions(place) == 100
        assert walk.count_completions(walk.advance(place, number[14])) == 10


def test_known_card_numbers_check():
    assert FormatAutomaton(parse_format("{card}")).parse_values("4111111111111111") == ("4111111111111111",)
    assert FormatAutomaton(parse_format("{card}")).parse_values("4111111111111112") is None


def test_words_come_from_a_file_and_may_begin_alike(tmp_path):
    (tmp_path / "words.txt").write_text("a\nan\nand\nant\n", encoding="utf-8")
    found = parse_format(f"say {{words:2:{tmp_path}/words.txt}} now")
    assert found.size == 16
    assert len({*found.iter_all()}) == 16
    assert FormatAutomaton(found).parse_values("say an ant now") == ("an ant",)
    assert found.known_prefix == "say "


@pytest.mark.parametrize(
    ("written", "character", "code"),
    [
        ("n {digit:9}", 4, "unknown_slot"),
        ("n {digits:x}", 3, "bad_slot_length"),
        ("n {digits:0}", 3, "bad_slot_length"),
        ("a } b", 3, "unopened_slot"),
        ("a {digits:3", 3, "unclosed_slot"),
        ("plain", 6, "no_slot"),
        ("{words:2:/no/such/file}", 1, "unreadable_file"),
    ],
)
def test_a_bad_format_is_pointed_at(written, character, code):
    with refused(code, PlanError) as refusal:
        parse_format(written)
    assert f"at character {character}:\n    {written}\n    {' ' * (character - 1)}^" in refusal.error.found


@pytest.mark.parametrize(
    ("written", "code"),
    [
        ("{choice:a|ab}{choice:b|c}", "ambiguous_format"),
        ("{choice:1|12}{digits:1}", "ambiguous_format"),
        ("{choice:a|a}", "duplicate_choice"),
        ("{choice:a|}", "empty_choice"),
    ],
)
def test_a_format_that_can_be_read_in_two_ways_is_refused(written, code):
    with refused(code, PlanError):
        parse_format(written)


@given(st.text(alphabet="{}:|digtsworcarc92 ", max_size=25))
def test_any_text_is_a_format_or_an_error_that_says_why(written):
    try:
        found = parse_format(written)
    except PlanError:
        return
    assert found.size >= 1
    assert FormatAutomaton(found).parse_values(found.draw(np.random.default_rng(0))) is not None
