"""A corpus: records in a stable order that can be read again and again without being held in memory."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Protocol, Self, runtime_checkable

from recollect.corpora.arrow_batches import iter_batches
from recollect.corpora.corpus_summary import Summary, summarise_corpus
from recollect.corpora.record import Record
from recollect.errors import CorpusError

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass(frozen=True)
class Corpus:
    """Records in a stable order. Iterating opens the underlying files anew; nothing is held in memory."""

    name: str
    """How a reader of the report will know it: usually the file it came from."""
    open: Callable[[], Iterator[Record]] = field(repr=False)
    """Starts a new pass over the records."""
    skipped: Mapping[str, int] = field(default_factory=dict)
    """How many bad records were dropped, by reason (only with `skip_bad`)."""
    known_summary: Summary | None = field(default=None, repr=False)
    """The summary, where a pass over the records has already been made."""

    @classmethod
    def of(cls, records: Iterable[Record], *, name: str = "in memory") -> Corpus:
        """A corpus of records that are already in memory."""
        return cls(name, _RecordsInMemory(tuple(records)))

    def __iter__(self) -> Iterator[Record]:
        return self.open()

    def __len__(self) -> int:
        # `list(corpus)` asks for it, and must not cost a digest of everything
        return len(self.open.records) if isinstance(self.open, _RecordsInMemory) else self.summary.size

    def iter_batches(self, rows: int = 1024) -> Iterator[pa.RecordBatch]:
        """The records as Arrow batches of one schema: id, user, text, source, target, label (and array).

        Args:
            rows: Rows in a batch; the last may have fewer.
        """
        return iter_batches(self, rows)

    @cached_property
    def summary(self) -> Summary:
        """Size, users, kind and digest, found in one pass and then remembered."""
        return self.known_summary or summarise_corpus(self)

    @property
    def digest(self) -> str:
        """The address of ids, users and contents in their order."""
        return self.summary.digest

    def with_column(self, column: str) -> Corpus:
        """The same corpus, whose records carry along in `extra` what their rows hold in one more column.

        Ids, digests and the order stay as they are. Where a row has no such value, it is None.

        Raises:
            CorpusError: There is no such column, or the records do not come from rows with columns.
        """
        if not isinstance(self.open, _HasColumns):
            raise CorpusError(
                f"The records of {self.name} have no columns.",
                do="Read the corpus from a file, or from a table or list of rows in memory.",
                code="no_columns",
            )
        return replace(self, open=self.open.with_column(column))

    def filter(self, condition: Callable[[Record], bool], *, name: str) -> Corpus:
        """The records for which `condition` holds, in the same order."""
        return Corpus(name, _FilteredRecords(self, condition), self.skipped)

    def select_users(self, users: Collection[str], *, name: str | None = None) -> Corpus:
        """The records of these users (of these records, in a corpus without users)."""
        chosen = frozenset(users)
        return self.filter(_OwnedBy(chosen), name=name or f"{self.name} ({len(chosen)} users)")

    def select_records(self, ids: Collection[str], *, name: str | None = None) -> Corpus:
        """The records with these ids, in the order of the corpus."""
        chosen = frozenset(ids)
        return self.filter(_WithId(chosen), name=name or f"{self.name} ({len(chosen)} records)")


@runtime_checkable
class _HasColumns(Protocol):
    """Opens records that come from rows with columns."""

    def __call__(self) -> Iterator[Record]:
        """The records of a new pass."""

    def with_column(self, column: str) -> Self:
        """Opens the same records with one more column."""


# Classes in place of closures, so that a corpus can be handed to a worker process.


@dataclass(frozen=True)
class _RecordsInMemory:
    """Opens records that are in memory."""

    records: tuple[Record, ...]

    def __call__(self) -> Iterator[Record]:
        return iter(self.records)


@dataclass(frozen=True)
class _FilteredRecords:
    """Opens those records of a corpus for which a condition holds."""

    corpus: Corpus
    condition: Callable[[Record], bool]

    def __call__(self) -> Iterator[Record]:
        return filter(self.condition, self.corpus)

    def with_column(self, column: str) -> _FilteredRecords:
        """Opens the same records with one more column."""
        return replace(self, corpus=self.corpus.with_column(column))


@dataclass(frozen=True)
class _OwnedBy:
    """Whether a record belongs to one of the chosen users."""

    chosen: frozenset[str]

    def __call__(self, record: Record) -> bool:
        return record.owner in self.chosen


@dataclass(frozen=True)
class _WithId:
    """Whether a record is one of the chosen."""

    chosen: frozenset[str]

    def __call__(self, record: Record) -> bool:
        return record.id in self.chosen
