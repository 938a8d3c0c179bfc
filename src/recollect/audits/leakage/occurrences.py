"""Occurrences of runs in a corpus: how many users' data contain each, anywhere within a record, and how often."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from recollect.audits.leakage.matcher import Matcher
from recollect.audits.leakage.pairs import HELD, Pairs

Integers = NDArray[np.int64]
BLOCK = 1 << 17
"""About how many words are processed at once: their working set fits into the cache."""
NOBODY = -1


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
    matcher, pairs, times = Matcher(spelt), Pairs(held), np.zeros(len(runs), dtype=np.int64)
    for ids, users in _iter_blocks(texts, numbers, names, block):
        positions, found = matcher(ids)
        times += np.bincount(found, minlength=len(runs))
        pairs.add(found, users[positions])
    return _count_users(pairs, times, tuple(names))


def _iter_blocks(
    texts: Iterable[tuple[str, str]], numbers: dict[str, int], names: dict[str, int], block: int
) -> Iterator[tuple[Integers, Integers]]:
    """Whole texts as word numbers with a 0 after each, and whose each word is, about so many words at a time."""
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


def _count_users(pairs: Pairs, times: Integers, names: tuple[str, ...]) -> Occurrences:
    """The users of each run, from distinct pairs of a run and a user."""
    users, owner = np.zeros(len(times), dtype=np.int64), np.full(len(times), NOBODY, dtype=np.int64)
    for runs, who in pairs.iter_distinct():
        users += np.bincount(runs, minlength=len(times))
        owner[runs] = who
    return Occurrences(users, times, np.where(users == 1, owner, NOBODY), names)
