"""Ids that come twice: found by their hashes, then made certain by comparing the ids themselves."""

from __future__ import annotations

from array import array
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from recollect.corpora.faults import SKIP, Fault, excerpt
from recollect.corpora.reading import Reading, place
from recollect.corpora.record import Record
from recollect.corpora.spill import Spill, hash_number

AT_A_TIME = 1 << 18
"""How many ids are compared in one pass, which bounds the memory this takes."""


def find_repeats(reading: Reading, ids: Spill) -> NDArray[np.int64] | None:
    """Which records repeat an earlier id (counted from 0 over all files, in order); None if there are none.

    Without `skip_bad` the first such record is an error. A corpus without repeats costs no further pass, but
    for about one in a billion of 100,000 records, in which two different ids share a hash.

    Args:
        reading: How the records are read.
        ids: The ids of all whole records.
    """
    found = array("q")
    for suspicious in _in_portions(ids):
        found.extend(_certain(reading, suspicious))
    return np.sort(np.frombuffer(found, dtype=np.int64)) if found else None


def _in_portions(ids: Spill) -> Iterator[frozenset[int]]:
    """The hashes that came more than once, as many as are compared in one pass."""
    portion: set[int] = set()
    for hashes in ids.repeated():
        portion.update(hashes.tolist())
        if len(portion) >= AT_A_TIME:
            yield frozenset(portion)
            portion.clear()
    if portion:
        yield frozenset(portion)


def _certain(reading: Reading, suspicious: frozenset[int]) -> array[int]:
    """The records whose id has one of these hashes and truly came before."""
    found = array("q")
    first: dict[str, str] = {}
    for ordinal, (shard, number, outcome) in enumerate(reading.placed()):
        if not isinstance(outcome, Record) or hash_number(outcome.id) not in suspicious:
            continue
        here = place(shard, number)
        if outcome.id not in first:
            first[outcome.id] = here
        elif reading.skip_bad:
            found.append(ordinal)
        else:
            raise _duplicate(outcome.id, first[outcome.id]).error(here)
    return found


_OWN_ID = (
    "Give every record an id of its own, name another column with --id-column (--id-column '' for none: records are "
    f"then known by their line). {SKIP}"
)


def _duplicate(identity: str, first: str) -> Fault:
    """The fault of an id that was used before."""
    return Fault("duplicate_id", f"the id {excerpt(identity)} was already used in {first}.", do=_OWN_ID)
