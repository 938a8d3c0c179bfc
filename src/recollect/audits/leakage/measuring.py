"""Sequences that only one user wrote and that the model says: how surprised a model is by them that never saw them."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from recollect.audits.leakage.comparing import Asked, Judges
from recollect.audits.leakage.runs import Pieces, Runs
from recollect.audits.leakage.said import ROW, Rows, Said, best_of
from recollect.audits.leakage.words import Words
from recollect.corpora.record import Record
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


@dataclass(frozen=True, kw_only=True, eq=False)
class Read:
    """How much was read, and where which runs are said."""

    words: int
    unknown: int
    """Words that the model knows only as `<unk>`, in part or in whole: it cannot say them, and each ends a run."""
    sequences: int
    """Different runs among the largest number of likeliest words."""
    said: Said


def collect(evidence: Evidence, asked: Asked, numbers: Numbers, ks: Sequence[int], least: int) -> Read:
    """Read what those say who speak: the distinct runs are numbered, and their places kept.

    Args:
        evidence: Holds the answers.
        asked: Who speaks about whom, and who judges.
        numbers: The runs so far; new ones are added.
        ks: For each of these, in ascending order, words among so many likeliest.
        least: How many words a run must have.
    """
    words = unknown = before = 0
    distinct, said = set[int](), Said()
    for block in blocks(evidence.corpora[asked.corpus], BLOCK):
        for judges, places in asked.parts(block):
            heard = _Heard.of(evidence, [block[i] for i in places], judges)
            words, unknown = words + len(heard.speaker.words), unknown + heard.speaker.unknown
            for k in ks:
                runs = heard.speaker.runs(k, least=least)
                number = [numbers.setdefault(text, len(numbers)) for text in runs.texts()]
                said.add(heard.rows(runs, number, np.array(places) + before, k))
            distinct.update(number)
        before += len(block)
    return Read(words=words, unknown=unknown, sequences=len(distinct), said=said)


@dataclass(frozen=True, eq=False)
class _Heard:
    """What those who speak, and a reference, showed about some records."""

    speaker: Pieces
    reference: Pieces | None
    """None if there is none, or one of the two shows no probabilities."""

    @classmethod
    def of(cls, evidence: Evidence, records: Sequence[Record], judges: Judges) -> _Heard:
        """What was shown about these records."""
        words = Words.of(records)
        speaker = Pieces.of(records, words, evidence.answers[judges.speaker].answers(records))
        if judges.reference is None or speaker.answers.logprob is None:
            return cls(speaker, None)
        answers = evidence.answers[judges.reference].answers(records)
        return cls(speaker, None if answers.logprob is None else Pieces.of(records, words, answers))

    def rows(self, runs: Runs, number: list[int], places: NDArray[np.int64], k: int) -> Rows:
        """The runs as rows; `places` are those of the records in the corpus."""
        record = runs.words.record[runs.first]
        rows = np.empty(len(runs), dtype=ROW)
        rows["k"], rows["run"], rows["record"], rows["words"] = k, number, places[record], runs.lengths
        rows["start"] = runs.start - runs.words.base[record]
        for name, pieces in (("nats", self.speaker), ("reference", self.reference)):
            rows[name] = np.nan if self.reference is None or pieces is None else pieces.nats(runs)
        return rows


def leaks(
    evidence: Evidence, asked: Asked, read: Read, names: Sequence[str], unique: NDArray[np.bool_]
) -> dict[int, dict[int, Leak]]:
    """The sequences of one user that a model says, by k and by their numbers, each where it gives away most.

    Args:
        evidence: Holds the records.
        asked: Who spoke about whom; of users who have no judges nothing is said.
        read: What was read of them.
        names: The runs by their numbers.
        unique: Which of them are one user's alone.
    """
    rows, sizes = best_of(read.said.of(unique))
    wanted = _by_record(rows)
    best: dict[int, dict[int, Leak]] = {}
    for place, record in enumerate(evidence.corpora[asked.corpus] if wanted else ()):
        if asked.place is not None and record.owner not in asked.place:
            continue
        for row in wanted.get(place, ()):
            leak = _told(record, row, names[row[1]], sizes[row[:2]])
            known = best.setdefault(row[0], {}).get(leak.run)
            # equal occurrences are told apart by where they stand, whatever the order of the records
            if known is None or (leak.record, leak.start) > (known.record, known.start):
                best[row[0]][leak.run] = leak
    return best


Row = tuple[int, int, int, int, int, float, float]


def _by_record(rows: Rows) -> dict[int, list[Row]]:
    """Rows by the place of their record."""
    found: dict[int, list[Row]] = {}
    for row in rows.tolist():
        found.setdefault(row[2], []).append(row)
    return found


def _told(record: Record, row: Row, text: str, predicted: int) -> Leak:
    """A row as a leak."""
    _, run, _, start, words, nats, reference = row
    return Leak(
        run=run,
        user=record.owner,
        text=text,
        words=words,
        record=record.id,
        start=start,
        context=record.predicted[max(0, start - CONTEXT) : start],
        nats=nats,
        reference_nats=reference,
        predicted=predicted,
    )


def by_user(found: Mapping[int, Leak], *, in_nats: bool) -> dict[str, float]:
    """The most that a model gives away of each user in one sequence: nats, or else words."""
    most: dict[str, float] = {}
    for leak in found.values():
        value = leak.gain if in_nats else float(leak.words)
        if not math.isnan(value):
            most[leak.user] = max(most.get(leak.user, 0.0), value)
    return most
