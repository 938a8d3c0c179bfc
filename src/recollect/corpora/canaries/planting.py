"""Planting: made-up secrets go into a corpus at random places, and others like them are held back as controls."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from dataclasses import replace as changed
from pathlib import Path
from typing import Literal

import numpy as np
from pydantic import BaseModel, ConfigDict, ValidationError

from recollect.corpora.canaries.formats import Format, parse_format
from recollect.corpora.canaries.walks import Walk
from recollect.corpora.corpus import Corpus
from recollect.corpora.record import Record
from recollect.errors import CorpusError, NotEnoughData, PlanError
from recollect.files import read_json, write_json
from recollect.settings import at_least
from recollect.streams import stream


class Canary(BaseModel):
    """A made-up secret: planted so many times, or never (a control)."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    id: str
    format: str
    text: str
    """The format filled in: what was planted."""
    source: str | None = None
    """For pairs: the source text it was planted with."""
    planted: int
    """How many times; 0 for a control."""
    records: tuple[str, ...] = ()
    """The ids of the records that hold it."""


class Canaries(BaseModel):
    """The canaries of one planted corpus, with their controls: what an exposure audit is given."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    version: Literal["1"] = "1"
    corpus: str
    """The digest of the corpus they were planted into."""
    seed: int
    canaries: tuple[Canary, ...]

    def save(self, path: Path) -> None:
        """Write the manifest, readable by its owner only: it holds the secrets."""
        write_json(path, self.model_dump(mode="json"))

    @classmethod
    def load(cls, path: Path) -> Canaries:
        """The manifest that `save` wrote."""
        try:
            return cls.model_validate(read_json(path))
        except (ValidationError, ValueError) as error:
            raise CorpusError(f"{path} is no manifest of canaries.", do="`recollect plant` writes one.") from error


@dataclass(frozen=True, kw_only=True)
class Planting:
    """What is planted, and how."""

    format: str
    """The format of the secrets; for pairs, of the target."""
    source_format: str | None = None
    """For pairs: the format of the source. Its slots are filled like the target's."""
    secrets: int = 10
    """How many secrets for each number of repetitions."""
    repeat: tuple[int, ...] = (1,)
    """How many times each secret is planted."""
    controls: int = 100
    """How many secrets are drawn and never planted."""
    inside: bool = False
    """Put the secret between the words of an existing record; else it is a record of its own."""
    unique_prefix: int = 0
    """So many random letters before each secret, other ones for each (section 6.5 of the paper)."""
    users: Literal["new", "existing"] = "new"
    """Whose records they become, if they are records of their own; each new user owns one secret."""
    seed: int = 0

    def __post_init__(self) -> None:
        at_least(1, secrets=self.secrets, repeat=min(self.repeat, default=0))
        at_least(0, controls=self.controls, unique_prefix=self.unique_prefix)

    @property
    def parsed(self) -> Format:
        """The format of the secrets."""
        return parse_format(self.format)


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
    kind, size = corpus.summary.kind, corpus.summary.size
    if kind == "labelled" or (kind == "pair") != (planting.source_format is not None):
        wanted = "a source format for the pairs" if kind == "pair" else "a corpus of texts"
        raise PlanError(f"{corpus.name} holds records of kind {kind!r}.", do=f"Planting needs {wanted}.")
    drawn = _drawn(planting)
    rng = stream(planting.seed, "planting", "places")
    count = sum(canary.planted for canary in drawn)
    if planting.inside and count > size:
        raise NotEnoughData(
            f"{count} plantings do not fit inside {size} records.", do=f"Give at least {count} records."
        )
    places = rng.permutation(size)[:count] if planting.inside else rng.integers(0, size + 1, count)
    seedlings, spots = [], iter(places.tolist())
    for canary in drawn:
        seedlings += [_Seedling(canary, number, next(spots)) for number in range(canary.planted)]
    planted = _Planted(corpus, planting, tuple(sorted(seedlings, key=lambda seedling: seedling.place)))
    held: dict[str, list[str]] = {}
    for seedling, record in planted.holding():
        held.setdefault(seedling.canary.id, []).append(record.id)
    known = [canary.model_copy(update={"records": tuple(held.get(canary.id, ()))}) for canary in drawn]
    manifest = Canaries(corpus=corpus.digest, seed=planting.seed, canaries=tuple(known))
    return Corpus(f"{corpus.name} (planted)", planted), manifest


def _drawn(planting: Planting) -> list[Canary]:
    """All canaries and controls, no two with the same filling."""
    space, rng = planting.parsed, stream(planting.seed, "planting", "secrets")
    repeats = [*np.repeat(planting.repeat, planting.secrets).tolist(), *[0] * planting.controls]
    if space.size < len(repeats):
        raise NotEnoughData(
            f"The format {planting.format!r} has {space.size} fillings, and {len(repeats)} were asked for.",
            do="Use a format with a larger space, or fewer secrets and controls.",
        )
    texts: dict[str, None] = {}
    while len(texts) < len(repeats):
        texts.setdefault(space.draw(rng))
    return [_canary(planting, i, text, repeat) for i, (text, repeat) in enumerate(zip(texts, repeats, strict=True))]


def _canary(planting: Planting, number: int, text: str, repeat: int) -> Canary:
    """One canary, with its own prefix if so wished."""
    rng = stream(planting.seed, "planting", "prefix", number)
    letters = "".join(chr(97 + int(letter)) for letter in rng.integers(0, 26, planting.unique_prefix))
    prefix = f"{letters} " if letters else ""
    source = None
    if planting.source_format is not None:
        source = prefix + _filled(planting.source_format, Walk(planting.parsed).values(text) or ())
    name = f"canary-{number}" if repeat else f"control-{number}"
    return Canary(id=name, format=prefix + planting.format, text=prefix + text, source=source, planted=repeat)


def _filled(format: str, values: Sequence[str]) -> str:
    """The format with its slots filled with these values, in order."""
    parsed, left, seen = parse_format(format), list(values), set[int]()
    if parsed.slots != len(left):
        raise PlanError(f"The source format {format!r} has {parsed.slots} slots.", do=f"Give it {len(left)}.")
    written = ""
    for unit in parsed.units:
        if unit.slot is None:
            written += unit.alternatives[0]
        elif unit.slot not in seen:
            seen.add(unit.slot)
            written += left[unit.slot]
    if Walk(parsed).values(written) is None:
        raise PlanError(f"The source format {format!r} cannot be filled like the target's.", do="Use the same slots.")
    return written


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
        rng = stream(self.planting.seed, "planting", "inside")
        last: Record | None = None
        for i, record in enumerate(self.corpus):
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
    joined = f"{text[:at].rstrip(' ')} {canary.text} {text[at:].lstrip(' ')}".strip(" ")
    return changed(record, text=joined)
