"""A corpus: records in a stable order that can be read again and again without being held in memory."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property

from recollect.corpora.record import Kind, Record
from recollect.digests import hasher


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


@dataclass(frozen=True)
class Corpus:
    """Records in a stable order. Iterating opens the underlying files anew; nothing is held in memory."""

    name: str
    """How a reader of the report will know it: usually the file it came from."""
    open: Callable[[], Iterator[Record]] = field(repr=False)
    """Starts a new pass over the records."""
    skipped: Mapping[str, int] = field(default_factory=dict)
    """How many bad records were dropped, by reason (only with `skip_bad`)."""

    @classmethod
    def of(cls, records: Iterable[Record], *, name: str = "in memory") -> Corpus:
        """A corpus of records that are already in memory."""
        held = tuple(records)
        return cls(name, lambda: iter(held))

    def __iter__(self) -> Iterator[Record]:
        return self.open()

    def __len__(self) -> int:
        return self.summary.size

    @cached_property
    def summary(self) -> Summary:
        """Size, users, kind and digest, found in one pass and then remembered."""
        state, size, users, kind = hasher(), 0, set[str](), None
        for record in self:
            state.update(f"{record.id}\x1f{record.user}\x1f{record.digest}\n".encode())
            size += 1
            kind = kind or record.kind
            if record.user is not None:
                users.add(record.user)
        return Summary(size=size, users=len(users), kind=kind or "text", digest=state.hexdigest())

    @property
    def digest(self) -> str:
        """The address of ids, users and contents in their order."""
        return self.summary.digest

    def keep(self, wanted: Callable[[Record], bool], *, name: str) -> Corpus:
        """The records for which `wanted` holds, in the same order."""
        return Corpus(name, lambda: (record for record in self if wanted(record)))

    def of_users(self, users: Collection[str], *, name: str | None = None) -> Corpus:
        """The records of these users (of these records, in a corpus without users)."""
        chosen = frozenset(users)
        return self.keep(lambda record: record.owner in chosen, name=name or f"{self.name} ({len(chosen)} users)")
