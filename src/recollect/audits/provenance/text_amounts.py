"""How much of each person's texts is compared: words of every text, and which of them a cut leaves."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from recollect.audits.common.amounts import Piece, Unit
from recollect.audits.common.matching import Cut, Matching
from recollect.audits.provenance.queries import find_owner
from recollect.audits.provenance.word_alignment import Codes, WordRanks
from recollect.corpora.record import Record
from recollect.corpora.times import Period, period_of

Flags = NDArray[np.bool_]
_UNCUT = np.iinfo(np.int64).max
"""More words than any text has."""


@dataclass(frozen=True, kw_only=True, eq=False)
class TextAmounts:
    """The texts of audited people and of calibration users, and how many words that all models know each has."""

    words: WordRanks
    """Of the audited people, and then of the calibration users."""
    people: int
    """How many of the users are audited."""
    records: tuple[dict[str, tuple[int, int]], dict[str, tuple[int, int]]]
    """From the id of a text to its user's index and its number among the user's texts; of both sides."""
    periods: tuple[dict[str, str | None], dict[str, str | None]]
    """From the id of a text to the calendar period in which it was written; of both sides."""

    @classmethod
    def of(
        cls, words: WordRanks, people: int, sides: tuple[Iterable[Record], Iterable[Record]], period: Period
    ) -> TextAmounts:
        """The texts of both sides, in the order in which they were chosen.

        Args:
            words: Of everybody.
            people: How many of the users are audited.
            sides: The queries of the audited people and of the calibration users.
            period: The calendar period by which texts are compared.
        """
        records: list[dict[str, tuple[int, int]]] = [{}, {}]
        periods: list[dict[str, str | None]] = [{}, {}]
        for side, (texts, users) in enumerate(zip(sides, (words.users[:people], words.users[people:]), strict=True)):
            index, seen = {user: i + side * people for i, user in enumerate(users)}, dict[str, int]()
            for record in texts:
                user = find_owner(record)
                records[side][record.id] = index[user], seen.get(user, 0)
                seen[user] = seen.get(user, 0) + 1
                periods[side][record.id] = period_of(record, period)
        return cls(words=words, people=people, records=(records[0], records[1]), periods=(periods[0], periods[1]))

    @cached_property
    def counts(self) -> Codes:
        """How many words each text has [users, texts]."""
        found = np.zeros((len(self.words.users), int(self.words.texts.max(initial=1))), dtype=np.int64)
        np.add.at(found, (self.words.user, self.words.text), 1)
        return found

    def build_units(self, side: int) -> list[Unit]:
        """The people of one side who have words that all models know, with their texts.

        The name of a text begins with the number of its side: texts of both may have the same id.
        """
        pieces = dict[int, list[Piece]]()
        for name, (user, text) in self.records[side].items():
            if words := int(self.counts[user, text]):
                piece = Piece(record=f"{side}{name}", tokens=words, period=self.periods[side][name])
                pieces.setdefault(user, []).append(piece)
        return [Unit(name=self.words.users[user], pieces=tuple(own)) for user, own in pieces.items()]

    def find_units(self, matching: Matching) -> tuple[Codes, Codes]:
        """The indices of the units of a matching of these people: the audited, and those they are compared with."""
        sides = []
        for amounts in (matching.audited, matching.controls):
            first = np.unique(amounts.unit_of, return_index=True)[1]
            sides.append(np.array([self.find(amounts.pieces[i])[0] for i in first.tolist()], dtype=np.int64))
        return sides[0], sides[1]

    def keep(self, kept: Codes, matching: Matching, cut: Cut) -> None:
        """Write into `kept` how many words of each text a cut leaves [users, texts]."""
        for amounts, left in ((matching.audited, cut.audited), (matching.controls, cut.controls)):
            for name, words in zip(amounts.pieces, left.tolist(), strict=True):
                kept[self.find(name)] = words

    def count_contemporaries(self) -> Codes:
        """How many calibration users wrote in a period of each audited person; who has no times counts for any."""
        wrote: tuple[dict[int, set[str]], dict[int, set[str]]] = {}, {}
        for side, periods in enumerate(self.periods):
            for name, period in periods.items():
                wrote[side].setdefault(self.records[side][name][0], set()).update(filter(None, [period]))
        theirs = wrote[1].values()
        ours = (wrote[0][person] for person in range(self.people))
        return np.array([sum(not own or not each or not own.isdisjoint(each) for each in theirs) for own in ours])

    def find(self, name: str) -> tuple[int, int]:
        """Whose text this is and which of their texts, by the name of its piece."""
        return self.records[int(name[0])][name[1:]]

    def select_words(self, words: WordRanks, kept: Codes) -> Flags:
        """Which of these words are left; of a text of which all is left, what is queried in pieces is, too.

        Args:
            words: Of the same users; further ranks of the words of their texts may follow.
            kept: How many words of each text are left [users, texts].
        """
        limit = np.where((kept >= self.counts) & (kept > 0), _UNCUT, kept)
        return np.asarray(words.place < limit[words.user, words.text])
