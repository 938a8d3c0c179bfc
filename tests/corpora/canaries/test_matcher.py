"""Matching: a format is found wherever it is, exactly as often as a slow search finds it."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from recollect.corpora.canaries.automaton import FormatAutomaton
from recollect.corpora.canaries.formats import compute_check_digit, parse_format
from recollect.corpora.canaries.matcher import Matcher
from recollect.streams import stream

FORMATS = [
    "{digits:2}",
    "a{digits:1}-{hex:2}",
    "{choice:b|ba|c}",
    "[{letters:2}]",
    "x {choice:ab|abc}!",
    "0{digits:1}0",
]


def slowly(format, text):
    """Every part of the text that is a filling, at each place the longest."""
    walk = FormatAutomaton(format)
    for start in range(len(text)):
        ends = [end for end in range(start, len(text) + 1) if walk.parse_values(text[start:end]) is not None]
        if ends:
            yield start, ends[-1]


@settings(deadline=None, max_examples=150)
@given(st.sampled_from(FORMATS), st.text(alphabet="abc019-[]x !", max_size=25))
def test_it_finds_what_a_slow_search_finds(written, text):
    format = parse_format(written)
    found = list(Matcher(format).find_matches(text, overlapping=True))
    assert [(match.start, match.end) for match in found] == list(slowly(format, text))
    assert all(text[match.start : match.end] == match.text for match in found)
    assert (text in Matcher(format)) == bool(found)


@pytest.mark.parametrize("written", [*FORMATS, "card {card}.", "{{x}} {digits:3}-{digits:2}-{digits:4} (end)"])
def test_every_filling_is_found_whole_with_its_slots(written):
    format = parse_format(written)
    for i in range(30):
        filled = format.draw(stream(i, "matching"))
        (match,) = list(Matcher(format).find_matches(f"«{filled}»"))
        assert (match.text, match.start) == (filled, 1)
        secret = f"«{filled}»"[match.secret_start : match.secret_end]
        assert filled.startswith(format.known_prefix + secret)
        assert all(value in secret for value in FormatAutomaton(format).parse_values(filled))


def test_matches_do_not_overlap_unless_wanted():
    matcher = Matcher(parse_format("{digits:2}"))
    assert [match.text for match in matcher.find_matches("12345")] == ["12", "34"]
    assert [match.text for match in matcher.find_matches("12345", overlapping=True)] == ["12", "23", "34", "45"]


def test_card_numbers_are_reported_from_other_digits_by_their_check_digit():
    good = "411111111111111" + compute_check_digit("411111111111111")
    matcher = Matcher(parse_format("{card}"))
    assert [match.text for match in matcher.find_matches(f"no 4111111111111112, yes 9{good}7")] == [good]
    assert "4111111111111112" not in matcher


def test_words_of_a_list_are_found(tmp_path):
    (tmp_path / "words.txt").write_text("red\nredder\ngreen\n")
    matcher = Matcher(parse_format(f"say {{words:2:{tmp_path}/words.txt}}."))
    assert [match.text for match in matcher.find_matches("say redder green. say red blue.")] == ["say redder green."]
