"""Answers: the numbers of each predicted token, with its record and position."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

Integers = NDArray[np.int32]
Floats = NDArray[np.floating[Any]]


@dataclass(frozen=True, kw_only=True, eq=False)
class Answers:
    """A model's scores of some records: one row per predicted token, records in the order given.

    Rows `offsets[i]:offsets[i + 1]` belong to `records[i]`; a record may have no rows at all (a text of one
    token, whose first token cannot be predicted). Columns that the model does not show are None.
    """

    records: tuple[str, ...]
    """Digests of the records, each once."""
    offsets: NDArray[np.int64]
    """Where each record's rows begin, and where the last one's end."""
    pattern: Integers
    """Which mask pattern the row belongs to; 0 for models that read from left to right."""
    position: Integers
    """Which token of the record's text (0 = first ordinary token) had to be predicted."""
    start: Integers
    """Where the token begins in the record's text, in characters."""
    end: Integers
    """Where it ends; start == end for a class label."""
    known: NDArray[np.bool_]
    """False where the token is `<unk>` to the model: it never counts as predicted."""
    rank: Integers
    """Number of tokens at least as likely as the true one, itself included; 0 = not among those shown."""
    logprob: Floats | None
    """Natural log-probability of the true token; NaN where this token's is not shown."""
    entropy: Floats | None
    """Of the whole predictive distribution, in nats."""
    logprob_std: Floats | None
    """Standard deviation of log-probability under that distribution, in nats."""
    kept_mass: Floats | None = None
    """What the sampling scheme of the question keeps of that distribution: the sum of probability^(1/temperature) over
    the top k tokens. A token among them is drawn with its own share of it."""
    logits: Floats | None = None
    """Classifiers only: one row of logits per record."""

    def __len__(self) -> int:
        return len(self.records)

    @property
    def rows(self) -> int:
        """How many tokens were predicted."""
        return int(self.offsets[-1])

    @cached_property
    def index_of(self) -> dict[str, int]:
        """Where in `records` a record is (for the first time), by digest."""
        return {record: i for i, record in reversed(list(enumerate(self.records)))}

    def __contains__(self, record: object) -> bool:
        return record in self.index_of

    def get_rows(self, record: str) -> slice:
        """The rows of one record, by its digest."""
        i = self.index_of[record]
        return slice(int(self.offsets[i]), int(self.offsets[i + 1]))

    def count_rows(self, records: Sequence[str]) -> NDArray[np.int64]:
        """How many rows each of these records has, by digest."""
        indices = np.array([self.index_of[record] for record in records], dtype=np.int64)
        return np.asarray(self.offsets[indices + 1] - self.offsets[indices])

    def iter_column(self, column: str) -> Iterator[NDArray[Any]]:
        """One array per record, in the order of `records`.

        Args:
            column: The name of a column, such as "logprob".
        """
        values = getattr(self, column)
        for begin, end in zip(self.offsets[:-1], self.offsets[1:], strict=True):
            yield values[begin:end]

    def select(self, records: Sequence[str]) -> Answers:
        """The answers of these records (by digest), in this order."""
        indices = np.array([self.index_of[record] for record in records], dtype=np.int64)
        lengths = np.diff(self.offsets)[indices]
        offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
        rows = np.repeat(self.offsets[indices] - offsets[:-1], lengths) + np.arange(offsets[-1])
        columns = {name: None if value is None else value[rows] for name, value in self._columns().items()}
        return Answers(records=tuple(records), offsets=offsets, **columns)  # type: ignore[arg-type]

    @classmethod
    def concatenate(cls, pieces: Sequence[Answers]) -> Answers:
        """Several answers as one, in order; a record that comes again is taken the first time only."""
        concatenated = cls(
            records=tuple(record for piece in pieces for record in piece.records),
            offsets=np.concatenate([[0], np.cumsum(np.concatenate([np.diff(piece.offsets) for piece in pieces]))]),
            **{name: _concatenate_columns([getattr(piece, name) for piece in pieces]) for name in pieces[0]._columns()},
        )
        distinct = tuple(dict.fromkeys(concatenated.records))
        return concatenated if len(distinct) == len(concatenated) else concatenated.select(distinct)

    def _columns(self) -> dict[str, NDArray[Any] | None]:
        """The columns that have one value per row."""
        return {f.name: getattr(self, f.name) for f in fields(self) if f.name not in {"records", "offsets"}}


def _concatenate_columns(columns: Sequence[NDArray[Any] | None]) -> Any:
    """A column of several answers as one; None if the model does not show it."""
    shown = [column for column in columns if column is not None]
    return np.concatenate(shown) if len(shown) == len(columns) else None
