"""Mask patterns: which tokens of a text are hidden from a masked model, and in which passes it predicts them.

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
"""Columns of a table of reads: which record, which pattern, the window in the record's ordinary tokens, and which of
the pattern's places are scored in it (the last excluded)."""


def count_patterns(token_count: int, question: Question) -> int:
    """How many patterns a text of so many ordinary tokens gets; an empty text gets none.

    >>> count_patterns(7, Question(patterns=20)), count_patterns(7, Question(one_by_one=True))
    (20, 7)
    """
    if question.one_by_one or not token_count:
        return token_count
    return question.patterns


def count_hidden(token_count: int, question: Question) -> int:
    """How many of so many ordinary tokens one pattern hides.

    >>> count_hidden(20, Question(masked=0.15)), count_hidden(21, Question(masked=0.15))
    (3, 4)
    """
    if question.one_by_one:
        return min(1, token_count)
    # as a fraction, because 0.07 * 100 is above 7
    return math.ceil(Fraction(str(question.masked)) * token_count)


def draw_hidden(record: str, token_count: int, pattern: int, question: Question) -> NDArray[np.int64]:
    """The places that one pattern hides, in order.

    Args:
        record: The digest of the record: the pattern depends on it, on the seed and on nothing else.
        token_count: How many ordinary tokens its text has.
        pattern: Which pattern, from 0.
        question: The scoring options.

    >>> draw_hidden("any", 3, 2, Question(one_by_one=True)).tolist()
    [2]
    """
    if question.one_by_one:
        return np.array([pattern], dtype=np.int64)
    # the smallest of random numbers, rather than a library's choice, whose algorithm may change
    draws = stream(question.mask_seed, labels.STREAM_MASK, record, pattern).random(token_count)
    return np.sort(np.argsort(draws, kind="stable")[: count_hidden(token_count, question)])


def plan_masked_reads(records: Sequence[str], sizes: NDArray[np.int64], width: int | None, question: Question) -> Table:
    """Every read of a masked model that the records' patterns need [reads, 6].

    A text that is longer than a window is read in windows that overlap by half, and a place is scored in the window
    whose middle is nearest: it has at least a quarter of a window on either side, as far as the text goes. Patterns
    are drawn over the whole text, so they do not depend on how much a model reads at once.

    Args:
        records: Digests.
        sizes: How many ordinary tokens each record has.
        width: How many ordinary tokens the model reads at once; None for any number.
        question: The scoring options.
    """
    fits = np.ones(len(sizes), dtype=np.bool_) if width is None else sizes <= width
    counts = np.array([count_patterns(int(size), question) for size in sizes], dtype=np.int64)
    hides = np.array([count_hidden(int(size), question) for size in sizes], dtype=np.int64)
    whole_records = np.repeat(np.arange(len(sizes)), np.where(fits, counts, 0))
    table = np.zeros((len(whole_records), 6), dtype=np.int64)
    table[:, RECORD], table[:, PATTERN] = whole_records, ragged_arange(np.where(fits, counts, 0))
    table[:, END], table[:, LAST] = sizes[whole_records], hides[whole_records]
    tables = [table]
    for record in np.flatnonzero(~fits).tolist():
        size = int(sizes[record])
        for pattern in range(counts[record]):
            windows = split_pattern_into_windows(
                draw_hidden(records[record], size, pattern, question), size, int(width or size)
            )
            tables.append(np.insert(windows, 0, [[record], [pattern]], axis=1))
    return np.concatenate(tables)


def split_pattern_into_windows(positions: NDArray[np.int64], size: int, width: int) -> Table:
    """In which windows of a long text the positions of a pattern are scored [windows, 4].

    >>> split_pattern_into_windows(np.array([0, 3, 9]), size=10, width=4).tolist()
    [[0, 4, 0, 1], [2, 6, 1, 2], [6, 10, 2, 3]]
    """
    step = max(1, width // 2)
    begins = np.append(np.arange(0, size - width, step), size - width)
    # halfway between two neighbouring middles, the later window takes over
    borders = (begins[1:] + begins[:-1] + width) / 2
    last = np.append(np.searchsorted(positions, borders), len(positions))
    first = np.append(0, last[:-1])
    table = np.stack([begins, begins + width, first, last], axis=1)
    return table[first < last]


def ragged_arange(counts: NDArray[np.int64]) -> NDArray[np.int64]:
    """0 … count − 1 for each count, one after the other: the tokens of each window of a pattern.

    >>> ragged_arange(np.array([2, 0, 3])).tolist()
    [0, 1, 0, 1, 2]
    """
    begins = np.cumsum(counts) - counts
    return np.arange(counts.sum()) - np.repeat(begins, counts)
