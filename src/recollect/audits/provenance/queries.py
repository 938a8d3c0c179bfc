"""The texts that are asked about: chosen before any model is asked, by how rare their words are or at random.

What is rare is counted among the shadows' users, never in the target's data.
"""

from __future__ import annotations

import heapq
import math
import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal

from recollect import labels
from recollect.corpora.corpus import Corpus
from recollect.corpora.record import Record
from recollect.streams import seed_of

Select = Literal["surprise", "rarest", "rarest-ranks", "random"]
"""`surprise`: the most information in the different words of a text that a model would know. `rarest`: the smallest
sum of word counts, as the paper prints it, which favours short texts. `rarest-ranks`: the largest sum of the words'
places in the list of frequent words, as the authors' code has it, which favours long ones."""
PERSON = "the person"
"""Who owns the texts of a file that names no users."""
_WORD = re.compile(r"\w+(?:['’]\w+)*|[^\w\s]")


def words_of(text: str) -> list[str]:
    """The words of a text, small, as their frequencies are counted.

    >>> words_of("Don't panic, Arthur.")
    ["don't", 'panic', ',', 'arthur', '.']
    """
    return _WORD.findall(text.lower())


def word_at(text: str, place: int) -> str:
    """The word that begins at this place, small; nothing where none does.

    >>> word_at("Don't panic", 6), word_at("Don't panic", 5)
    ('panic', '')
    """
    found = _WORD.match(text, place)
    return "" if found is None else found.group().lower()


def owner(record: Record) -> str:
    """Whose text it is; a file without users is one person's."""
    return PERSON if record.user is None else record.user


@dataclass(frozen=True)
class Frequencies:
    """How often words occur, and their places in the list that begins with the most frequent."""

    counts: Mapping[str, int]
    """Of the words that a model of this vocabulary would know."""
    places: Mapping[str, int]
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
            found.update(words_of(record.predicted))
        # ties by the word itself: nothing may depend on the order of the records
        known = heapq.nsmallest(vocabulary, found.items(), key=lambda item: (-item[1], item[0]))
        unknown = found.total() - sum(count for _, count in known)
        return cls(dict(known), {word: place for place, (word, _) in enumerate(known)}, unknown)

    @cached_property
    def total(self) -> int:
        """How many words there are."""
        return self.unknown + sum(self.counts.values())

    def commonness(self, text: str) -> int:
        """The sum of the counts of a text's words (Algorithm 1, `SampleQueries`)."""
        return sum(self.counts.get(word, self.unknown) for word in words_of(text))

    def surprise(self, text: str) -> float:
        """The information in a text's different words, in nats; words that a model would not know tell nothing."""
        known = [self.counts[word] for word in set(words_of(text)) if word in self.counts]
        # an exact sum does not depend on the order of the words
        return math.fsum(math.log(self.total / count) for count in known)

    def rarity(self, text: str) -> int:
        """The sum of the places of its words; words that a model would not know add nothing."""
        return sum(self.places.get(word, 0) for word in words_of(text))


@dataclass(frozen=True)
class Chooser:
    """Chooses texts, the same ones whatever the order of the corpus."""

    select: Select
    frequencies: Frequencies
    seed: int
    taboo: Collection[str] = field(default=frozenset(), repr=False)
    """Digests of texts that are not asked about: the shadows may have seen them."""

    def chosen(self, corpus: Iterable[Record], users: Collection[str] | None = None) -> dict[str, list[Record]]:
        """All texts of each user that may be asked about, the best first.

        Args:
            corpus: The texts.
            users: Whose texts; None for everybody's.
        """
        texts: dict[str, dict[str, tuple[tuple[float, str], Record]]] = {}
        for record in corpus:
            user = owner(record)
            if (users is None or user in users) and record.digest not in self.taboo and record.predicted.strip():
                of_user, ranked = texts.setdefault(user, {}), (self._place(record), record.id)
                # the same text twice is one query
                of_user[record.digest] = min((ranked, record), of_user.get(record.digest, (ranked, record)), key=_first)
        return {user: [record for _, record in sorted(found.values(), key=_first)] for user, found in texts.items()}

    def _place(self, record: Record) -> float:
        """Where the text stands among those of its user; the smallest comes first."""
        if self.select == "random":
            return seed_of(self.seed, labels.STREAM_QUERY, record.id)
        if self.select == "rarest":
            return self.frequencies.commonness(record.predicted)
        if self.select == "surprise":
            return -self.frequencies.surprise(record.predicted)
        return -self.frequencies.rarity(record.predicted)


def _first(ranked: tuple[tuple[float, str], Record]) -> tuple[float, str]:
    """By what texts are put in order."""
    return ranked[0]


def asked(texts: Mapping[str, list[Record]], most: int, *, name: str) -> Corpus:
    """A corpus of the first texts of each user; a user's texts stand in the order in which they were chosen.

    Args:
        texts: The texts of each user, the best first.
        most: How many of each.
        name: What the corpus is called.
    """
    return Corpus.of([record for user in sorted(texts) for record in texts[user][:most]], name=name)
