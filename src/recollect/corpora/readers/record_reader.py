"""From the files of a corpus to its records, pass after pass."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from recollect.corpora.readers.columns import Layout, build_missing_column_error
from recollect.corpora.readers.corpus_shards import Shard
from recollect.corpora.readers.faults import Fault
from recollect.corpora.readers.format_table import READERS
from recollect.corpora.readers.memory import narrow_in_memory
from recollect.corpora.readers.row_parser import RowParser, build_late_column_fault
from recollect.corpora.record import Record
from recollect.corpora.segmentation import Split

LocatedRecord = tuple[Shard, int, Record | Fault]


@dataclass(frozen=True, kw_only=True, eq=False)
class RecordReader:
    """How the records of a corpus are got out of its files. Calling it starts a new pass.

    It can be handed to a worker process: it holds names and settings only or, of a corpus in memory, its rows; of
    these, only the columns that are used travel.
    """

    shards: tuple[Shard, ...]
    layout: Layout
    split: Split | None = None
    skip_bad: bool = False
    duplicates: NDArray[np.int64] | None = None
    """Which records (counted from 0 over all files, bad ones too) repeat an earlier id; they are dropped."""

    def __getstate__(self) -> dict[str, object]:
        wanted = self.layout.column_names | self.layout.absent
        return {**self.__dict__, "shards": tuple(narrow_in_memory(shard, wanted) for shard in self.shards)}

    def __call__(self) -> Iterator[Record]:
        """The records of a new pass."""
        return self.iter_records(Counter())

    def with_column(self, column: str) -> RecordReader:
        """The same records, which carry along what their rows hold in this column, too.

        Raises:
            CorpusError: There is no such column.
        """
        first = self.shards[0]
        reader, names = READERS[first.format], READERS[first.format].read_columns(first)
        if column not in names and not reader.fixed_columns:  # only the first rows were looked at
            rows = (row for shard in self.shards for _, row in reader.iter_rows(shard, frozenset([column])))
            names = sorted({*names, *(column for row in rows if not isinstance(row, Fault) and column in row)})
        if column not in names:
            raise build_missing_column_error(column, names, first.path)
        return replace(self, layout=replace(self.layout, extra=column))

    def iter_records(self, dropped: Counter[str], on_id: Callable[[str], None] | None = None) -> Iterator[Record]:
        """The records, or the pieces into which they are split.

        Args:
            dropped: Where what is dropped is counted by reason.
            on_id: Is told the id of every whole record.
        """
        good = self._iter_good(dropped, on_id)
        return good if self.split is None else self.split.split_records(good, dropped)

    def _iter_good(self, dropped: Counter[str], on_id: Callable[[str], None] | None) -> Iterator[Record]:
        """The whole records; a bad one is an error or, where they are skipped, counted."""
        duplicates = iter(() if self.duplicates is None else self.duplicates)
        next_duplicate = next(duplicates, None)
        for ordinal, (shard, number, outcome) in enumerate(self.iter_located()):
            if isinstance(outcome, Fault):
                if outcome.fatal or not self.skip_bad:
                    raise outcome.to_error(describe_location(shard, number))
                dropped[outcome.reason] += 1
            elif ordinal == next_duplicate:
                dropped["duplicate_id"] += 1
                next_duplicate = next(duplicates, None)
            else:
                if on_id is not None:
                    on_id(outcome.id)
                yield outcome

    def iter_located(self) -> Iterator[LocatedRecord]:
        """Every record or fault, with the file and line it comes from."""
        parse_row, wanted = RowParser(self.layout), self.layout.column_names | self.layout.absent
        for shard in self.shards:
            self._check_columns(shard)
            prefix = shard.prefix
            for number, row in READERS[shard.format].iter_rows(shard, wanted):
                yield shard, number, row if isinstance(row, Fault) else parse_row(row, f"{prefix}{number}")

    def _check_columns(self, shard: Shard) -> None:
        """Refuse a shard whose columns are not those of the first; where rows differ, each is checked instead."""
        reader = READERS[shard.format]
        if not reader.fixed_columns or shard is self.shards[0]:
            return
        names = reader.read_columns(shard)
        for name in sorted(self.layout.column_names.difference(names)):
            raise build_missing_column_error(name, names, shard.path)
        for name in sorted(self.layout.absent.intersection(names)):
            raise build_late_column_fault(name).to_error(shard.path)


def describe_location(shard: Shard, number: int) -> str:
    """Where a record comes from, in words."""
    return f"{shard.path}, {READERS[shard.format].row_unit} {number}"
