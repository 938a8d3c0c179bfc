"""Long texts cut into records: sentences, or windows of so many words."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Literal

from recollect.checks import check_at_least, check_one_of
from recollect.corpora.record import Record
from recollect.corpora.sentences import split_sentences

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
    """Consecutive parts of a text, each of so many words; the last may have fewer.

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
