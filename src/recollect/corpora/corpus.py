"""A corpus: records in a stable order that can be read again and again; its summary, and Arrow batches of it."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import chain, islice
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

import numpy as np

from recollect.checks import check_at_least
from recollect.corpora.record import Kind, Record
from recollect.corpora.spill import Spill
from recollect.digests import frame, new_hasher
from recollect.errors import CorpusError

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass(frozen=True, kw_only=True)
class Summary:
    """What one pass over a corpus finds out."""

    size: int
    """Number of records."""
    users: int
    """Number of distinct users; 0 in a corpus without users."""
    kind: Kind
    digest: str
    """The address of ids, users and contents in their order."""


RECENT_USERS = 4096
"""How many users are remembered, so that those who write much are not hashed again and again."""
_NO_USER = b"\xff" * 8


def summarise_corpus(records: Iterable[Record], on_record: Callable[[Record, int], None] | None = None) -> Summary:
    """The summary of some records: size, users, kind and digest.

    Args:
        records: The records.
        on_record: Is given every record, and how many bytes its id, user and content are long.
    """
    state, users, size = new_hasher(), Spill(), 0
    kind: Kind | None = None
    recent: set[str] = set()
    for record in records:
        user = record.user
        identity = encode_identity(record)
        state.update(identity)
        if on_record is not None:
            on_record(record, len(identity))
        size += 1
        kind = kind or record.kind
        if user is not None and user not in recent:
            users.add(user)
            recent.add(user)
            if len(recent) == RECENT_USERS:
                recent.clear()
    return Summary(size=size, users=users.count_distinct(), kind=kind or "text", digest=state.hexdigest())


def encode_identity(record: Record) -> bytes:
    """What a record adds to the digest of a corpus: its id, user and content."""
    user = record.user
    return (
        frame(record.id.encode("utf-8", "surrogatepass"))
        + (_NO_USER if user is None else frame(user.encode("utf-8", "surrogatepass")))
        + frame(record.to_bytes())
    )


@dataclass(frozen=True)
class Corpus:
    """Records in a stable order. Iterating opens the underlying files anew; only a small corpus is held in memory."""

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

    def with_column(self, column: str) -> Callable[[], Iterator[Record]]:
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


STRING_COLUMNS = ("id", "user", "text", "source", "target")


def iter_batches(records: Iterable[Record], rows: int) -> Iterator[pa.RecordBatch]:
    """The records of a corpus as Arrow batches of so many rows (the last may have fewer), all of one schema.

    The columns are id, user, text, source, target and label (a whole number, if the first label is one, else a
    string), null where a record has no such content; for conversations also `messages`, and for arrays `array`, a
    fixed-shape tensor.

    Args:
        records: The records.
        rows: Rows in a batch.
    """
    check_at_least(1, rows=rows)
    remaining = iter(records)
    first = next(remaining, None)
    if first is None:
        return
    schema = _infer_batch_schema(first)
    remaining = chain([first], remaining)
    while chunk := list(islice(remaining, rows)):
        yield _build_batch(chunk, schema)


def _infer_batch_schema(first: Record) -> pa.Schema:
    """The schema of a corpus' Arrow batches, from its first record."""
    import pyarrow as pa

    label = pa.int64() if isinstance(first.label, int) else pa.string()
    fields = [*((name, pa.string()) for name in STRING_COLUMNS), ("label", label)]
    if first.messages is not None:
        turn = pa.struct([("role", pa.string()), ("content", pa.string()), ("scored", pa.bool_())])
        fields.append(("messages", pa.list_(turn)))
    if first.array is not None:
        fields.append(("array", pa.fixed_shape_tensor(pa.from_numpy_dtype(first.array.dtype), first.array.shape)))
    return pa.schema(fields)


def _build_batch(records: list[Record], schema: pa.Schema) -> pa.RecordBatch:
    """Records of a corpus as one Arrow batch."""
    import pyarrow as pa

    try:
        columns = [_build_batch_column(records, field) for field in schema]
    except (pa.ArrowException, ValueError, TypeError) as error:
        raise CorpusError(
            f"The records from {records[0].id!r} to {records[-1].id!r} are not all of one shape and type: {error}.",
            do="Give all records labels of one type and arrays of one shape.",
            code="mixed_records",
        ) from error
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def _build_batch_column(records: list[Record], field: Any) -> Any:
    """One column of a corpus' Arrow batch."""
    import pyarrow as pa

    if field.name == "array":
        stacked = np.stack([record.array for record in records])  # type: ignore[misc]
        return pa.FixedShapeTensorArray.from_numpy_ndarray(stacked).cast(field.type)
    if field.name == "messages":
        turns = [None if r.messages is None else [each._asdict() for each in r.messages] for r in records]
        return pa.array(turns, type=field.type)
    return pa.array([getattr(record, field.name) for record in records], type=field.type)
