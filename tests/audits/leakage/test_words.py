"""Words as a person reads them, against `str.split` and regular expressions."""

from __future__ import annotations

import re
import sys

from hypothesis import given, settings
from hypothesis import strategies as st

from recollect.audits.leakage.words import Words
from recollect.corpora.record import Record

SPACES = "".join(chr(sign) for sign in range(sys.maxunicode + 1) if chr(sign).isspace())
TEXTS = st.lists(
    st.text(st.one_of(st.sampled_from(SPACES), st.sampled_from("aZ.é\u0301ß🙂\u200b\ufeff"), st.characters()))
)


@settings(deadline=None, max_examples=200)
@given(TEXTS)
def test_words_stand_where_a_regular_expression_finds_them(texts):
    read = Words.of([Record(id=str(i), text=text) for i, text in enumerate(texts)])
    expected = [(i, m.group(), *m.span()) for i, text in enumerate(texts) for m in re.finditer(r"\S+", text)]
    start, end = read.start - read.base[read.record], read.end - read.base[read.record]
    assert list(zip(read.record.tolist(), read.texts, start.tolist(), end.tolist(), strict=True)) == expected


def test_every_white_space_parts_words_and_nothing_else_does():
    read = Words.of([Record(id="a", text=f"a{sign}b") for sign in SPACES])
    assert read.texts == ("a", "b") * len(SPACES)
    assert all(chr(sign).isspace() == (len(Words.of([Record(id="a", text=f"a{chr(sign)}b")])) == 2)
               for sign in (0x200B, 0x3001, 0x3002, 0xFEFF, 0x10FFFF))  # fmt: skip
