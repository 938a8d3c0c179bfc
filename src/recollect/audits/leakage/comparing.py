"""Who speaks, about whom, and who judges: a model's sequences beside a model that has not seen their users."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from recollect.corpora.record import Record
from recollect.signals.evidence import Evidence

Source = tuple[str, str]
"""A model and the corpus that it was asked about, by their parts."""


@dataclass(frozen=True, kw_only=True)
class Judges:
    """Whose sequences are looked for, and a model that has not seen the users to compare with."""

    speaker: Source
    reference: Source | None = None


@dataclass(frozen=True, kw_only=True, eq=False)
class Asked:
    """A corpus with the models that speak and judge, one pair of them for each user."""

    corpus: str
    judges: tuple[Judges, ...]
    place: Mapping[str, int] | None = None
    """By user, which of the judges; of users who have none nothing is said. None: the first judges everybody."""

    @property
    def sources(self) -> frozenset[Source]:
        """All answers that are read."""
        return frozenset(
            source for each in self.judges for source in (each.speaker, each.reference) if source is not None
        )

    def parts(self, records: Sequence[Record]) -> Iterator[tuple[Judges, list[Record]]]:
        """The records by who judges them."""
        if self.place is None:
            yield self.judges[0], list(records)
            return
        theirs: dict[int, list[Record]] = {}
        for record in records:
            if (place := self.place.get(record.owner)) is not None:
                theirs.setdefault(place, []).append(record)
        for place, some in sorted(theirs.items()):
            yield self.judges[place], some

    def users(self, evidence: Evidence) -> tuple[str, ...]:
        """The users of whom something can be said, in ascending order."""
        if self.place is not None:
            return tuple(sorted(self.place))
        return tuple(sorted({record.owner for record in evidence.corpora[self.corpus]}))


@dataclass(frozen=True, kw_only=True, eq=False)
class Comparison:
    """What the target says of the audited users, and what is said of users where nothing was seen."""

    target: Asked
    null: Asked | None = None
    """None if nobody can play this part."""
    way: str = ""
    """How the references came about, in words for a reader; empty if there are none."""
    seen: frozenset[str] = frozenset()
    """Users whom a given reference has seen: nothing can be said of them."""
