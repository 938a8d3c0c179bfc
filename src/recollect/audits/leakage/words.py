"""Words as a person reads them: what is between white space (any that Unicode knows), capitals kept."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from recollect.corpora.messages import SEPARATOR, list_scored
from recollect.corpora.record import Record

Integers = NDArray[np.int64]
Flags = NDArray[np.bool_]

_SPACES = np.array([chr(code).isspace() for code in range(0x3002)])
"""Which code points are white space; the last one is not, and stands for all beyond."""
_BORDER = "\n"
"""Stands between the texts of a block: it is white space, so no word crosses it."""


@dataclass(frozen=True, eq=False)
class Words:
    """The words of a block of records, one text after the other.

    >>> Words.of([Record(id="a", text="To be"), Record(id="b", text="or\u00a0not")]).texts
    ('To', 'be', 'or', 'not')
    """

    texts: tuple[str, ...]
    """Every word as it is written."""
    start: Integers
    """Where each word begins, in characters of the whole block."""
    end: Integers
    record: Integers
    """Which record of the block it is in."""
    piece: Integers
    """Which uninterrupted text of the block it is in: a record's, or of a conversation one turn."""
    base: Integers
    """Where the text of each record begins in the block."""
    size: int
    """Characters of the whole block."""

    @classmethod
    def of(cls, records: Sequence[Record]) -> Words:
        """The words of these records' texts (of pairs: of their targets; of conversations: of their scored turns)."""
        written = [record.scored_text for record in records]
        lengths = np.array([len(text) + len(_BORDER) for text in written], dtype=np.int64)
        base = np.cumsum(lengths) - lengths
        whole = _BORDER.join(written)
        start, end = _find_spans(whole)
        return cls(
            texts=tuple(whole.split()),
            start=start,
            end=end,
            record=np.searchsorted(base, start, side="right") - 1,
            piece=np.searchsorted(_find_pieces(records, base), start, side="right") - 1,
            base=base,
            size=int(lengths.sum()),
        )

    def __len__(self) -> int:
        return len(self.texts)


def _find_pieces(records: Sequence[Record], base: Integers) -> Integers:
    """Where each uninterrupted text begins, in characters of the whole block."""
    begins = list[int]()
    for record, begin in zip(records, base.tolist(), strict=True):
        begins.append(begin)
        for turn in list_scored(record.messages or ())[:-1]:
            begins.append(begins[-1] + len(turn) + len(SEPARATOR))
    return np.array(begins, dtype=np.int64)


def _find_spans(text: str) -> tuple[Integers, Integers]:
    """Where every word begins and ends, as `str.split` finds them."""
    codes = np.frombuffer(text.encode("utf-32-le", "surrogatepass"), dtype=np.uint32)
    inside = ~_SPACES[np.minimum(codes, len(_SPACES) - 1)]
    change = np.diff(inside.astype(np.int8), prepend=0, append=0)
    return np.flatnonzero(change == 1), np.flatnonzero(change == -1)
