"""Occurrences of runs in a corpus: how many users' data contain each, anywhere within a record, and how often.

All runs are found at once, in time that grows with the corpus. Every word of a run gets a number and a random value. A
window of words has the hash Σ value·Pʲ mod 2⁶⁴, which differences of prefix sums give for windows of any length. A
table of the first words of all runs passes over most places; the few that are left are looked up by hash, and each hit
is compared word by word, so the result is exact. Pairs of a run and a user whose data contain it are kept once each,
though there may be more than fit into memory.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import IO

import numpy as np
from numpy.typing import NDArray

from recollect import labels
from recollect.corpora.corpus import Corpus
from recollect.corpora.spill import append_values
from recollect.streams import stream

Integers = NDArray[np.int64]
Hashes = NDArray[np.uint64]
PREFIX = 3
"""How many first words of a run the table looks at; all of a shorter run."""
SPARSE = 64
"""Places of the table for each run: about one place of the stream in so many passes for no reason."""
_LENGTH = np.uint64(0x9E3779B97F4A7C15)
HELD = 1 << 22
"""How many pairs are kept in memory before they are sorted and written: 32 MB, and as much again while sorting."""
BLOCK = 1 << 17
"""About how many words are processed at once: their working set fits into the cache."""
NOBODY = -1
_NONE: Hashes = np.empty(0, dtype=np.uint64)


@dataclass(frozen=True, eq=False)
class _OccurrencePrefixes:
    """The first words of all runs that have so many, and which lengths these runs have."""

    words: int
    table: NDArray[np.bool_]
    shift: np.uint64
    hashes: Hashes
    """Sorted, each once."""
    offsets: Integers
    """Where in `lengths` those of each prefix begin."""
    lengths: Integers

    @classmethod
    def of(cls, words: int, hashes: Hashes, lengths: Integers) -> _OccurrencePrefixes:
        """The prefixes of runs, from their hashes and the lengths of the runs."""
        pairs = np.unique(np.stack([hashes, lengths.astype(np.uint64)]), axis=1)
        distinct, first = np.unique(pairs[0], return_index=True)
        bits = max(8, int(len(distinct) * SPARSE).bit_length())
        shift = np.uint64(64 - bits)
        table = np.zeros(1 << bits, dtype=np.bool_)
        table[(distinct >> shift).astype(np.int64)] = True
        offsets = np.append(first, pairs.shape[1]).astype(np.int64)
        return cls(words, table, shift, distinct, offsets, pairs[1].astype(np.int64))

    def find_candidates(self, hashes: Hashes) -> tuple[Integers, Integers]:
        """Places at which a run may begin, and the length that it would have; places repeat, one for each length."""
        positions = np.flatnonzero(self.table[(hashes >> self.shift).astype(np.int64)])
        group = np.minimum(np.searchsorted(self.hashes, hashes[positions]), len(self.hashes) - 1)
        right = self.hashes[group] == hashes[positions]
        positions, group = positions[right], group[right]
        count = self.offsets[group + 1] - self.offsets[group]
        return np.repeat(positions, count), self.lengths[build_ranges(self.offsets[group], count)]


class OccurrenceMatcher:
    """Finds runs in streams of word numbers; 0 stands for words that are in no run, and between records."""

    def __init__(self, runs: Sequence[Integers]) -> None:
        """Prepare to look for these runs.

        Args:
            runs: Each run as the numbers of its words, all from 1 on; no run twice, none empty.
        """
        self._lengths = np.array([len(run) for run in runs], dtype=np.int64)
        self._offsets = np.cumsum(self._lengths) - self._lengths
        self._words = np.concatenate([np.empty(0, np.int64), *runs])
        rng = stream(0, *labels.STREAM_LEAKAGE_MATCHING)
        self._values = rng.integers(2**64, size=int(self._words.max(initial=0)) + 1, dtype=np.uint64)
        self._values[0] = 0
        self._base = rng.integers(2**64, dtype=np.uint64) | np.uint64(1)
        self._inverse = np.uint64(pow(int(self._base), -1, 2**64))
        self._powers, self._inverses = _compute_hash_powers(self._base, 1), _compute_hash_powers(self._inverse, 1)
        keys = self._compute_keys(self._values[self._words], self._offsets, self._lengths) if len(runs) else _NONE
        self._order = np.argsort(keys)
        self._sorted = keys[self._order]
        if (self._sorted[1:] == self._sorted[:-1]).any():
            raise ValueError("a run is given twice")
        self._prefixes = [
            self._build_prefixes(words) for words in range(1, PREFIX + 1) if self._select_runs(words).any()
        ]

    def __call__(self, ids: Integers) -> tuple[Integers, Integers]:
        """Every place at which a run occurs, and which run, in no particular order.

        Args:
            ids: A stream of word numbers.
        """
        if not len(ids) or not len(self._sorted):
            return np.empty(0, np.int64), np.empty(0, np.int64)
        values = self._values[ids]
        sums = self._compute_sums(values)
        found = [
            self._find(ids, sums, prefixes, self._hash_prefixes(values, prefixes.words)) for prefixes in self._prefixes
        ]
        return np.concatenate([positions for positions, _ in found]), np.concatenate([runs for _, runs in found])

    def _find(
        self, ids: Integers, sums: Hashes, prefixes: _OccurrencePrefixes, hashes: Hashes
    ) -> tuple[Integers, Integers]:
        """The runs that begin with one of these prefixes."""
        positions, lengths = prefixes.find_candidates(hashes)
        inside = positions + lengths <= len(ids)
        positions, lengths = positions[inside], lengths[inside]
        keys = self._hash_windows(sums, positions, lengths)
        at = np.minimum(np.searchsorted(self._sorted, keys), len(self._sorted) - 1)
        right = self._sorted[at] == keys
        positions, runs = positions[right], self._order[at[right]]
        same = self._verify(ids, positions, runs)
        return positions[same], runs[same]

    def _verify(self, ids: Integers, positions: Integers, runs: Integers) -> NDArray[np.bool_]:
        """Whether a run really occurs at each of these places, word by word."""
        lengths = self._lengths[runs]
        differs = ids[build_ranges(positions, lengths)] != self._words[build_ranges(self._offsets[runs], lengths)]
        before = np.concatenate([[0], np.cumsum(differs)])
        ends = np.cumsum(lengths)
        return np.asarray(before[ends] == before[ends - lengths])

    def _select_runs(self, words: int) -> NDArray[np.bool_]:
        """Which runs have a prefix of so many words in the tables."""
        return self._lengths == words if words < PREFIX else self._lengths >= words

    def _build_prefixes(self, words: int) -> _OccurrencePrefixes:
        """The table of the runs that have a prefix of so many words."""
        chosen = self._select_runs(words)
        columns = [self._values[self._words[self._offsets[chosen] + i]] for i in range(words)]
        return _OccurrencePrefixes.of(words, self._combine(columns), self._lengths[chosen])

    def _hash_prefixes(self, values: Hashes, words: int) -> Hashes:
        """The hash of so many words from each place on that has so many."""
        size = max(0, len(values) - words + 1)
        return self._combine([values[i : i + size] for i in range(words)])

    def _combine(self, columns: Sequence[Hashes]) -> Hashes:
        """The hashes of windows, from all their first words, all their second words and so on."""
        combined = columns[0].copy()
        for column, power in zip(columns[1:], _compute_hash_powers(self._base, PREFIX)[1:], strict=False):
            combined += column * power
        return combined

    def _compute_keys(self, values: Hashes, positions: Integers, lengths: Integers) -> Hashes:
        """The keys of windows of a stream."""
        return self._hash_windows(self._compute_sums(values), positions, lengths)

    def _compute_sums(self, values: Hashes) -> Hashes:
        """Prefix sums of value·Pʲ."""
        if len(values) > len(self._powers):
            self._powers, self._inverses = (
                _compute_hash_powers(self._base, len(values)),
                _compute_hash_powers(self._inverse, len(values)),
            )
        sums = np.empty(len(values) + 1, dtype=np.uint64)
        sums[0] = 0
        np.cumsum(values * self._powers[: len(values)], out=sums[1:])
        return sums

    def _hash_windows(self, sums: Hashes, positions: Integers, lengths: Integers) -> Hashes:
        """The hashes of windows, wherever they are, with their lengths mixed in."""
        hashes = (sums[positions + lengths] - sums[positions]) * self._inverses[positions]
        return np.asarray(hashes ^ (lengths.astype(np.uint64) * _LENGTH))


def build_ranges(starts: Integers, lengths: Integers) -> Integers:
    """Whole numbers from each start on, so many of them, one range after the other: places where a run may occur.

    >>> build_ranges(np.array([5, 1]), np.array([2, 3])).tolist()
    [5, 6, 1, 2, 3]
    """
    before = np.cumsum(lengths) - lengths
    return np.repeat(starts - before, lengths) + np.arange(int(lengths.sum()))


def _compute_hash_powers(base: np.uint64, count: int) -> Hashes:
    """For finding occurrences: the powers of the base of the hash of windows of words, from 0 on, mod 2⁶⁴."""
    powers = np.full(count, base, dtype=np.uint64)
    powers[:1] = 1
    return np.cumprod(powers, dtype=np.uint64)


class OccurrencePairs:
    """Pairs of a run and a user as one number each; sorted chunks of them are in an unnamed temporary file."""

    def __init__(self, held: int = HELD) -> None:
        """Begin with none.

        Args:
            held: How many are kept in memory.
        """
        self._held, self._pending, self._count = held, list[Hashes](), 0
        self._file: IO[bytes] | None = None
        self._sizes: list[int] = []

    def add(self, runs: NDArray[np.int64], users: NDArray[np.int64]) -> None:
        """Add some pairs; each may be added repeatedly."""
        keys = np.unique((runs.astype(np.uint64) << np.uint64(32)) | users.astype(np.uint64))
        self._pending.append(keys)
        self._count += len(keys)
        if self._count > self._held:
            merged = np.unique(np.concatenate(self._pending))
            self._pending, self._count = [merged], len(merged)
            if self._count > self._held // 2:
                self._write()

    def iter_distinct(self) -> Iterator[tuple[NDArray[np.int64], NDArray[np.int64]]]:
        """Runs and users of all pairs, each once, by run, in slices that no run crosses."""
        if self._file is None:
            yield _split_pairs(np.unique(np.concatenate([_NONE, *self._pending])))
            return
        self._write()
        self._file.flush()
        stored = np.asarray(np.memmap(self._file, dtype=np.uint64, mode="r"))
        chunks = np.split(stored, np.cumsum(self._sizes)[:-1])
        borders = self._find_borders(chunks)
        starts = [0] * len(chunks)
        for border in [*borders, None]:
            ends = [len(chunk) if border is None else int(np.searchsorted(chunk, border)) for chunk in chunks]
            yield _split_pairs(
                np.unique(np.concatenate([c[a:b] for c, a, b in zip(chunks, starts, ends, strict=True)]))
            )
            starts = ends

    def _find_borders(self, chunks: list[Hashes]) -> Hashes:
        """First keys of runs, between which there are about as many pairs as fit into memory."""
        sample = np.sort(np.concatenate([chunk[:: max(1, self._held // 256)] for chunk in chunks]))
        step = max(1, 256 // max(1, len(chunks)))
        return np.unique(sample[step::step] >> np.uint64(32)) << np.uint64(32)

    def _write(self) -> None:
        """Move the pairs in memory to the file."""
        keys = np.unique(np.concatenate([_NONE, *self._pending]))
        self._file = append_values(self._file, keys)
        self._sizes.append(len(keys))
        self._pending, self._count = [], 0


def _split_pairs(keys: Hashes) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Runs and users of some occurrences."""
    return (keys >> np.uint64(32)).astype(np.int64), (keys & np.uint64(0xFFFFFFFF)).astype(np.int64)


@dataclass(frozen=True, eq=False)
class Occurrences:
    """What was counted, run by run in the order in which they were given."""

    users: Integers
    """How many users' data contain it."""
    times: Integers
    """How often it is there; overlapping occurrences count each."""
    owner: Integers
    """The index in `names` of its only user; `NOBODY` if there are several or none."""
    names: tuple[str, ...]
    """The users in order of first occurrence."""


def count_occurrences(
    runs: Sequence[str], texts: Iterable[tuple[str, str]], *, block: int = BLOCK, held: int = HELD
) -> Occurrences:
    """Count in how many users' texts each run is.

    One pass in bounded memory: the runs, the names of the users, a block of words, and `held` pairs of a run and a
    user (the rest is in a temporary file).

    >>> counts = count_occurrences(["to be", "be"], [("ann", "to be or not to be"), ("bob", "let it be")])
    >>> counts.users.tolist(), counts.times.tolist(), counts.names[counts.owner[0]]
    ([1, 2], [2, 3], 'ann')

    Args:
        runs: Runs of words with a single space between them; no run twice.
        texts: Whose text each is, and the text.
        block: About how many words are looked through at once.
        held: How many pairs of a run and a user are kept in memory.
    """
    numbers: dict[str, int] = {}
    spelt = [np.array([numbers.setdefault(w, len(numbers) + 1) for w in run.split()], dtype=np.int64) for run in runs]
    names: dict[str, int] = {}
    matcher, pairs, times = OccurrenceMatcher(spelt), OccurrencePairs(held), np.zeros(len(runs), dtype=np.int64)
    for ids, users in _iter_text_blocks(texts, numbers, names, block):
        positions, found = matcher(ids)
        times += np.bincount(found, minlength=len(runs))
        pairs.add(found, users[positions])
    return _count_users_of_runs(pairs, times, tuple(names))


def _iter_text_blocks(
    texts: Iterable[tuple[str, str]], numbers: dict[str, int], names: dict[str, int], block: int
) -> Iterator[tuple[Integers, Integers]]:
    """Whole texts as word numbers with a 0 after each, and whose each word is: where runs are looked for."""
    get, ids, users, sizes = numbers.get, list[int](), list[int](), list[int]()
    for user, text in texts:
        before = len(ids)
        ids.extend([get(word, 0) for word in text.split()])
        ids.append(0)
        users.append(names.setdefault(user, len(names)))
        sizes.append(len(ids) - before)
        if len(ids) >= block:
            yield np.array(ids, dtype=np.int64), np.repeat(np.array(users, dtype=np.int64), sizes)
            ids, users, sizes = [], [], []
    if ids:
        yield np.array(ids, dtype=np.int64), np.repeat(np.array(users, dtype=np.int64), sizes)


def _count_users_of_runs(pairs: OccurrencePairs, times: Integers, names: tuple[str, ...]) -> Occurrences:
    """The occurrences of each run: in how many users' data it is, from distinct pairs of a run and a user."""
    users, owner = np.zeros(len(times), dtype=np.int64), np.full(len(times), NOBODY, dtype=np.int64)
    for runs, who in pairs.iter_distinct():
        users += np.bincount(runs, minlength=len(times))
        owner[runs] = who
    return Occurrences(users, times, np.where(users == 1, owner, NOBODY), names)


def iter_owned_texts(corpus: Corpus) -> Iterator[tuple[str, str]]:
    """Each text of a corpus with its user, as occurrences are counted."""
    return ((record.owner, record.scored_text) for record in corpus)
