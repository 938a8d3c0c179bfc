"""Texts that nobody owns alone: near-duplicates between the audited and the controls, and between users; and copies.

A control that says what an audited record says is no held-out record, and a phrase of two users tells nothing about
either. Such texts are dropped wherever they occur: dropping them from one side only would leave the common phrases on
the other, and make the two sides differ.
"""

from __future__ import annotations

import itertools
import zlib
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

import numpy as np

from recollect.audits.common.unicode_words import list_words
from recollect.corpora.record import Record
from recollect.corpora.sanitisation import normalise_duplicate

SHINGLE: Final = 5
"""So many words in a row are compared."""
MIN_SIMILARITY: Final = 0.8
"""From this Jaccard similarity of their shingles on, two texts are near-duplicates."""
SHORT: Final = 8
"""Texts of fewer words are duplicates only if they are equal after normalisation."""
_BANDS, _ROWS = 16, 4
"""Of the MinHash index: it misses a pair of similarity 0.8 once in 4,600 times, and every hit is verified."""


@dataclass(frozen=True, kw_only=True)
class Duplicates:
    """Which records are left out on either side because their text occurs on both, with two users, or once more."""

    audited: frozenset[str]
    """Ids of audited records."""
    controls: frozenset[str]
    """Ids of controls."""
    texts: int
    """How many different texts they have, near-duplicates counted once."""

    @property
    def counts(self) -> dict[str, int]:
        """How many were dropped, as a result's `dropped` has it.

        >>> Duplicates(audited=frozenset({"a"}), controls=frozenset(), texts=1).counts
        {'audited.near_duplicate': 1, 'controls.near_duplicate': 0}
        """
        return {
            "audited.near_duplicate": len(self.audited),
            "controls.near_duplicate": len(self.controls),
        }


def find_duplicates(audited: Iterable[Record], controls: Iterable[Record], *, own: bool = False) -> Duplicates:
    """The records of both sides whose text occurs, exactly or nearly, on both sides or with two users of one side.

    Texts of eight words or more are near-duplicates if the Jaccard similarity of their five-word shingles is 0.8 or
    more, found with MinHash (Broder 1997) and verified exactly; shorter ones if they are equal after normalisation of
    case, white space and punctuation. In scripts without spaces a character is a word. Arrays must be equal. Copies
    with one user, or in a corpus without users on one side, stay unless `own` says otherwise.

    >>> ann = [Record(id="1", user="ann", text="Thank you!"), Record(id="2", user="ann", text="See you at nine.")]
    >>> bob = [Record(id="1", user="bob", text="thank  you"), Record(id="2", user="bob", text="Not before ten.")]
    >>> sorted(find_duplicates(ann, bob).audited), sorted(find_duplicates(ann, bob).controls)
    (['1'], ['1'])

    Args:
        audited: Records of one side.
        controls: Records of the other side; ids may repeat those of the first.
        own: Whether copies with one user, or without a user on one side, count as well, all but the first by id: they
            say no more than it.
    """
    sides = [(0, record) for record in audited] + [(1, record) for record in controls]
    members = defaultdict[str, list[tuple[int, Record]]](list)
    made = dict[str, frozenset[int]]()
    for side, record in sides:
        key, shingles = _normalise_duplicate(record)
        if key:
            members[key].append((side, record))
            if shingles is not None:
                made[key] = shingles
    groups = _join_near_duplicates(_select_repeated(made))
    clusters = defaultdict[str, list[tuple[int, Record]]](list)
    for key, found in members.items():
        if len(found) > 1 or key in groups:
            clusters[groups.get(key, key)] += found
    shared = [found for found in clusters.values() if _is_shared(found)]
    extra = [each for found in clusters.values() if own and not _is_shared(found) for each in _list_repeats(found)]
    shared += [extra] if extra else []
    dropped = [frozenset(record.id for found in shared for at, record in found if at == side) for side in (0, 1)]
    return Duplicates(audited=dropped[0], controls=dropped[1], texts=len(shared) - bool(extra))


def _normalise_duplicate(record: Record) -> tuple[str, frozenset[int] | None]:
    """What makes two records equal, and the shingles of a text that is long enough; an empty text equals none."""
    if record.array is not None:
        return f"array:{record.digest}", None
    return _normalise_text(" ".join(filter(None, (record.context_text, record.scored_text))))


@lru_cache(maxsize=2**16)
def _normalise_text(text: str) -> tuple[str, frozenset[int] | None]:
    """A text as duplicates are compared, and the hashes of every five words in a row; kept for the next time."""
    words = list_words(text)
    key = " ".join(words) or normalise_duplicate(text)
    if len(words) < SHORT:
        return key, None
    encoded = [word.encode("utf-8", "surrogatepass") for word in words]
    return key, frozenset(zlib.crc32(b" ".join(encoded[i : i + SHINGLE])) for i in range(len(words) - SHINGLE + 1))


def _list_repeats(found: Sequence[tuple[int, Record]]) -> list[tuple[int, Record]]:
    """The duplicates on one side, of one user or of none, but for the first by id."""
    return sorted(found, key=lambda each: each[1].id)[1:]


def _is_shared(found: Sequence[tuple[int, Record]]) -> bool:
    """Whether a duplicate occurs on both sides, or with two users."""
    return len({side for side, _ in found}) > 1 or len({record.user for _, record in found} - {None}) > 1


def _join_near_duplicates(made: Mapping[str, frozenset[int]]) -> dict[str, str]:
    """From each text to the first of its near-duplicates.

    Only texts unlike all before are indexed, so that a thousand copies of one template cost a thousand look-ups.
    """
    if not made:
        return {}
    from datasketch import MinHash, MinHashLSH

    index = MinHashLSH(params=(_BANDS, _ROWS), num_perm=_BANDS * _ROWS)
    shingles, root = dict[str, frozenset[int]](), dict[str, str]()
    hashes = MinHash.generator(
        (list(each) for each in made.values()), num_perm=_BANDS * _ROWS, seed=1, hashfunc=_keep_hash
    )
    for (key, own), hashed in zip(made.items(), hashes, strict=True):
        similar = [
            root[other] for other in index.query(hashed) if _compare_shingles(own, shingles[other]) >= MIN_SIMILARITY
        ]
        if not similar:
            root[key], shingles[key] = key, own
            index.insert(key, hashed)
            continue
        root[key] = min(similar)
        if len(set(similar)) > 1:
            merged = set(similar)
            root = {each: root[key] if first in merged else first for each, first in root.items()}
    return root


def _select_repeated(made: Mapping[str, frozenset[int]]) -> dict[str, frozenset[int]]:
    """The texts that may have a near-duplicate among the others; no others can.

    Of two texts with similarity 0.8, at least 0.8 of the shingles of either are common. So if a fifth of the shingles
    of either and one more are looked at, the rarest ones first, at least one of them is common (prefix filtering,
    Bayardo et al. 2007).
    """
    if not made:
        return {}
    sizes = np.array([len(own) for own in made.values()])
    every = np.fromiter(itertools.chain.from_iterable(made.values()), dtype=np.int64, count=int(sizes.sum()))
    _, shingle, counts = np.unique(every, return_inverse=True, return_counts=True)
    starts = np.cumsum(sizes) - sizes
    repeated = np.add.reduceat(counts[shingle] > 1, starts, dtype=np.int64)
    kept = np.repeat(repeated >= MIN_SIMILARITY * sizes, sizes)
    text = np.repeat(np.arange(len(sizes)), sizes)[kept]
    if not len(text):
        return {}
    looked_at = sizes - np.ceil(MIN_SIMILARITY * sizes - 1e-9).astype(np.int64) + 1
    order = np.lexsort((shingle[kept], counts[shingle[kept]], text))
    first = np.searchsorted(text, text, side="left")
    rare = np.arange(len(text)) - first < looked_at[text]
    shingle, text = shingle[kept][order][rare], text[rare]
    common = np.bincount(shingle)[shingle] > 1
    chosen = set(text[common].tolist())
    return {key: own for i, (key, own) in enumerate(made.items()) if i in chosen}


def _keep_hash(hashed: int) -> int:
    """The hash of a shingle of near-duplicates: shingles are hashed already."""
    return hashed


def _compare_shingles(one: frozenset[int], other: frozenset[int]) -> float:
    """The Jaccard similarity of two sets of shingles: from which on texts are near-duplicates."""
    common = len(one & other)
    return common / (len(one) + len(other) - common)
