"""Randomness is an argument: independent, named random streams from one seed."""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np
from numpy.random.bit_generator import ISeedSequence
from numpy.typing import NDArray


def derive_seed(seed: int, *names: str | int) -> int:
    """The 128-bit seed of a stream, which depends on the whole path of names and on nothing else.

    >>> derive_seed(0, "shadow", 17) == derive_seed(0, "shadow", "17")
    True
    >>> derive_seed(0, "ab", "c") == derive_seed(0, "a", "bc")
    False
    """
    path = "\x1f".join([str(seed), *map(str, names)])
    return int.from_bytes(hashlib.blake2b(path.encode(), digest_size=16).digest(), "little")


def stream(seed: int, *names: str | int) -> np.random.Generator:
    """The random stream of that name: adding another stream never moves this one's numbers.

    >>> bool(stream(0, "shadow", 17).random() == stream(0, "shadow", 17).random())
    True
    """
    return np.random.Generator(np.random.Philox(_Key(derive_seed(seed, *names))))  # type: ignore[arg-type]


class _Key(ISeedSequence):
    """A Philox key as it is: `Philox(key=…)` gives the same numbers but asks the system for entropy first."""

    def __init__(self, key: int) -> None:
        self._key = key

    def generate_state(self, n_words: int, dtype: Any = np.uint64) -> NDArray[Any]:
        """The key's two words."""
        return np.array([self._key % 2**64, self._key >> 64], dtype=np.uint64)
