"""Who speaks, about whom, and who judges: a model's sequences beside a model that has not seen their users."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from recollect.corpora.record import Record
from recollect.signals.evidence import Evidence

Source = tuple[str, str]
"""A model and the corpus that it was asked about, by their parts."""
NOBODY = -1


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

    def parts(self, records: Sequence[Record]) -> Iterator[tuple[Judges, list[int]]]:
        """The places of records by who judges them; those who have no judges are listened to and not judged."""
        if self.place is None:
            yield self.judges[0], list(range(len(records)))
            return
        theirs: dict[int, list[int]] = {}
        for i, record in enumerate(records):
            theirs.setdefault(self.place.get(record.owner, NOBODY), []).append(i)
        for place, some in sorted(theirs.items()):
            yield self.judges[place] if place != NOBODY else Judges(speaker=self.judges[0].speaker), some

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
    """How the references came about, in sentences for a reader; empty if there are none."""
    seen: frozenset[str] = frozenset()
    """Users whom a given reference has seen: nothing can be said of them."""
