"""An index of sets of shingles by MinHash (Broder 1997): similar ones are found without comparing every pair."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from functools import cache
from typing import Final

import numpy as np
from numpy.typing import NDArray

Hashes = NDArray[np.uint32]

_BANDS, _ROWS = 16, 4
"""A pair of similarity 0.8 is missed once in 4,600 times."""
_MIXING: Final = ((np.uint32(16), np.uint32(0x85EBCA6B)), (np.uint32(13), np.uint32(0xC2B2AE35)))
"""Shifts and factors of MurmurHash3, after which similar hashes of shingles are not similar any more."""


class ShingleIndex:
    """Names of sets of shingles; sets that are alike in all values of one band of their signatures are found."""

    def __init__(self) -> None:
        self._named = defaultdict[tuple[int, bytes], list[str]](list)

    def find_candidates(self, bands: Sequence[bytes]) -> set[str]:
        """The names of the sets that share a band with this one, most likely all those that are similar."""
        return {name for band in enumerate(bands) for name in self._named.get(band, ())}

    def add(self, name: str, bands: Sequence[bytes]) -> None:
        """Make a set known to the index."""
        for band in enumerate(bands):
            self._named[band].append(name)


def sign_shingles(shingles: frozenset[int]) -> list[bytes]:
    """The MinHash signature of a set of 32-bit hashes, in bands: the smallest hash of the set under each permutation.

    >>> sign_shingles(frozenset({1, 2, 3})) == sign_shingles(frozenset({3, 2, 1}))
    True
    """
    hashed = np.fromiter(shingles, np.uint32, len(shingles))
    for shift, factor in _MIXING:
        hashed = (hashed ^ (hashed >> shift)) * factor
    factors, offsets = _draw_hash_permutations()
    signature = ((hashed ^ (hashed >> np.uint32(16)))[:, None] * factors + offsets).min(axis=0)
    return [band.tobytes() for band in signature.reshape(_BANDS, _ROWS)]


@cache
def _draw_hash_permutations() -> tuple[Hashes, Hashes]:
    """Odd factors and offsets of the index: h → factor × h + offset modulo 2³² permutes all hashes.

    Those of the package datasketch, so that the same near-duplicates are found as with it.
    """
    rng, count = np.random.RandomState(1), _BANDS * _ROWS
    factors = rng.randint(0, 2**31, count, dtype=np.uint32) * np.uint32(2) + np.uint32(1)
    return factors, rng.randint(0, 2**32, count, dtype=np.uint32)
