"""`read_corpus`: from a name to a checked corpus."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from recollect.corpora.columns import Columns, Layout, layout_of
from recollect.corpora.corpus import Corpus
from recollect.corpora.faults import Fault
from recollect.corpora.readers import names_of, rows_of
from recollect.corpora.record import Record
from recollect.corpora.shaping import Shape
from recollect.corpora.shards import Shard, shards_of
from recollect.corpora.spill import Spill
from recollect.corpora.summary import summarise
from recollect.errors import CorpusError

Placed = tuple[Shard, int, Record | Fault]


@dataclass(frozen=True, kw_only=True, eq=False)
class Reading:
    """How the records of a corpus are got out of its files; calling it starts a new pass."""

    shards: tuple[Shard, ...]
    layout: Layout
    skip_bad: bool
    repeats: NDArray[np.int64] | None = None
    """Which records (counted over all files) repeat an earlier id and are dropped."""

    def __call__(self) -> Iterator[Record]:
        """Start a new pass."""
        return self.records(Counter())

    def records(self, dropped: Counter[str], see_id: Callable[[str], None] | None = None) -> Iterator[Record]:
        """The good records; a bad one is an error or, where they are skipped, counted.

        Args:
            dropped: Where skipped records are counted by reason.
            see_id: Is told every id.
        """
        repeats = frozenset() if self.repeats is None else frozenset(self.repeats.tolist())
        for ordinal, (shard, number, outcome) in enumerate(self.placed()):
            if isinstance(outcome, Fault):
                if outcome.fatal or not self.skip_bad:
                    raise outcome.error(place(shard, number))
                dropped[outcome.reason] += 1
            elif ordinal in repeats:
                dropped["duplicate id"] += 1
            else:
                if see_id is not None:
                    see_id(outcome.id)
                yield outcome

    def placed(self) -> Iterator[Placed]:
        """Every record or fault, with the file and line it comes from."""
        shape, used = Shape(self.layout), self.layout.used
        for shard in self.shards:
            prefix = shard.prefix
            for number, row in rows_of(shard, used):
                yield shard, number, row if isinstance(row, Fault) else shape(row, f"{prefix}{number}")


def place(shard: Shard, number: int) -> str:
    """Where a record comes from, in words."""
    return f"{shard.path}, {'row' if shard.format in ('parquet', 'npz', 'hf') else 'line'} {number}"


def read_corpus(
    ref: str | Path,
    *,
    columns: Columns = Columns(),  # noqa: B008 - frozen
    format: str | None = None,
    skip_bad: bool = False,
    running_text: bool = False,
) -> Corpus:
    """A corpus, checked in one pass before anything else happens."""
    shards = shards_of(ref, format=format, running=running_text)
    layout = _layout(shards, columns)
    reading = Reading(shards=shards, layout=layout, skip_bad=skip_bad)
    return _checked(str(ref), reading)


def _layout(shards: tuple[Shard, ...], columns: Columns) -> Layout:
    for shard in shards:
        names = names_of(shard)
        if names:
            return layout_of(names, columns, place=shard.path)
    raise CorpusError(f"{shards[0].path} holds no records.", do="Give a file with at least one record.")


def _checked(name: str, reading: Reading) -> Corpus:
    dropped: Counter[str] = Counter()
    ids = Spill()
    summary = summarise(reading.records(dropped, ids.add if reading.layout.id else None))
    if summary.size == 0:
        raise CorpusError(f"{name} holds no record that can be used.", do=f"Dropped: {dict(dropped)}")
    return Corpus(name, reading, dict(dropped), summary)
