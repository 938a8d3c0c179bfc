"""Planting: canaries go into a corpus at random places, and others like them are held back as controls."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from dataclasses import replace as changed

import numpy as np

from recollect import labels
from recollect.corpora.canaries.generation import CanarySettings, draw_canaries
from recollect.corpora.canaries.manifest import Canaries, Canary
from recollect.corpora.corpus import Corpus
from recollect.corpora.messages import ASSISTANT, say
from recollect.corpora.record import Record
from recollect.errors import CorpusError, NotEnoughData, PlanError
from recollect.streams import stream

__all__ = ["Canaries", "Canary", "CanarySettings", "plant"]


@dataclass(frozen=True)
class _Insertion:
    """One planting of one secret: where it goes."""

    canary: Canary
    number: int
    position: int
    """The index of the record before which it goes, or into which."""

    @property
    def id(self) -> str:
        """The id of its record, if it becomes one."""
        return f"{self.canary.id}-{self.number}"


def plant(corpus: Corpus, settings: CanarySettings) -> tuple[Corpus, Canaries]:
    """Insert canaries into a corpus; the planted corpus, and the manifest that tells which are where.

    The places are uniform over the corpus and depend on the seed alone. The planted corpus is read as a stream.
    """
    _refuse_unplantable(corpus, settings)
    size = len(corpus)
    secrets = draw_canaries(settings, corpus)
    rng = stream(settings.seed, *labels.STREAM_CANARY_RECORDS)
    count = sum(canary.planted for canary in secrets)
    if settings.inside and count > size:
        raise NotEnoughData(
            f"{count} plantings do not fit inside {size} records.",
            do=f"Give at least {count} records.",
            code="too_few_records",
        )
    positions = rng.permutation(size)[:count] if settings.inside else rng.integers(0, size + 1, count)
    insertions, remaining_positions = [], iter(positions.tolist())
    for canary in secrets:
        insertions += [_Insertion(canary, number, next(remaining_positions)) for number in range(canary.planted)]
    planted = _CorpusWithCanaries(corpus, settings, tuple(sorted(insertions, key=lambda each: each.position)))
    records_of_canary: dict[str, list[str]] = {}
    for insertion, record in planted.iter_holding_records():
        records_of_canary.setdefault(insertion.canary.id, []).append(record.id)
    known = [canary.model_copy(update={"records": tuple(records_of_canary.get(canary.id, ()))}) for canary in secrets]
    manifest = Canaries(corpus=corpus.digest, seed=settings.seed, canaries=tuple(known))
    return Corpus(f"{corpus.name} (planted)", planted), manifest


def _refuse_unplantable(corpus: Corpus, settings: CanarySettings) -> None:
    """Refuse to insert canaries into records that cannot hold such a secret."""
    kind, paired = corpus.summary.kind, settings.source_format is not None
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
    if kind in ("text", "conversation") and paired:
        raise PlanError(
            f"{corpus.name} holds {kind}s, not pairs.", do="Leave the source format out.", code="needless_source_format"
        )


@dataclass(frozen=True)
class _CorpusWithCanaries:
    """A pass over a corpus with its canaries inserted."""

    corpus: Corpus
    settings: CanarySettings
    insertions: tuple[_Insertion, ...]

    def __call__(self) -> Iterator[Record]:
        return (record for _, record in self._iter_with_insertions())

    def iter_holding_records(self) -> Iterator[tuple[_Insertion, Record]]:
        """The records into which a canary was inserted."""
        return ((insertion, record) for insertion, record in self._iter_with_insertions() if insertion is not None)

    def _iter_with_insertions(self) -> Iterator[tuple[_Insertion | None, Record]]:
        """Every record, with what was planted into it or as it."""
        waiting = list(reversed(self.insertions))
        rng = stream(self.settings.seed, *labels.STREAM_CANARY_POSITIONS)
        new_ids = frozenset() if self.settings.inside else frozenset(insertion.id for insertion in self.insertions)
        last: Record | None = None
        for i, record in enumerate(self.corpus):
            if record.id in new_ids:
                raise CorpusError(
                    f"{self.corpus.name} already holds a record {record.id!r}.",
                    do="If secrets were planted there before, give these another name (--name).",
                    code="duplicate_id",
                )
            last = record
            if self.settings.inside and waiting and waiting[-1].position == i:
                insertion = waiting.pop()
                yield insertion, _insert_canary(record, insertion.canary, rng)
                continue
            while waiting and waiting[-1].position == i:
                insertion = waiting.pop()
                yield insertion, self._build_record(insertion, record)
            yield None, record
        while waiting and last is not None:
            insertion = waiting.pop()
            yield insertion, self._build_record(insertion, last)

    def _build_record(self, insertion: _Insertion, neighbour: Record) -> Record:
        """The secret as a record of its own, for a new user or its neighbour's."""
        user = neighbour.user
        if user is not None and self.settings.users == "new":
            user = f"planted-{insertion.canary.id}"
        if insertion.canary.user_turn is not None:
            turns = say("user", insertion.canary.user_turn), say(ASSISTANT, insertion.canary.text)
            return Record(id=insertion.id, user=user, messages=turns)
        if insertion.canary.source is None:
            return Record(id=insertion.id, user=user, text=insertion.canary.text)
        return Record(id=insertion.id, user=user, source=insertion.canary.source, target=insertion.canary.text)


def _insert_canary(record: Record, canary: Canary, rng: np.random.Generator) -> Record:
    """The record with a canary inserted between two of its words (for pairs: at the end of both texts)."""
    if record.target is not None:
        return changed(record, source=f"{record.source} {canary.source}", target=f"{record.target} {canary.text}")
    if record.messages is not None:
        turns = [i for i, each in enumerate(record.messages) if each.scored]
        chosen = turns[int(rng.integers(len(turns)))]
        spoken = record.messages[chosen]
        planted = spoken._replace(content=_insert_between_words(spoken.content, canary.text, rng))
        return changed(record, messages=(*record.messages[:chosen], planted, *record.messages[chosen + 1 :]))
    return changed(record, text=_insert_between_words(record.text or "", canary.text, rng))


def _insert_between_words(text: str, secret: str, rng: np.random.Generator) -> str:
    """The text with the secret between two of its words."""
    gaps = [0, *(i + 1 for i, character in enumerate(text) if character == " "), len(text)]
    at = gaps[int(rng.integers(len(gaps)))]
    return " ".join(filter(None, (text[:at].rstrip(" "), secret, text[at:].lstrip(" "))))
