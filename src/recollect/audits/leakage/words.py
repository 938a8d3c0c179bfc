"""Words as a person reads them: what stands between white space (any that Unicode knows), capitals kept."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from recollect.corpora.record import Record

Integers = NDArray[np.int64]
Flags = NDArray[np.bool_]

_WORD = re.compile(r"\S+")
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
    """Which record of the block it stands in."""
    base: Integers
    """Where the text of each record begins in the block."""
    size: int
    """Characters of the whole block."""

    @classmethod
    def of(cls, records: Sequence[Record]) -> Words:
        """The words of these records' texts (of pairs: of their targets)."""
        written = [record.predicted for record in records]
        lengths = np.array([len(text) + len(_BORDER) for text in written], dtype=np.int64)
        base = np.cumsum(lengths) - lengths
        whole = _BORDER.join(written)
        spans = np.array([match.span() for match in _WORD.finditer(whole)], dtype=np.int64).reshape(-1, 2)
        return cls(
            texts=tuple(whole.split()),
            start=spans[:, 0],
            end=spans[:, 1],
            record=np.searchsorted(base, spans[:, 0], side="right") - 1,
            base=base,
            size=int(lengths.sum()),
        )

    def __len__(self) -> int:
        return len(self.texts)
