"""Ids that come twice: found by their hashes, then made certain by comparing the ids themselves."""

from __future__ import annotations

from array import array
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from recollect.corpora.faults import SKIP_ADVICE, Fault, quote_excerpt
from recollect.corpora.record import Record
from recollect.corpora.record_reader import RecordReader, describe_location
from recollect.corpora.spill import Spill, hash_number

IDS_PER_PASS = 1 << 18
"""How many ids are compared in one pass, which bounds the memory this takes."""


def find_duplicate_ids(reader: RecordReader, ids: Spill) -> NDArray[np.int64] | None:
    """Which records repeat an earlier id (counted from 0 over all files, in order); None if there are none.

    Without `skip_bad` the first such record is an error. A corpus without repeats costs no further pass, but
    for about one in a billion of 100,000 records, in which two different ids share a hash.

    Args:
        reader: How the records are read.
        ids: The ids of all whole records.
    """
    found = array("q")
    for candidate_hashes in _iter_repeated_hashes(ids):
        found.extend(_confirm_duplicates(reader, candidate_hashes))
    return np.sort(np.frombuffer(found, dtype=np.int64)) if found else None


def _iter_repeated_hashes(ids: Spill) -> Iterator[frozenset[int]]:
    """The hashes of ids that came more than once, as many as are compared in one pass."""
    portion: set[int] = set()
    for hashes in ids.iter_repeated():
        portion.update(hashes.tolist())
        if len(portion) >= IDS_PER_PASS:
            yield frozenset(portion)
            portion.clear()
    if portion:
        yield frozenset(portion)


def _confirm_duplicates(reader: RecordReader, candidate_hashes: frozenset[int]) -> array[int]:
    """The records whose id has one of these hashes and truly came before."""
    found = array("q")
    first: dict[str, str] = {}
    for ordinal, (shard, number, outcome) in enumerate(reader.iter_located()):
        if not isinstance(outcome, Record) or hash_number(outcome.id) not in candidate_hashes:
            continue
        here = describe_location(shard, number)
        if outcome.id not in first:
            first[outcome.id] = here
        elif reader.skip_bad:
            found.append(ordinal)
        else:
            raise _build_duplicate_fault(outcome.id, first[outcome.id]).to_error(here)
    return found


_ADVICE = (
    "Give every record an id of its own, name another column with --id-column (--id-column '' for none: records are "
    f"then known by their line). {SKIP_ADVICE}"
)


def _build_duplicate_fault(identity: str, first: str) -> Fault:
    """The fault of an id that was used before."""
    return Fault("duplicate_id", f"the id {quote_excerpt(identity)} was already used in {first}.", do=_ADVICE)
