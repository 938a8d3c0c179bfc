"""Scores: one number per record, which never travels without its record and its owner."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Self

import numpy as np
import pyarrow as pa
from numpy.typing import ArrayLike, NDArray

from recollect.corpora.record import Record
from recollect.errors import NotEnoughData, StoreError
from recollect.files.arrow_tables import build_array, build_table

Floats = NDArray[np.float64]
_MAX_NAMED = 5
"""Records that a refusal names."""


@dataclass(frozen=True, eq=False)
class Scores:
    """One score per record; higher is more evidence of training.

    Two scores are joined by record, never by position. `stats` takes them as they are, and counts their users.

    >>> scores = Scores(("a", "b", "c"), ("ann", "ann", "bob"), np.array([1.0, 3.0, 5.0]))
    >>> scores["b"], scores.average_by_user().values.tolist()
    (3.0, [2.0, 5.0])
    """

    records: tuple[str, ...]
    """Ids of the records, each once."""
    users: tuple[str, ...]
    """The owner of each record: its user or, in a corpus without users, the record itself."""
    values: Floats
    """The score of each record; a record that has none is left out, so there is no NaN."""

    def __post_init__(self) -> None:
        if not len(self.records) == len(self.users) == len(self.values):
            raise ValueError(f"{len(self.records)} records, {len(self.users)} users, {len(self.values)} values")
        if len(self.positions) < len(self.records):
            raise ValueError("a record has two scores")
        if missing := np.flatnonzero(np.isnan(self.values)).tolist():
            raise _refuse_missing_scores([self.records[i] for i in missing], len(self.records))

    @classmethod
    def of(cls, records: Iterable[Record], score: Callable[[Record], float] | Mapping[str, float]) -> Self:
        """The scores of these records, in their order.

        Args:
            records: Who owns what.
            score: The score of a record, or of its id; a record that a mapping does not know is left out.
        """
        if isinstance(score, Mapping):
            kept = [(record, score[record.id]) for record in records if record.id in score]
        else:
            kept = [(record, score(record)) for record in records]
        ids, users = tuple(record.id for record, _ in kept), tuple(record.owner for record, _ in kept)
        return cls(ids, users, np.array([value for _, value in kept], dtype=np.float64))

    @classmethod
    def concatenate(cls, scores: Iterable[Scores]) -> Self:
        """Several scores as one, in order; no record may come twice."""
        held = list(scores)
        records = tuple(record for each in held for record in each.records)
        users = tuple(user for each in held for user in each.users)
        return cls(records, users, np.concatenate([np.empty(0), *(each.values for each in held)]))

    def __len__(self) -> int:
        return len(self.records)

    @cached_property
    def positions(self) -> dict[str, int]:
        """Where a record is, by id."""
        return {record: i for i, record in enumerate(self.records)}

    def __contains__(self, record: object) -> bool:
        return record in self.positions

    def __getitem__(self, record: str) -> float:
        return float(self.values[self.positions[record]])

    def select(self, records: Sequence[str]) -> Self:
        """The scores of these records, in this order."""
        places = [self.positions[record] for record in records]
        return type(self)(tuple(records), tuple(self.users[i] for i in places), self.values[places])

    def select_users(self, users: Collection[str]) -> Self:
        """The scores of these users' records."""
        chosen = frozenset(users)
        return self.select([record for record, user in zip(self.records, self.users, strict=True) if user in chosen])

    def with_values(self, values: ArrayLike) -> Self:
        """Other values of the same records in the same order, such as p-values computed from these."""
        return type(self)(self.records, self.users, np.asarray(values, dtype=np.float64))

    def combine(self, other: Scores, combine: Callable[[Floats, Floats], Floats]) -> Self:
        """The two scores of each record made one, as the difference of a target's and a reference's.

        Refused if a record has only one of them: what cannot be compared must be left out knowingly, with `select`.
        """
        if alone := sorted(set(self.records) ^ set(other.records)):
            raise NotEnoughData(
                f"{len(alone)} records have one score but not the other, among them {alone[0]!r}.",
                do="Select the records that have both, and count the rest.",
                code="unpaired_scores",
            )
        return self.with_values(combine(self.values, other.select(self.records).values))

    def average_by_user(self) -> Self:
        """One score per user, the mean over the user's records; the users stand for records."""
        users = {user: i for i, user in enumerate(dict.fromkeys(self.users))}
        codes = np.fromiter((users[user] for user in self.users), dtype=np.int64, count=len(self))
        means = np.bincount(codes, weights=self.values, minlength=len(users)) / np.bincount(codes, minlength=len(users))
        return type(self)(tuple(users), tuple(users), means)

    def to_table(self, **columns: ArrayLike) -> pa.Table:
        """An Arrow table with record, user and score, and further columns in the same order."""
        named = {"record": build_array(self.records, pa.string()), "user": build_array(self.users, pa.string())}
        return build_table({**named, "score": self.values, **columns})

    @classmethod
    def from_table(cls, table: pa.Table) -> Self:
        """The scores that `to_table` wrote."""
        if absent := {"record", "user", "score"} - set(table.column_names):
            raise StoreError(
                f"A table of scores lacks {', '.join(sorted(absent))}.",
                do="Run the audit again.",
                code="missing_columns",
            )
        records, users = table["record"].to_pylist(), table["user"].to_pylist()
        return cls(tuple(records), tuple(users), table["score"].to_numpy().astype(np.float64))


def _refuse_missing_scores(records: Sequence[str], total: int) -> NotEnoughData:
    """That the scores of these records are not numbers, which ones they are, and what to do about it."""
    named = ", ".join(repr(record) for record in records[:_MAX_NAMED])
    more = f" and {len(records) - _MAX_NAMED:,} more" if len(records) > _MAX_NAMED else ""
    return NotEnoughData(
        f"The scores of {len(records):,} of {total:,} records are not numbers (NaN): {named}{more}.",
        do="Leave these records out of the corpus, or score them in a way that gives numbers: a model may overflow in "
        "half precision (--precision float32), and a signal of your own leaves out records that it cannot score.",
        code="missing_scores",
    )
