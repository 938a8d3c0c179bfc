"""Sequences that only one user wrote and that the model says: how surprised a model is by them that never saw them."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from recollect.audits.leakage.runs import Pieces, Runs
from recollect.audits.leakage.words import Words
from recollect.corpora.record import Record
from recollect.signals.evidence import Evidence

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
class Asked:
    """Which model's sequences are looked for, where, and compared with whom."""

    corpus: str
    model: str
    reference: str | None = None
    seen: frozenset[str] = frozenset()
    """Users of whom nothing is said."""


def collect(evidence: Evidence, asked: Asked, numbers: Numbers, ks: Sequence[int], least: int) -> None:
    """Take the distinct runs of a model into account.

    Args:
        evidence: Holds its answers.
        asked: The model and the corpus.
        numbers: The runs so far; new ones are added.
        ks: For each of these, words among so many likeliest.
        least: How many words a run must have.
    """
    for records, (answers,) in evidence.each(asked.corpus, [asked.model]):
        pieces = Pieces.of(records, Words.of(records), answers)
        for k in ks:
            for text in pieces.runs(k, least=least).texts():
                numbers.setdefault(text, len(numbers))


def leaks(
    evidence: Evidence, asked: Asked, numbers: Numbers, unique: NDArray[np.bool_], *, k: int, least: int
) -> dict[int, Leak]:
    """The sequences of one user that a model says, by their numbers, each where it gives away most.

    Args:
        evidence: Holds the answers.
        asked: Whose sequences, and compared with whom.
        numbers: All runs that may occur.
        unique: Which of them are one user's alone.
        k: Words among so many likeliest.
        least: How many words a sequence must have.
    """
    best: dict[int, Leak] = {}
    for leak in _occurrences(evidence, asked, numbers, unique, k, least):
        known = best.get(leak.run)
        if known is None:
            best[leak.run] = leak
        else:
            best[leak.run] = replace(max(known, leak, key=lambda each: each.order), predicted=known.predicted + 1)
    return best


def _occurrences(
    evidence: Evidence, asked: Asked, numbers: Numbers, unique: NDArray[np.bool_], k: int, least: int
) -> Iterator[Leak]:
    """Every place at which the model says a sequence of one user."""
    models = [asked.model] if asked.reference is None else [asked.model, asked.reference]
    for records, answers in evidence.each(asked.corpus, models):
        words = Words.of(records)
        pieces = [Pieces.of(records, words, each) for each in answers]
        runs = pieces[0].runs(k, least=least)
        number = np.array([numbers[text] for text in runs.texts()], dtype=np.int64)
        spared = np.array([record.owner in asked.seen for record in records], dtype=np.bool_)
        chosen = unique[number] & ~spared[words.record[runs.first]]
        runs, number = runs.take(chosen), number[chosen]
        nats = [each.nats(runs) for each in pieces if each.answers.logprob is not None]
        compared = nats if len(nats) == 2 else [np.full(len(runs), np.nan)] * 2
        yield from _told(records, runs, number, compared)


def _told(
    records: Sequence[Record], runs: Runs, number: NDArray[np.int64], nats: Sequence[NDArray[np.float64]]
) -> Iterator[Leak]:
    """The runs of a block as leaks."""
    words = runs.words
    for i, (run, text) in enumerate(zip(number.tolist(), runs.texts(), strict=True)):
        place = int(words.record[runs.first[i]])
        record, start = records[place], int(runs.start[i] - words.base[place])
        yield Leak(
            run=run,
            user=record.owner,
            text=text,
            words=int(runs.lengths[i]),
            record=record.id,
            start=start,
            context=record.predicted[max(0, start - CONTEXT) : start],
            nats=float(nats[0][i]),
            reference_nats=float(nats[1][i]),
        )


def by_user(found: Mapping[int, Leak], *, in_nats: bool) -> dict[str, float]:
    """The most that a model gives away of each user in one sequence: nats, or else words."""
    most: dict[str, float] = {}
    for leak in found.values():
        value = leak.gain if in_nats else float(leak.words)
        if not math.isnan(value):
            most[leak.user] = max(most.get(leak.user, 0.0), value)
    return most
