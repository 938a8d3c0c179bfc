"""What the shadows' users wrote: how frequent words are there, and which texts a shadow may have seen.

Never counted among the calibration users: they must be treated as the audited people are, or the p-values do not hold.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import lru_cache

from recollect.audits.provenance.queries import Frequencies
from recollect.audits.provenance.reference import Reference
from recollect.corpora.corpus import Corpus
from recollect.corpora.record import Record


@dataclass(frozen=True)
class Taught:
    """What the choice of texts and the scores of words depend on."""

    frequencies: Frequencies
    texts: frozenset[str]
    """The digests of all texts of these users."""


def taught(reference: Reference, vocabulary: int) -> Taught:
    """What the shadows' users wrote.

    A reference corpus may be large: it is read once, although an audit asks for this when it plans and when it judges.

    Args:
        reference: The reference users.
        vocabulary: How many of their most frequent words a model knows.
    """
    return _read(_Source(reference.corpus.digest, reference.training, vocabulary, reference.corpus))


@dataclass(frozen=True)
class _Source:
    """All that it depends on; two are the same if they have the same content."""

    digest: str
    users: tuple[str, ...]
    vocabulary: int
    corpus: Corpus = field(compare=False)


@lru_cache(maxsize=1)
def _read(source: _Source) -> Taught:
    """One pass over the corpus."""
    digests: set[str] = set()
    written = _noting(source.corpus.of_users(source.users), digests)
    return Taught(Frequencies.of(written, source.vocabulary), frozenset(digests))


def _noting(corpus: Corpus, digests: set[str]) -> Iterator[Record]:
    """The records, their digests noted on the way."""
    for record in corpus:
        digests.add(record.digest)
        yield record
