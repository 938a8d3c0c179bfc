"""Mask patterns: which tokens of a text a masked model does not get to see, and in which passes it is asked for them.

Mireshghallah et al. 2022, section 2.3: of T tokens, ⌈0.15 T⌉ are hidden at a time, in K patterns drawn at random. The
patterns are the same for every model with the same tokenizer.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from recollect import labels
from recollect.models.model import Question
from recollect.streams import stream

Table = NDArray[np.int64]

RECORD, PATTERN, BEGIN, END, FIRST, LAST = range(6)
"""Columns of a table of reads: which record, which pattern, the window in the record's ordinary symbols, and which of
the pattern's places are scored in it (the last excluded)."""


def pattern_count(symbols: int, question: Question) -> int:
    """How many patterns a text of so many ordinary symbols gets; an empty text gets none.

    >>> pattern_count(7, Question(patterns=20)), pattern_count(7, Question(one_by_one=True))
    (20, 7)
    """
    if question.one_by_one or not symbols:
        return symbols
    return question.patterns


def pattern_size(symbols: int, question: Question) -> int:
    """How many of so many ordinary symbols one pattern hides.

    >>> pattern_size(20, Question(masked=0.15)), pattern_size(21, Question(masked=0.15))
    (3, 4)
    """
    if question.one_by_one:
        return min(1, symbols)
    # as a fraction, because 0.07 * 100 is above 7
    return math.ceil(Fraction(str(question.masked)) * symbols)


def hidden(record: str, symbols: int, pattern: int, question: Question) -> NDArray[np.int64]:
    """The places that one pattern hides, in order.

    Args:
        record: The digest of the record: the pattern depends on it, on the seed and on nothing else.
        symbols: How many ordinary symbols its text has.
        pattern: Which pattern, from 0.
        question: How the model is asked.

    >>> hidden("any", 3, 2, Question(one_by_one=True)).tolist()
    [2]
    """
    if question.one_by_one:
        return np.array([pattern], dtype=np.int64)
    # the smallest of random numbers, rather than a library's choice, whose algorithm may change
    draws = stream(question.mask_seed, labels.STREAM_MASK, record, pattern).random(symbols)
    return np.sort(np.argsort(draws, kind="stable")[: pattern_size(symbols, question)])


def all_reads(records: Sequence[str], sizes: NDArray[np.int64], width: int | None, question: Question) -> Table:
    """Every read that the records need [reads, 6].

    A text that is longer than a window is read in windows that overlap by half, and a place is scored in the window
    whose middle is nearest: it has at least a quarter of a window on either side, as far as the text goes. Patterns
    are drawn over the whole text, so they do not depend on how much a model reads at once.

    Args:
        records: Digests.
        sizes: How many ordinary symbols each record has.
        width: How many ordinary symbols the model reads at once; None for any number.
        question: How the model is asked.
    """
    fits = np.ones(len(sizes), dtype=np.bool_) if width is None else sizes <= width
    counts = np.array([pattern_count(int(size), question) for size in sizes], dtype=np.int64)
    hides = np.array([pattern_size(int(size), question) for size in sizes], dtype=np.int64)
    whole = np.repeat(np.arange(len(sizes)), np.where(fits, counts, 0))
    table = np.zeros((len(whole), 6), dtype=np.int64)
    table[:, RECORD], table[:, PATTERN] = whole, ragged_arange(np.where(fits, counts, 0))
    table[:, END], table[:, LAST] = sizes[whole], hides[whole]
    parts = [table]
    for record in np.flatnonzero(~fits).tolist():
        size = int(sizes[record])
        for pattern in range(counts[record]):
            windows = windowed(hidden(records[record], size, pattern, question), size, int(width or size))
            parts.append(np.insert(windows, 0, [[record], [pattern]], axis=1))
    return np.concatenate(parts)


def windowed(places: NDArray[np.int64], size: int, width: int) -> Table:
    """In which windows of a long text these places are scored [windows, 4]: begin, end, first, last.

    >>> windowed(np.array([0, 3, 9]), size=10, width=4).tolist()
    [[0, 4, 0, 1], [2, 6, 1, 2], [6, 10, 2, 3]]
    """
    step = max(1, width // 2)
    begins = np.append(np.arange(0, size - width, step), size - width)
    # halfway between two neighbouring middles, the later window takes over
    borders = (begins[1:] + begins[:-1] + width) / 2
    last = np.append(np.searchsorted(places, borders), len(places))
    first = np.append(0, last[:-1])
    table = np.stack([begins, begins + width, first, last], axis=1)
    return table[first < last]


def ragged_arange(counts: NDArray[np.int64]) -> NDArray[np.int64]:
    """0 … count − 1 for each count, one after the other.

    >>> ragged_arange(np.array([2, 0, 3])).tolist()
    [0, 1, 0, 1, 2]
    """
    begins = np.cumsum(counts) - counts
    return np.arange(counts.sum()) - np.repeat(begins, counts)
