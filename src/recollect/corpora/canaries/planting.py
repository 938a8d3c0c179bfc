"""Planting: made-up secrets go into a corpus at random places, and others like them are held back as controls."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from dataclasses import replace as changed

import numpy as np

from recollect import labels
from recollect.corpora.canaries.drawing import Planting, drawn
from recollect.corpora.canaries.manifest import Canaries, Canary
from recollect.corpora.corpus import Corpus
from recollect.corpora.record import Record
from recollect.errors import CorpusError, NotEnoughData, PlanError
from recollect.streams import stream

__all__ = ["Canaries", "Canary", "Planting", "plant"]


@dataclass(frozen=True)
class _Seedling:
    """One planting of one secret: where it goes."""

    canary: Canary
    number: int
    place: int
    """The index of the record before which it goes, or into which."""

    @property
    def id(self) -> str:
        """The id of its record, if it becomes one."""
        return f"{self.canary.id}-{self.number}"


def plant(corpus: Corpus, planting: Planting) -> tuple[Corpus, Canaries]:
    """The corpus with secrets planted in it, and the manifest that tells which and where.

    The places are uniform over the corpus and depend on the seed alone. The planted corpus is read as a stream.
    """
    _refuse_kind(corpus, planting)
    size = len(corpus)
    secrets = drawn(planting, corpus)
    rng = stream(planting.seed, *labels.STREAM_CANARY_RECORDS)
    count = sum(canary.planted for canary in secrets)
    if planting.inside and count > size:
        raise NotEnoughData(
            f"{count} plantings do not fit inside {size} records.",
            do=f"Give at least {count} records.",
            code="too_few_records",
        )
    places = rng.permutation(size)[:count] if planting.inside else rng.integers(0, size + 1, count)
    seedlings, spots = [], iter(places.tolist())
    for canary in secrets:
        seedlings += [_Seedling(canary, number, next(spots)) for number in range(canary.planted)]
    planted = _Planted(corpus, planting, tuple(sorted(seedlings, key=lambda seedling: seedling.place)))
    held: dict[str, list[str]] = {}
    for seedling, record in planted.holding():
        held.setdefault(seedling.canary.id, []).append(record.id)
    known = [canary.model_copy(update={"records": tuple(held.get(canary.id, ()))}) for canary in secrets]
    manifest = Canaries(corpus=corpus.digest, seed=planting.seed, canaries=tuple(known))
    return Corpus(f"{corpus.name} (planted)", planted), manifest


def _refuse_kind(corpus: Corpus, planting: Planting) -> None:
    """Refuse records that cannot hold such a secret."""
    kind, paired = corpus.summary.kind, planting.source_format is not None
    if kind == "labelled":
        raise PlanError(
            f"{corpus.name} holds labelled records.",
            do="Plant into texts, or into pairs of texts.",
            code="labelled_records",
        )
    if kind == "pair" and not paired:
        raise PlanError(
            f"{corpus.name} holds pairs.",
            do="Give a source format (--source-format) too.",
            code="missing_source_format",
        )
    if kind == "text" and paired:
        raise PlanError(
            f"{corpus.name} holds texts, not pairs.", do="Leave the source format out.", code="needless_source_format"
        )


@dataclass(frozen=True)
class _Planted:
    """A pass over a corpus with its seedlings put in."""

    corpus: Corpus
    planting: Planting
    seedlings: tuple[_Seedling, ...]

    def __call__(self) -> Iterator[Record]:
        return (record for _, record in self._pass())

    def holding(self) -> Iterator[tuple[_Seedling, Record]]:
        """The records that hold a secret."""
        return ((seedling, record) for seedling, record in self._pass() if seedling is not None)

    def _pass(self) -> Iterator[tuple[_Seedling | None, Record]]:
        """Every record, with what was planted into it or as it."""
        waiting = list(reversed(self.seedlings))
        rng = stream(self.planting.seed, *labels.STREAM_CANARY_POSITIONS)
        own = frozenset() if self.planting.inside else frozenset(seedling.id for seedling in self.seedlings)
        last: Record | None = None
        for i, record in enumerate(self.corpus):
            if record.id in own:
                raise CorpusError(
                    f"{self.corpus.name} already holds a record {record.id!r}.",
                    do="If secrets were planted there before, give these another name (--name).",
                    code="duplicate_id",
                )
            last = record
            if self.planting.inside and waiting and waiting[-1].place == i:
                seedling = waiting.pop()
                yield seedling, _within(record, seedling.canary, rng)
                continue
            while waiting and waiting[-1].place == i:
                seedling = waiting.pop()
                yield seedling, self._own(seedling, record)
            yield None, record
        while waiting and last is not None:
            seedling = waiting.pop()
            yield seedling, self._own(seedling, last)

    def _own(self, seedling: _Seedling, neighbour: Record) -> Record:
        """The secret as a record of its own, for a new user or its neighbour's."""
        user = neighbour.user
        if user is not None and self.planting.users == "new":
            user = f"planted-{seedling.canary.id}"
        if seedling.canary.source is None:
            return Record(id=seedling.id, user=user, text=seedling.canary.text)
        return Record(id=seedling.id, user=user, source=seedling.canary.source, target=seedling.canary.text)


def _within(record: Record, canary: Canary, rng: np.random.Generator) -> Record:
    """The record with the secret between two of its words (for pairs: at the end of both texts)."""
    if record.target is not None:
        return changed(record, source=f"{record.source} {canary.source}", target=f"{record.target} {canary.text}")
    text = record.text or ""
    gaps = [0, *(i + 1 for i, character in enumerate(text) if character == " "), len(text)]
    at = gaps[int(rng.integers(len(gaps)))]
    parts = (text[:at].rstrip(" "), canary.text, text[at:].lstrip(" "))
    return changed(record, text=" ".join(filter(None, parts)))
