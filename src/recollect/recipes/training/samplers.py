"""Which training sequences make up each step: shuffled, with replacement, or in order.

A sampler has no state: an epoch's draws follow from the seed and the epoch alone, so a training that was killed
finds its place again by skipping the draws it has seen.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from recollect import labels
from recollect.streams import stream

Indices = NDArray[np.int64]
_SORT_WINDOW = 50


class Sampler(Protocol):
    """Which training sequences make up each step."""

    @property
    def steps(self) -> int:
        """How many steps an epoch has."""

    def iter_batches(self, epoch: int) -> Iterator[Indices]:
        """The sequences of each step of an epoch."""


@dataclass(frozen=True, kw_only=True)
class ShuffledSampler:
    """Every sequence once an epoch in a new random order; or, with `bagging`, each drawn with replacement.

    Batches hold sequences of similar length: the order is random, then runs of 50 batches are sorted by length, cut
    into batches, and the batches of a run are taken in random order. So little is padded, and a sequence still meets
    different others each epoch.
    """

    lengths: NDArray[np.int32]
    batch_size: int
    seed: int
    bagging: bool = False

    @property
    def steps(self) -> int:
        """How many steps an epoch has."""
        return -(-len(self.lengths) // self.batch_size)

    def iter_batches(self, epoch: int) -> Iterator[Indices]:
        """The sequences of each step of an epoch."""
        rng, size = stream(self.seed, labels.STREAM_ORDER, epoch), len(self.lengths)
        order = rng.integers(0, size, size) if self.bagging else rng.permutation(size)
        run = self.batch_size * _SORT_WINDOW
        for begin in range(0, size, run):
            together = order[begin : begin + run]
            together = together[np.argsort(self.lengths[together], kind="stable")]
            batches = [together[at : at + self.batch_size] for at in range(0, len(together), self.batch_size)]
            for i in rng.permutation(len(batches)):
                yield batches[i]


@dataclass(frozen=True, kw_only=True)
class SequentialSampler:
    """The sequences as they are: for parallel streams, whose rows continue where they left off."""

    size: int
    batch_size: int

    @property
    def steps(self) -> int:
        """How many steps an epoch has."""
        return -(-self.size // self.batch_size)

    def iter_batches(self, epoch: int) -> Iterator[Indices]:
        """The sequences of each step of an epoch."""
        for begin in range(0, self.size, self.batch_size):
            yield np.arange(begin, min(begin + self.batch_size, self.size))


def iter_remaining(sampler: Sampler, epoch: int, seen: int) -> Iterator[Indices]:
    """The draws of a sampler that are still to come in an epoch after `seen` of them."""
    return islice(sampler.iter_batches(epoch), seen, None)
