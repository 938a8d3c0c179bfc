"""Which symbols of a text a masked model does not get to see: the same for every model with the same tokenizer.

Mireshghallah et al. 2022, section 2.3: of T symbols, ⌈0.15 T⌉ are hidden at a time, in K patterns drawn at random.
"""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from recollect import labels
from recollect.models.model import Question
from recollect.streams import stream


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
