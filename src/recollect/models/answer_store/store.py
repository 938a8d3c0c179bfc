"""The answer store: what a model showed, in Parquet shards that are found by record digest."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from itertools import islice
from pathlib import Path
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from recollect.corpora.record import Record
from recollect.errors import StoreError
from recollect.models.access import Access
from recollect.models.answer_store.manifest import Manifest
from recollect.models.answer_store.shards import (
    SUFFIX,
    Digests,
    build_empty_shard,
    pack_shard_digests,
    read_record_digests,
    read_shard,
)
from recollect.models.answers import Answers
from recollect.models.limited import weaken

Item = TypeVar("Item")
MAX_BLOCK_CHARACTERS = 2**23
"""The most characters of a shard: with the numbers of their tokens they stay far below a gigabyte."""
CACHED_SHARDS = 4
"""Shards kept in memory: neighbours in a corpus are in the same shard or the next."""


@dataclass(frozen=True, eq=False)
class AnswerStore:
    """A store as it was when it was opened: shards that are written later are seen when it is opened again."""

    folder: Path
    manifest: Manifest
    access: Access
    """What is shown to the reader: at most what the store holds."""
    min_probability: float | None = None
    """The probability below which nothing is shown to the reader."""

    @classmethod
    def open(cls, folder: Path) -> AnswerStore:
        """The store in this folder.

        Raises:
            StoreError: There is none, or it is damaged; the message says what to delete.
        """
        manifest = Manifest.read(folder)
        return cls(folder, manifest, manifest.access)

    def limited(self, access: Access, *, min_probability: float | None = None) -> AnswerStore:
        """The same store, read as a model that shows less would have answered."""
        strictest = max((p for p in (self.min_probability, min_probability) if p is not None), default=None)
        return replace(self, access=self.access.lower(access), min_probability=strictest)

    def __len__(self) -> int:
        return len(self._index.records)

    def __contains__(self, record: Record) -> bool:
        return bool(self.contains(pack_shard_digests([record.digest]))[0])

    def contains(self, digests: Digests) -> NDArray[np.bool_]:
        """Which of these records have been answered."""
        return self._index.find(digests) >= 0

    def get_answers(self, records: Iterable[Record]) -> Answers:
        """The answers to these records, each once, in their order.

        Raises:
            StoreError: Some of them were never scored.
        """
        distinct = {record.digest: record for record in records}
        digests = list(distinct)
        indices = self._index.find(pack_shard_digests(digests))
        if (indices < 0).any():
            lost = [record.id for record, index in zip(distinct.values(), indices, strict=True) if index < 0]
            raise StoreError(
                f"{len(lost)} of {len(digests)} records are not in the answer store '{self.folder}', "
                f"such as the record {lost[0]!r}.",
                do="Score them with the model first (recollect score).",
                code="not_scored",
            )
        shards = self._index.shards[indices]
        parts = [
            self._shard(shard).select([digests[i] for i in np.flatnonzero(shards == shard)])
            for shard in np.unique(shards).tolist()
        ]
        found = (
            Answers.concatenate(parts).select(digests) if parts else build_empty_shard(double=self.manifest.is_double)
        )
        return weaken(found, self.access, min_probability=self.min_probability)

    def iter_blocks(self, records: Iterable[Record]) -> Iterator[tuple[list[Record], Answers]]:
        """The records block by block with their answers, in bounded memory.

        Fast for records in the order in which they were scored, or some of them in that order: each shard is then
        read about once.
        """
        for block in split_by_length(records, self.manifest.block):
            yield block, self.get_answers(block)

    def __iter__(self) -> Iterator[Answers]:
        """All answers, shard by shard, each record once, in an order that depends on the content alone."""
        for shard in range(len(self._index.paths)):
            part = self._shard(shard)
            chosen = self._index.shards[self._index.find(pack_shard_digests(part.records))] == shard
            if not chosen.all():
                part = part.select([part.records[i] for i in np.flatnonzero(chosen)])
            yield weaken(part, self.access, min_probability=self.min_probability)

    @cached_property
    def _index(self) -> _StoreIndex:
        """Where every record is; read from all shards when it is first needed."""
        return _StoreIndex.of(self.folder, self.manifest.address)

    @cached_property
    def _shard(self) -> Callable[[int], Answers]:
        """Reads a shard by its number, unless it is still at hand."""
        return lru_cache(CACHED_SHARDS)(lambda shard: read_shard(self._index.paths[shard], self.manifest.address))


@dataclass(frozen=True)
class _StoreIndex:
    """Which shard holds which record: 20 bytes per record, because corpora may have ten million."""

    paths: tuple[Path, ...]
    records: Digests
    """Sorted, each once."""
    shards: NDArray[np.int32]
    """The shard of each; where two hold the same record, the first by name."""

    @classmethod
    def of(cls, folder: Path, address: str) -> _StoreIndex:
        """The index of all shards in this folder."""
        paths = tuple(sorted(folder.glob(f"*{SUFFIX}")))
        held = [read_record_digests(path, address) for path in paths]
        shards = np.repeat(np.arange(len(paths), dtype=np.int32), [len(records) for records in held])
        records, first = np.unique(np.concatenate([pack_shard_digests([]), *held]), return_index=True)
        return cls(paths, records, shards[first])

    def find(self, digests: Digests) -> NDArray[np.int64]:
        """The place of each record in `records`; -1 where it is not there."""
        if not len(self.records):
            return np.full(len(digests), -1, dtype=np.int64)
        indices = np.searchsorted(self.records, digests)
        matches = self.records[np.minimum(indices, len(self.records) - 1)] == digests
        return np.where(matches, indices, -1)


def split_into_store_blocks(items: Iterable[Item], size: int) -> Iterator[list[Item]]:
    """The items in blocks of so many, as a store keeps them.

    >>> list(split_into_store_blocks("abcde", 2))
    [['a', 'b'], ['c', 'd'], ['e']]
    """
    left = iter(items)
    while block := list(islice(left, size)):
        yield block


def split_by_length(
    records: Iterable[Record], size: int, characters: int = MAX_BLOCK_CHARACTERS
) -> Iterator[list[Record]]:
    """The records in blocks of a store: so many, or fewer if they are long, because a block is in memory at once.

    Args:
        records: In any order, which stays.
        size: The most records of a block.
        characters: The most characters of a block that has more than one record.
    """
    block, held = list[Record](), 0
    for record in records:
        length = _count_characters(record)
        if block and (len(block) == size or held + length > characters):
            yield block
            block, held = [], 0
        block.append(record)
        held += length
    if block:
        yield block


def _count_characters(record: Record) -> int:
    """How long a record is that is put into a block of the store; of arrays it does not matter."""
    spoken = sum(len(str(message.content)) for message in record.messages or ())
    return spoken + sum(len(text) for text in (record.text, record.source, record.target) if text is not None)
