"""Long texts cut into records: sentences (several scripts), or windows of so many words."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Literal

from recollect.checks import check_at_least, check_one_of
from recollect.corpora.record import Record

_WORD = re.compile(r"\S+")


@dataclass(frozen=True, kw_only=True)
class Split:
    """How texts are cut. Every piece is an exact part of the text, and only white space is between pieces.

    >>> Split(by="windows", words=2)("one two three")
    ['one two', 'three']
    """

    by: Literal["sentences", "windows"] = "sentences"
    words: int = 50
    """Words in a window, a word being what white space surrounds; sentences are as long as they are."""
    minimum: int = 1
    """Pieces of fewer words are dropped and counted."""

    def __post_init__(self) -> None:
        check_one_of(("sentences", "windows"), by=self.by)
        check_at_least(1, words=self.words, minimum=self.minimum)

    def __call__(self, text: str) -> list[str]:
        """The pieces of a text, those that are too short included."""
        return split_sentences(text) if self.by == "sentences" else split_windows(text, self.words)

    def split_records(self, records: Iterable[Record], dropped: Counter[str]) -> Iterator[Record]:
        """The pieces of texts as records of the same user and label, named `PARENT#i`, i from 1.

        Args:
            records: The whole texts.
            dropped: Where pieces that are too short are counted.
        """
        for record in records:
            for i, piece in enumerate(self(record.text or ""), 1):
                if self.minimum > 1 and len(piece.split(None, self.minimum - 1)) < self.minimum:
                    dropped["short_piece"] += 1
                    continue
                kept = {"user": record.user, "label": record.label, "time": record.time, "extra": record.extra}
                yield Record.from_fields({"id": f"{record.id}#{i}", "text": piece, **kept})


def split_windows(text: str, words: int) -> list[str]:
    """Segments of a text: consecutive windows, each of so many words; the last may have fewer.

    >>> split_windows(" to be,  or not", 2)
    ['to be,', 'or not']
    """
    pieces: list[str] = []
    start = end = 0
    for count, match in enumerate(_WORD.finditer(text)):
        if count and count % words == 0:
            pieces.append(text[start:end])
        if count % words == 0:
            start = match.start()
        end = match.end()
    return [*pieces, text[start:end]] if end else []


# What may follow an end mark and still belong to its sentence.
_CLOSING = r"[\"'”’»)\]」』）】》〉]*"
_END = re.compile(
    # 3.5 and notes.txt go on: white space must follow; a row of marks is looked at once, from its first
    rf"(?<![.!?…])[.!?…]++{_CLOSING}(?=\s|$)"
    r"|\.,(?=[A-Z]|\d{1,3}\.\s)"  # transcripts whose line breaks have become commas
    rf"|[。！？｡]+{_CLOSING}"  # no white space between sentences in these scripts
    rf"|[।॥۔؟።։။។]+{_CLOSING}"
    r"|\n"
)
_SPACE_AND_OPENING = re.compile(r"\s*[\"'“‘«(\[「『（]*")
_LIST_MARK = re.compile(r"[\s>]*\(?(?:\d{1,3}|[A-Za-z])[.)]$")  # in mail also behind the marks of a quotation
_LIST_ITEM = re.compile(r"[ \t]*(?:\(?\d{1,3}[.)]|[-*•–—·]|\(?[A-Za-z]\))[ \t]")
_HEADING = re.compile(r"[ \t]*[A-Z][\w ,/&'()-]{0,50}:")
_BLANK_LINE = re.compile(r"[^\S\n]*(?:\n|$)")
_LETTERS_AND_STOPS = re.compile(r"(?:\w\.)+\w$")

WRAP_WIDTH = 50
"""A line of fewer characters was ended on purpose, and not because the window was that narrow."""

# These never end a sentence: a name, a number or the rest of the phrase follows.
_NEVER_FINAL = frozenset(
    re.findall(
        r"\S+",
        """dr mr mrs ms prof rev hon st mme mlle fr vs cf e.g i.e eg ie viz approx fig figs eq eqs nos vol pp ed eds
        al dept univ est gen col sgt capt lt cmdr maj resp ref refs pt pts""",
    )
)
# These end one if the next word begins with a capital letter.
_SOMETIMES_FINAL = frozenset(
    re.findall(
        r"\S+",
        """etc inc ltd co corp jr sr esq ph.d a.m p.m am pm jan feb mar apr jun jul aug sep sept oct nov dec mon tue
        wed thu fri sat sun hr hrs min mins sec secs lb lbs oz ft in cm mm mg ml kg b.i.d t.i.d q.i.d q.d p.o p.r.n
        h.s i.v i.m""",
    )
)


def split_sentences(text: str) -> list[str]:
    r"""Segments of a text: its sentences, in order, without the white space around them.

    >>> split_sentences("Dr. Hall gave 2.5 mg at 8 p.m. on Monday. Was it enough? Yes.")
    ['Dr. Hall gave 2.5 mg at 8 p.m. on Monday.', 'Was it enough?', 'Yes.']
    >>> split_sentences("PLAN:\n1. Rest.\n2. Fluids as needed.")
    ['PLAN:', '1. Rest.', '2. Fluids as needed.']
    """
    found: list[str] = []
    start = 0
    cased = text.lower() != text
    for mark in _END.finditer(text):
        if _ends_sentence(text, start, mark, cased=cased):
            found.append(text[start : mark.end()].strip())
            start = mark.end()
    found.append(text[start:].strip())
    return [sentence for sentence in found if sentence]


def _ends_sentence(text: str, start: int, mark: re.Match[str], *, cased: bool) -> bool:
    """Whether a sentence that began at `start` ends with this mark."""
    first = mark.group()[0]
    if first == "\n":
        return _is_final_line_break(text, start, mark.start())
    if first not in ".!?…" or mark.group() == ".,":
        return True
    if _LIST_MARK.match(text, start, mark.end()):
        return False
    following = _get_next_sentence_character(text, mark.end())
    if cased and following.islower():
        return False
    single = first == "." and not mark.group().startswith("..")
    return not single or _is_final_stop(text, start, mark.start(), following)


def _get_next_sentence_character(text: str, end: int) -> str:
    """The first character of the next sentence or word, or nothing at the end of the text."""
    opening = _SPACE_AND_OPENING.match(text, end)
    after = opening.end() if opening else end
    return text[after : after + 1]


def _is_final_stop(text: str, start: int, at: int, following: str) -> bool:
    """Whether the full stop at `at` ends a sentence, and not an abbreviation or an initial."""
    word = _get_last_sentence_word(text, max(start, at - 20), at)
    lower = word.lower()
    if lower in _NEVER_FINAL:
        return False
    if lower == "no":
        return not following.isdigit()
    if lower in _SOMETIMES_FINAL:
        return following.isupper()
    if len(word) == 1 and word.isalpha():
        return lower == "i"
    return not _LETTERS_AND_STOPS.match(word)


def _get_last_sentence_word(text: str, start: int, at: int) -> str:
    """The last word of what may be a sentence, without an opening quote or bracket."""
    words = text[start:at].split()
    return words[-1].lstrip("\"'“‘«([") if words else ""


def _is_final_line_break(text: str, start: int, at: int) -> bool:
    """Whether the line break at `at` ends a sentence, and is not one that wraps a long line."""
    after = at + 1
    if _BLANK_LINE.match(text, after) or _LIST_ITEM.match(text, after) or _HEADING.match(text, after):
        return True
    if _get_next_sentence_character(text, after).islower():
        return False
    line = text[max(start, text.rfind("\n", 0, at) + 1) : at]
    return len(line.strip()) < WRAP_WIDTH
