"""Masks give nothing of a text away but its rough length."""

from __future__ import annotations

import re

from hypothesis import given
from hypothesis import strategies as st

from recollect.results.text_masks import mask_text, mask_unless_shown


@given(st.text(max_size=1200), st.characters())
def test_texts_of_equal_length_have_equal_masks(text, sign):
    assert mask_text(text) == mask_text(sign * len(text)) == mask_unless_shown(text, show_text=False)


@given(st.integers(0, 2000))
def test_the_length_stated_is_true(length):
    bounds = [int(number) for number in re.findall(r"\d+", mask_text("x" * length).replace(",", ""))]
    low, high = {0: (0, 0), 1: (1000, length)}.get(len(bounds), bounds)
    assert low <= length <= high


@given(st.text(max_size=50))
def test_what_is_shown_cannot_steer_a_terminal(text):
    assert mask_unless_shown(text, show_text=True).isprintable() or not text
    if text.isprintable():
        assert mask_unless_shown(text, show_text=True) == text
