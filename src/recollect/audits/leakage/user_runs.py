"""The runs of each user, and the user's score: the largest leak in one of them, from all texts or from first words."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from operator import itemgetter

import numpy as np
from numpy.typing import NDArray

from recollect.audits.common.amounts import Amounts, Piece, Unit
from recollect.audits.common.unicode_words import UNSPACED, list_words
from recollect.audits.leakage.predicted_runs import PredictedRuns
from recollect.corpora.corpus import Corpus
from recollect.corpora.times import Period, period_of

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
_UNSPACED = re.compile(f"[{UNSPACED}]")


@dataclass(frozen=True, kw_only=True, eq=False)
class UserRuns:
    """Users, their records, and the runs in them that nobody else wrote."""

    users: tuple[str, ...]
    """In ascending order."""
    records: tuple[str, ...]
    """The ids of their records, those of one user next to each other."""
    owner: Integers
    """Whose each record is: an index into the users [records]."""
    words: Integers
    """How many words each record has; in scripts without spaces, characters [records]."""
    periods: tuple[str | None, ...]
    """When each was written; None where that is unknown [records]."""
    at: Integers
    """In which record each run stands [runs]."""
    first: Integers
    """Which word of its record is its first, in the same measure [runs]."""
    end: Integers
    """How many words its record has up to its last, in the same measure [runs]."""
    value: Floats
    """How much leaks in it: nats, or words [runs]."""

    @cached_property
    def with_records(self) -> Integers:
        """The indices of users who have records to be compared by."""
        return np.unique(self.owner)

    def build_units(self) -> list[Unit]:
        """The users who have records, and how many words each record has; in the order of users and records."""
        borders = np.searchsorted(self.owner, [self.with_records, self.with_records + 1]).T.tolist()
        amounts = list(zip(self.records, self.words.tolist(), self.periods, strict=True))
        return [
            Unit(
                name=self.users[user],
                pieces=tuple(
                    Piece(record=name, tokens=max(1, words), period=period) for name, words, period in amounts[a:b]
                ),
            )
            for user, (a, b) in zip(self.with_records.tolist(), borders, strict=True)
        ]

    @cached_property
    def _index(self) -> dict[str, int]:
        """The index of each record."""
        return {name: i for i, name in enumerate(self.records)}

    def find_records(self, ids: Sequence[str]) -> Integers:
        """The index of each of these records."""
        return np.array([self._index[name] for name in ids], dtype=np.int64)

    def select(self, amounts: Amounts) -> UserRuns:
        """Some of the users, with no more of their records than these amounts have.

        Args:
            amounts: Of users of these: some records of each, and how many of their first words are left.
        """
        found = self.find_records(amounts.pieces)
        order = np.lexsort((found, amounts.unit_of))
        chosen, words = found[order], amounts.tokens[order]
        kept, place = np.zeros(len(self.records), dtype=np.int64), np.zeros(len(self.records), dtype=np.int64)
        kept[chosen], place[chosen] = words, np.arange(len(chosen))
        inside = self.end <= kept[self.at]
        return UserRuns(
            users=amounts.units,
            records=tuple(self.records[i] for i in chosen.tolist()),
            owner=amounts.unit_of[order],
            words=words,
            periods=tuple(self.periods[i] for i in chosen.tolist()),
            at=place[self.at[inside]],
            first=self.first[inside],
            end=self.end[inside],
            value=self.value[inside],
        )

    def score(self, kept: Integers | None = None, *, clipped: bool = False) -> Floats:
        """The largest leak of each user in one sequence; 0 where there is none [users].

        Args:
            kept: How many of the first words of each record count, 0 for none of it; None for all [records].
            clipped: Whether a run that goes on beyond the words that count is counted for the share of it before.
                Controls are scored so, and the audited are not: what a cut leaves open counts against the finding.
        """
        value, owner = self.value, self.owner[self.at]
        if kept is not None:
            limit = kept[self.at]
            share = np.clip((limit - self.first) / np.maximum(1, self.end - self.first), 0, 1)
            value = value * (share if clipped else share == 1)
        most = np.zeros(len(self.users))
        np.maximum.at(most, owner, value)
        return most


_NO_INTEGERS = np.empty(0, dtype=np.int64)
NOBODY = UserRuns(
    users=(),
    records=(),
    owner=_NO_INTEGERS,
    words=_NO_INTEGERS,
    periods=(),
    at=_NO_INTEGERS,
    first=_NO_INTEGERS,
    end=_NO_INTEGERS,
    value=np.empty(0),
)
"""The runs of nobody."""


@dataclass(frozen=True, kw_only=True)
class RunRule:
    """Which runs count, and by what."""

    k: int
    """Words among so many likeliest tokens."""
    in_nats: bool
    """Whether a run counts by nats; else by words."""
    period: Period = "month"
    """The calendar period by which records are compared."""
    dropped: frozenset[str] = frozenset()
    """Ids of records that are left out."""


def collect_user_runs(
    corpus: Corpus, users: tuple[str, ...], read: PredictedRuns, unique: NDArray[np.bool_], rule: RunRule
) -> UserRuns:
    """The predicted runs of some users that are theirs alone, by which users are scored.

    Args:
        corpus: Their records, in the order in which they were read.
        users: Whose runs; others are left out.
        read: What was read.
        unique: Which runs are one user's alone.
        rule: Which runs count, and by what.
    """
    code = {user: index for index, user in enumerate(users)}
    theirs = [
        (code[record.owner], position, record.id, *_measure(record.scored_text), period_of(record, rule.period))
        for position, record in enumerate(corpus)
        if record.owner in code and record.id not in rule.dropped
    ]
    theirs.sort(key=itemgetter(0, 1))
    position = np.array([each[1] for each in theirs], dtype=np.int64)
    place = np.full(int(position.max(initial=-1)) + 2, -1)
    place[position] = np.arange(len(theirs))
    rows = read.store.select(unique)
    rows = rows[rows["k"] == rule.k]
    at = place[np.minimum(rows["record"], len(place) - 1)]
    value = rows["reference"] - rows["nats"] if rule.in_nats else rows["words"].astype(np.float64)
    counted = (at >= 0) & ~np.isnan(value)
    scale = np.array([each[4] for each in theirs])[at[counted]]
    first, words = (rows[name][counted].astype(np.float64) for name in ("first", "words"))
    return UserRuns(
        users=users,
        records=tuple(each[2] for each in theirs),
        owner=np.array([each[0] for each in theirs], dtype=np.int64),
        words=np.array([each[3] for each in theirs], dtype=np.int64),
        periods=tuple(each[5] for each in theirs),
        at=at[counted],
        first=np.rint(first * scale).astype(np.int64),
        end=np.rint((first + words) * scale).astype(np.int64),
        value=np.asarray(value[counted], dtype=np.float64),
    )


def _measure(text: str) -> tuple[int, float]:
    """How much a user wrote in a record: its words, and how many of these each piece between spaces stands for.

    In scripts without spaces a character is a word: what stands between spaces is a whole sentence there, and a record
    of three hundred characters would have as much as one of three.
    """
    pieces = len(text.split())
    words = max(pieces, len(list_words(text))) if _UNSPACED.search(text) else pieces
    return words, words / max(1, pieces)
