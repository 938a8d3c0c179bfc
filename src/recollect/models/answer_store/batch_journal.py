"""Finished batches in a journal until their shard is whole: whoever is killed repeats one batch, not a block."""

from __future__ import annotations

import io
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from recollect.digests import digest_bytes
from recollect.errors import StoreError
from recollect.files import Journal
from recollect.models.answer_store.shards import Digests

JOURNAL_SUFFIX: Final = ".journal"
FLUSH_SECONDS: Final = 10.0
"""How long a finished batch may wait to reach the disk; a kill of the process loses none that is finished."""
_KEY: Final = "batch"
_THREADS: Final = "threads"
_RECORDS: Final = "records"
"""The first entry: the digests of the block's records, by which it is seen whether the block can still be asked for."""

Arrays = dict[str, NDArray[Any]]
Report = Callable[[int, int, int], None]
"""Called with how many items of how many are done, and how many tokens this batch computed (0 if it was stored)."""


class BatchJournal:
    """The batches of one block that are finished, by the items in them."""

    def __init__(self, journal: Journal, records: Digests, *, threads: int, report: Report | None = None) -> None:
        """Read what an earlier run has finished.

        Args:
            journal: Of this block alone.
            records: Of the block.
            threads: How many threads compute.
            report: Called after each batch.
        """
        self._journal, self._records, self._threads, self._report = journal, records, threads, report
        self._found: dict[str, Arrays] = {}
        self._used: set[int] = set()
        self._done = 0
        for payload in journal:
            entry = _unpack_batch(payload)
            if _KEY in entry:
                self._found[str(entry.pop(_KEY))] = entry

    @property
    def threads(self) -> tuple[int, ...]:
        """The numbers of threads that the batches were computed with."""
        return tuple(sorted(self._used))

    def find(self, batch: NDArray[np.int64], lengths: NDArray[np.int64]) -> Arrays | None:
        """What was found for a batch in an earlier run."""
        found = self._found.pop(_build_batch_key(batch, lengths), None)
        if found is not None:
            self._used.add(int(found.pop(_THREADS)))
        return found

    def add(self, batch: NDArray[np.int64], lengths: NDArray[np.int64], found: Arrays) -> None:
        """Keep what was found for a batch."""
        if self._journal.is_empty:
            self._journal.append(_pack_batch({_RECORDS: self._records}))
        key = np.array(_build_batch_key(batch, lengths))
        self._journal.append(_pack_batch({**found, _KEY: key, _THREADS: np.array(self._threads)}))
        self._used.add(self._threads)

    def report(self, batch: NDArray[np.int64], *, total: int, tokens: int) -> None:
        """Tell that a batch of the journal is done, of so many items in all."""
        self._done += len(batch)
        if self._report is not None:
            self._report(self._done, total, tokens)


@contextmanager
def keep_batches(
    shard: Path, records: Digests, *, owner: str, threads: int, report: Report | None = None
) -> Iterator[BatchJournal]:
    """The journal beside a shard that is being computed; it goes once the shard is there, or if it holds nothing.

    Args:
        shard: Where the shard will be.
        records: Of the block.
        owner: What the batches depend on.
        threads: How many threads compute.
        report: Called after each batch.
    """
    path = shard.with_suffix(JOURNAL_SUFFIX)
    with Journal.open(path, owner=owner, flush_seconds=FLUSH_SECONDS) as journal:
        try:
            yield BatchJournal(journal, records, threads=threads, report=report)
        except BaseException:
            if journal.is_empty:
                path.unlink(missing_ok=True)  # later runs may divide the records otherwise, and never come to it
            raise
    path.unlink(missing_ok=True)


def remove_dead_journals(folder: Path, contains: Callable[[Digests], NDArray[np.bool_]]) -> None:
    """Remove journals of blocks of which a record is answered: nobody asks for such a block again.

    A run was killed between writing a shard and removing its journal; or a run failed, and the next one divided the
    records otherwise. What cannot be read is left to `recollect verify`.

    Args:
        folder: The store, which nobody else fills at this moment.
        contains: Which records have been answered.
    """
    for path in folder.glob(f"*{JOURNAL_SUFFIX}"):
        with suppress(StoreError):
            first = next(Journal.read(path), None)
            records = None if first is None else _unpack_batch(first).get(_RECORDS)
            if records is None or contains(records).any():
                path.unlink(missing_ok=True)


class TokenRate:
    """How many tokens are scored in a second, from the first batch on."""

    def __init__(self) -> None:
        self._began = time.monotonic()
        self._tokens = 0

    def add(self, tokens: int) -> None:
        """Count scored tokens of a batch."""
        self._tokens += tokens

    def __str__(self) -> str:
        seconds = time.monotonic() - self._began
        return f"{self._tokens / seconds:,.0f} tokens/s" if self._tokens and seconds > 0 else ""


def flatten_arrays(found: Any) -> Arrays:
    """What a batch gave as named arrays for the journal: an array, an object of arrays, or several of these."""
    if isinstance(found, np.ndarray):
        return {"0": found}
    if isinstance(found, tuple):
        return {f"{i}.{name}": array for i, part in enumerate(found) for name, array in flatten_arrays(part).items()}
    return {name: array for name, array in vars(found).items() if array is not None}


def rebuild_arrays(arrays: Arrays, build: Callable[..., Any] | Sequence[Callable[..., Any] | None] | None) -> Any:
    """What a batch gave, from the arrays into which `flatten_arrays` took it apart.

    Args:
        arrays: By name.
        build: What makes the object of its arrays; None for an array; several for a tuple.
    """
    if build is None:
        return arrays["0"]
    if callable(build):
        return build(**arrays)
    parts = []
    for i, each in enumerate(build):
        mine = {name.partition(".")[2]: array for name, array in arrays.items() if name.partition(".")[0] == str(i)}
        parts.append(rebuild_arrays(mine, each))
    return tuple(parts)


def _build_batch_key(batch: NDArray[np.int64], lengths: NDArray[np.int64]) -> str:
    """The address of a batch: which items of a block are in it, and how long they are."""
    return digest_bytes(np.ascontiguousarray(batch, np.int64).data, np.ascontiguousarray(lengths[batch], np.int64).data)


def _pack_batch(arrays: Arrays) -> bytes:
    """The arrays of a batch as bytes of the journal."""
    file = io.BytesIO()
    np.savez(file, allow_pickle=False, **arrays)
    return file.getvalue()


def _unpack_batch(payload: bytes) -> Arrays:
    """The arrays that `_pack_batch` packed."""
    with np.load(io.BytesIO(payload), allow_pickle=False) as held:
        return {name: held[name] for name in held.files}
