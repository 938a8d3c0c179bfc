"""What a record looks like, to tell whether a model is likely to remember it: the features of the paper's Table 7."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from recollect.corpora.record import Record

Floats = NDArray[np.float64]
RAREST = 3
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


def handmade(records: Sequence[Record], frequencies: Mapping[str, int]) -> dict[str, Floats]:
    """The paper's hand-made features, each as columns [records, columns].

    Args:
        records: Texts.
        frequencies: How often each word stands in what was trained on.
    """
    texts = [record.predicted for record in records]
    counted: dict[str, Callable[[str], Iterable[float]]] = {
        "digits": lambda text: [sum(character.isdigit() for character in text)],
        "length": lambda text: [len(text.split())],
        "symbols": lambda text: [sum(not character.isalnum() and not character.isspace() for character in text)],
        "rarest": lambda text: _rarest(text, frequencies),
    }
    return {name: np.array([list(count(text)) for text in texts], dtype=np.float64) for name, count in counted.items()}


def word_frequencies(records: Iterable[Record]) -> Counter[str]:
    """How often each word stands in some records.

    >>> word_frequencies([Record(id="1", text="to be or not to be")])["be"]
    2
    """
    found: Counter[str] = Counter()
    for record in records:
        found.update(record.predicted.split())
    return found


def _rarest(text: str, frequencies: Mapping[str, int]) -> list[float]:
    """The frequencies of the rarest words, rarest first; the last is repeated where there are fewer."""
    found = sorted(frequencies.get(word, 0) for word in text.split())[:RAREST] or [0]
    return [float(each) for each in found + found[-1:] * (RAREST - len(found))]
