"""Features of a record, to predict whether a model is likely to memorise it: those of the paper's Table 7."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from recollect.corpora.record import Record

Floats = NDArray[np.float64]
RAREST_WORD_COUNT = 3
"""How many of the rarest words' frequencies are a feature."""
COMBINATIONS: tuple[tuple[str, ...], ...] = (
    ("digits",),
    ("length",),
    ("symbols",),
    ("rarest",),
    ("symbols", "rarest"),
    ("length", "symbols", "rarest"),
    ("digits", "length", "symbols", "rarest"),
)
"""The rows of the paper's table: A, B, C, D, C & D, B & C & D, A & B & C & D."""


def extract_features(records: Sequence[Record], counted: Iterable[Record]) -> dict[str, Floats]:
    """The paper's hand-crafted features, each as columns [records, columns].

    Args:
        records: Texts.
        counted: The texts in which word frequencies are counted. A record's own user is left out of its counts: else
            the words of counted users would seem more frequent than those of others.
    """
    mine = count_words_by_user(counted)
    whole = Counter[str]()
    for words in mine.values():
        whole.update(words)
    counts: dict[str, Callable[[str], int]] = {
        "digits": lambda text: sum(character.isdigit() for character in text),
        "length": lambda text: len(text.split()),
        "symbols": lambda text: sum(not character.isalnum() and not character.isspace() for character in text),
    }
    made = {name: [[count(record.scored_text)] for record in records] for name, count in counts.items()}
    made["rarest"] = [_count_rarest(record.scored_text, whole, mine.get(record.owner, {})) for record in records]
    return {name: np.array(columns, dtype=np.float64) for name, columns in made.items()}


def count_words_by_user(records: Iterable[Record]) -> dict[str, Counter[str]]:
    """How often each user wrote each word.

    >>> count_words_by_user([Record(id="1", user="ann", text="to be or not to be")])["ann"]["be"]
    2
    """
    found: dict[str, Counter[str]] = {}
    for record in records:
        found.setdefault(record.owner, Counter()).update(record.scored_text.split())
    return found


def _count_rarest(text: str, whole: Mapping[str, int], mine: Mapping[str, int]) -> list[int]:
    """How often others wrote a text's rarest words, rarest first; the last is repeated where there are fewer."""
    found = sorted(whole.get(word, 0) - mine.get(word, 0) for word in text.split())[:RAREST_WORD_COUNT] or [0]
    return found + found[-1:] * (RAREST_WORD_COUNT - len(found))
