"""Sequences that only one user wrote and that the model says: how surprised a model is by them that never saw them."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from recollect.audits.leakage.comparing import Asked, Judges, Source
from recollect.audits.leakage.runs import Pieces, Runs
from recollect.audits.leakage.words import Words
from recollect.corpora.record import Record
from recollect.models.answers import Answers
from recollect.models.store import blocks
from recollect.signals.evidence import Evidence

BLOCK = 1024
"""Records that are looked at together."""
CONTEXT = 60
"""Characters before a sequence that are shown with it."""
Numbers = dict[str, int]
"""The distinct runs by their text, each with its number."""


@dataclass(frozen=True, kw_only=True)
class Leak:
    """A sequence of one user that a model says, at the place where it gives away most."""

    run: int
    user: str
    text: str
    words: int
    record: str
    start: int
    """Where it begins in the record's text, in characters."""
    context: str
    """What stands before it."""
    nats: float = math.nan
    """How surprised the model is; NaN if it does not say."""
    reference_nats: float = math.nan
    predicted: int = 1
    """How often the model said it."""

    @property
    def gain(self) -> float:
        """By how many nats the model is less surprised than the reference."""
        return self.reference_nats - self.nats

    @property
    def epsilon(self) -> float:
        """The same for each word: the log of the ratio of perplexities."""
        return self.gain / self.words

    @property
    def order(self) -> tuple[float, str, int]:
        """The greater of two occurrences gives away more; equal ones are told apart by where they stand."""
        return (-math.inf if math.isnan(self.gain) else self.gain, self.record, self.start)


@dataclass(frozen=True, kw_only=True)
class Read:
    """How much was read."""

    words: int
    unknown: int
    """Words that the model knows only as `<unk>`, in part or in whole: it cannot say them, and each ends a run."""
    sequences: int
    """Different runs among the largest number of likeliest words."""


def collect(evidence: Evidence, asked: Asked, numbers: Numbers, ks: Sequence[int], least: int) -> Read:
    """Take the distinct runs of those who speak into account; returns how much was read.

    Args:
        evidence: Holds their answers.
        asked: Who speaks about whom.
        numbers: The runs so far; new ones are added.
        ks: For each of these, in ascending order, words among so many likeliest.
        least: How many words a run must have.
    """
    words = unknown = 0
    distinct = set[int]()
    for records, judges in _parts(evidence, asked):
        pieces = Pieces.of(records, Words.of(records), _answers(evidence, judges.speaker, records))
        words, unknown = words + len(pieces.words), unknown + pieces.unknown
        for k in ks:
            met = [numbers.setdefault(text, len(numbers)) for text in pieces.runs(k, least=least).texts()]
        distinct.update(met)
    return Read(words=words, unknown=unknown, sequences=len(distinct))


def leaks(
    evidence: Evidence, asked: Asked, numbers: Numbers, unique: NDArray[np.bool_], *, ks: Sequence[int], least: int
) -> dict[int, dict[int, Leak]]:
    """The sequences of one user that a model says, by k and by their numbers, each where it gives away most.

    Args:
        evidence: Holds the answers.
        asked: Who speaks about whom, and who judges.
        numbers: All runs that may occur.
        unique: Which of them are one user's alone.
        ks: For each of these, words among so many likeliest.
        least: How many words a sequence must have.
    """
    best: dict[int, dict[int, Leak]] = {k: {} for k in ks}
    for records, judges in _parts(evidence, asked):
        words = Words.of(records)
        pieces = Pieces.of(records, words, _answers(evidence, judges.speaker, records))
        compared = _Compared.of(evidence, records, pieces, judges.reference)
        for k in ks:
            runs = pieces.runs(k, least=least)
            number = np.array([numbers[text] for text in runs.texts()], dtype=np.int64)
            chosen = unique[number]
            for leak in compared.told(runs.take(chosen), number[chosen]):
                _take(best[k], leak)
    return best


def _take(best: dict[int, Leak], leak: Leak) -> None:
    """Keep the occurrence of a run that gives away most, and how many there are."""
    known = best.get(leak.run)
    if known is None:
        best[leak.run] = leak
    else:
        best[leak.run] = replace(max(known, leak, key=lambda each: each.order), predicted=known.predicted + 1)


def _parts(evidence: Evidence, asked: Asked) -> Iterator[tuple[list[Record], Judges]]:
    """The records of a corpus, some at a time, with those who speak about them and judge."""
    for block in blocks(evidence.corpora[asked.corpus], BLOCK):
        for judges, records in asked.parts(block):
            yield records, judges


def _answers(evidence: Evidence, source: Source, records: Sequence[Record]) -> Answers:
    """What a model showed about some records."""
    return evidence.answers[source].answers(records)


@dataclass(frozen=True, eq=False)
class _Compared:
    """Some records with what those who speak, and a reference, showed about them."""

    records: Sequence[Record]
    speaker: Pieces
    reference: Pieces | None
    """None if there is none, or one of the two shows no probabilities."""

    @classmethod
    def of(cls, evidence: Evidence, records: Sequence[Record], speaker: Pieces, reference: Source | None) -> _Compared:
        """Compared with a reference, if there is one and both show probabilities."""
        if reference is None or speaker.answers.logprob is None:
            return cls(records, speaker, None)
        answers = _answers(evidence, reference, records)
        return cls(
            records, speaker, Pieces.of(records, speaker.words, answers) if answers.logprob is not None else None
        )

    def told(self, runs: Runs, number: NDArray[np.int64]) -> Iterator[Leak]:
        """The runs as leaks."""
        nothing = np.full(len(runs), np.nan)
        nats = nothing if self.reference is None else self.speaker.nats(runs)
        reference = nothing if self.reference is None else self.reference.nats(runs)
        words = runs.words
        place = words.record[runs.first]
        start = runs.start - words.base[place]
        columns = (number, runs.lengths, place, start, nats, reference)
        for text, run, length, which, begin, ours, theirs in zip(
            runs.texts(), *(column.tolist() for column in columns), strict=True
        ):
            record = self.records[which]
            yield Leak(
                run=run,
                user=record.owner,
                text=text,
                words=length,
                record=record.id,
                start=begin,
                context=record.predicted[max(0, begin - CONTEXT) : begin],
                nats=ours,
                reference_nats=theirs,
            )


def by_user(found: Mapping[int, Leak], *, in_nats: bool) -> dict[str, float]:
    """The most that a model gives away of each user in one sequence: nats, or else words."""
    most: dict[str, float] = {}
    for leak in found.values():
        value = leak.gain if in_nats else float(leak.words)
        if not math.isnan(value):
            most[leak.user] = max(most.get(leak.user, 0.0), value)
    return most
