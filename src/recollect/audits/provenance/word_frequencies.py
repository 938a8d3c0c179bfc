"""Word frequencies among the shadows' users, and how the target ranks frequent and rare words.

Never counted among the calibration users: they must be treated as the audited people are, or the p-values do not hold.
"""

from __future__ import annotations

import heapq
import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from recollect.audits.provenance.reference_users import Reference
from recollect.corpora.corpus import Corpus
from recollect.corpora.record import Record
from recollect.files.arrow_tables import build_table_of_rows
from recollect.signals.scores import Floats

if TYPE_CHECKING:
    from recollect.audits.provenance.word_alignment import WordRanks


_WORD = re.compile(r"\w+(?:['’]\w+)*|[^\w\s]")
BANDS = (0, 1, 10, 100, 1000, 10_000)
"""From so many times on that the shadows' users wrote a word, a band of the table begins."""
MIN_WORDS = 20
"""Words of each side without which a band is left out."""
_SCHEMA = pa.schema(
    {
        "written": pa.int64(),
        "words": pa.int64(),
        "rank": pa.float64(),
        "calibration_words": pa.int64(),
        "calibration_rank": pa.float64(),
    }
)


def split_words(text: str) -> list[str]:
    """The words of a text, in lowercase, as their frequencies are counted.

    >>> split_words("Don't panic, Arthur.")
    ["don't", 'panic', ',', 'arthur', '.']
    """
    return _WORD.findall(text.lower())


def find_word(text: str, start: int) -> str:
    """The word that begins at this character, as frequencies are counted; nothing where none does.

    >>> find_word("Don't panic", 6), find_word("Don't panic", 5)
    ('panic', '')
    """
    found = _WORD.match(text, start)
    return "" if found is None else found.group().lower()


@dataclass(frozen=True)
class Frequencies:
    """How often words occur, and their positions in the list that begins with the most frequent."""

    counts: Mapping[str, int]
    """Of the words that a model of this vocabulary would know."""
    positions: Mapping[str, int]
    unknown: int
    """How often all other words occur together: to a model they are one word."""

    @classmethod
    def of(cls, corpus: Iterable[Record], vocabulary: int) -> Frequencies:
        """The frequencies of a corpus.

        Args:
            corpus: The records of the reference corpus.
            vocabulary: How many of its most frequent words a model knows.
        """
        found: Counter[str] = Counter()
        for record in corpus:
            found.update(split_words(record.scored_text))
        # ties by the word itself: nothing may depend on the order of the records
        known = heapq.nsmallest(vocabulary, found.items(), key=lambda item: (-item[1], item[0]))
        unknown = found.total() - sum(count for _, count in known)
        return cls(dict(known), {word: position for position, (word, _) in enumerate(known)}, unknown)

    @cached_property
    def total(self) -> int:
        """How many words there are."""
        return self.unknown + sum(self.counts.values())

    def sum_counts(self, text: str) -> int:
        """The sum of the counts of a text's words (Algorithm 1, `SampleQueries`)."""
        return sum(self.counts.get(word, self.unknown) for word in split_words(text))

    def sum_information(self, text: str) -> float:
        """The information in a text's different words, in nats; words that a model would not know add nothing."""
        known = [self.counts[word] for word in set(split_words(text)) if word in self.counts]
        # an exact sum does not depend on the order of the words
        return math.fsum(math.log(self.total / count) for count in known)

    def sum_positions(self, text: str) -> int:
        """The sum of the positions of its words; words that a model would not know add nothing."""
        return sum(self.positions.get(word, 0) for word in split_words(text))


@dataclass(frozen=True)
class ShadowTexts:
    """What the shadows' users wrote: the choice of queries and the scores of words depend on it."""

    frequencies: Frequencies
    digests: frozenset[str]
    """Of all their texts: those that a shadow may have been trained on."""


def read_shadow_texts(reference: Reference, vocabulary: int) -> ShadowTexts:
    """What the shadows' users wrote: the frequencies of their words.

    A reference corpus may be large: it is read once, although an audit needs this to choose queries and to score them.

    Args:
        reference: The reference users.
        vocabulary: How many of their most frequent words a model knows.
    """
    return _read_shadow_texts_once(_Source(reference.corpus.digest, reference.training, vocabulary, reference.corpus))


@dataclass(frozen=True)
class _Source:
    """All that it depends on; two are the same if they have the same content."""

    digest: str
    users: tuple[str, ...]
    vocabulary: int
    corpus: Corpus = field(compare=False)


@lru_cache(maxsize=1)
def _read_shadow_texts_once(source: _Source) -> ShadowTexts:
    """One pass over what the shadows' users wrote: word frequencies and digests."""
    digests: set[str] = set()
    records = _iter_noting_digests(source.corpus.select_users(source.users), digests)
    return ShadowTexts(Frequencies.of(records, source.vocabulary), frozenset(digests))


def _iter_noting_digests(corpus: Corpus, digests: set[str]) -> Iterator[Record]:
    """The records of shadows' users whose words are counted, collecting their digests."""
    for record in corpus:
        digests.add(record.digest)
        yield record


def build_frequency_table(words: WordRanks, people: NDArray[np.bool_], calibration: NDArray[np.bool_]) -> pa.Table:
    """The target's median rank of words by how often others wrote them (Song and Shmatikov 2019, Figures 5 and 6).

    Null where it does not show the middle word.

    Args:
        words: Of all people; the target is the first model.
        people: Whose words are looked at [users].
        calibration: Who is known to be no member [users].
    """
    band = np.searchsorted(BANDS, words.frequency, side="right") - 1
    rows = []
    for position, fewest in enumerate(BANDS):
        inside = words.log_rank[0, (band == position) & people[words.user]]
        beside = words.log_rank[0, (band == position) & calibration[words.user]]
        if min(len(inside), len(beside)) >= MIN_WORDS:
            row = {"written": fewest, "words": len(inside), "rank": _find_median_rank(inside)}
            rows.append(row | {"calibration_words": len(beside), "calibration_rank": _find_median_rank(beside)})
    return build_table_of_rows(rows, _SCHEMA)


def _find_median_rank(log_rank: Floats) -> float | None:
    """The median rank of words of a frequency; the lower of two middle ones, so that what is not shown stays out."""
    middle = float(np.sort(log_rank)[(len(log_rank) - 1) // 2])
    return float(np.exp(middle)) if np.isfinite(middle) else None
