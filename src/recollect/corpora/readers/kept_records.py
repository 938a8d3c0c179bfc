"""Records of a small corpus, kept in memory: an audit passes over it ten times and more, and reads it once."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from recollect.corpora.readers.record_reader import RecordReader
from recollect.corpora.record import Record

KEPT_BYTES = 4 << 20
"""How much of a corpus is kept; of a larger one, nothing is."""
_BYTES_PER_RECORD = 500
"""What a record takes besides its content, about."""


@dataclass
class RecordBuffer:
    """The records of a pass, for as long as they are few and short."""

    records: list[Record] = field(default_factory=list)
    size: int = 0

    def add(self, record: Record, length: int) -> None:
        """Keep one more record, whose content is so many bytes long; or none, if that is too much."""
        self.size += length + _BYTES_PER_RECORD
        if self.size <= KEPT_BYTES:
            self.records.append(record)
        else:
            self.records.clear()

    def choose_source(self, reader: RecordReader) -> Callable[[], Iterator[Record]]:
        """What opens the records of a corpus: from memory, if all of them are here; else by reading them anew."""
        return KeptRecords(reader, tuple(self.records)) if self.records else reader


@dataclass(frozen=True, eq=False)
class KeptRecords:
    """Opens records that were read and kept; a worker process reads them anew."""

    reader: RecordReader
    records: tuple[Record, ...]

    def __call__(self) -> Iterator[Record]:
        """The records of a new pass.

        Raises:
            CorpusError: A file has changed since it was read.
        """
        for shard in self.reader.shards:
            shard.check_unchanged()
        return iter(self.records)

    def __reduce__(self) -> tuple[Callable[[RecordReader], RecordReader], tuple[RecordReader]]:
        return _get_reader, (self.reader,)

    def with_column(self, column: str) -> RecordReader:
        """The same records with one more column, which are read anew.

        Raises:
            CorpusError: There is no such column.
        """
        return self.reader.with_column(column)


def _get_reader(reader: RecordReader) -> RecordReader:
    """What stands for kept records in a worker process."""
    return reader
