"""Leakage epsilon: how much more likely a user's sequences are under a model than under a reference without them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from recollect.audits.leakage.references import Group, ModelPair
from recollect.audits.leakage.run_store import ROW, Rows, RunStore, select_best
from recollect.audits.leakage.runs import Runs, ScoredTokens
from recollect.audits.leakage.words import Words
from recollect.corpora.record import Record
from recollect.models.store import split_into_blocks
from recollect.signals.evidence import Evidence

BLOCK = 1024
"""Records that are read together."""
CONTEXT = 60
"""Characters before a sequence that are shown with it."""
Numbers = dict[str, int]
"""The distinct runs by their text, each with its number."""


@dataclass(frozen=True, kw_only=True)
class Leak:
    """A sequence of one user that a model predicts, at the place where it leaks most."""

    run: int
    user: str
    text: str
    words: int
    record: str
    start: int
    """Where it begins in the record's text, in characters."""
    context: str
    """The text before it."""
    nats: float = math.nan
    """How surprised the model is; NaN if it does not show that."""
    reference_nats: float = math.nan
    predicted: int = 1
    """How often the model predicted it."""

    @property
    def gain(self) -> float:
        """By how many nats the model is less surprised than the reference."""
        return self.reference_nats - self.nats

    @property
    def epsilon(self) -> float:
        """The same for each word: the log of the ratio of perplexities."""
        return self.gain / self.words


@dataclass(frozen=True, kw_only=True, eq=False)
class PredictedRuns:
    """How much was read, and where which runs are predicted."""

    words: int
    unknown: int
    """Words that are, partly or wholly, `<unk>` to the model: it cannot predict them, and each ends a run."""
    sequences: int
    """Different runs at the largest k."""
    store: RunStore


def collect_runs(
    evidence: Evidence, group: Group, numbers: Numbers, ks: Sequence[int], min_length: int
) -> PredictedRuns:
    """Read what the models of a group predict: the distinct runs are numbered, and their places kept.

    Args:
        evidence: Contains the answers.
        group: Which model predicts whose texts, and which reference it is compared with.
        numbers: The runs so far; new ones are added.
        ks: Values of k in ascending order: for each, runs of words within the model's top k.
        min_length: How many words a run must have.
    """
    words = unknown = before = 0
    distinct, store = set[int](), RunStore()
    for block in split_into_blocks(evidence.corpora[group.corpus], BLOCK):
        for pair, positions in group.assign(block):
            scored = _ScoredPair.of(evidence, [block[i] for i in positions], pair)
            words, unknown = words + len(scored.model.words), unknown + scored.model.unknown
            for k in ks:
                runs = scored.model.find_runs(k, min_length=min_length)
                number = [numbers.setdefault(text, len(numbers)) for text in runs.get_texts()]
                store.add(scored.build_rows(runs, number, np.array(positions) + before, k))
            distinct.update(number)
        before += len(block)
    return PredictedRuns(words=words, unknown=unknown, sequences=len(distinct), store=store)


@dataclass(frozen=True, eq=False)
class _ScoredPair:
    """Some records, as a model and a reference scored them."""

    model: ScoredTokens
    reference: ScoredTokens | None
    """None if there is none, or one of the two shows no probabilities."""

    @classmethod
    def of(cls, evidence: Evidence, records: Sequence[Record], pair: ModelPair) -> _ScoredPair:
        """The scores of these records."""
        words = Words.of(records)
        model = ScoredTokens.of(records, words, evidence.answers[pair.model].get_answers(records))
        if pair.reference is None or model.answers.logprob is None:
            return cls(model, None)
        answers = evidence.answers[pair.reference].get_answers(records)
        return cls(model, None if answers.logprob is None else ScoredTokens.of(records, words, answers))

    def build_rows(self, runs: Runs, number: list[int], positions: NDArray[np.int64], k: int) -> Rows:
        """The runs as rows; `positions` are those of the records in the corpus."""
        record = runs.words.record[runs.first]
        rows = np.empty(len(runs), dtype=ROW)
        rows["k"], rows["run"], rows["record"], rows["words"] = k, number, positions[record], runs.lengths
        rows["start"] = runs.start - runs.words.base[record]
        rows["first"] = runs.first - np.searchsorted(runs.words.record, record)
        for name, tokens in (("nats", self.model), ("reference", self.reference)):
            rows[name] = np.nan if self.reference is None or tokens is None else tokens.sum_nats(runs)
        return rows


def find_leaks(
    evidence: Evidence, group: Group, read: PredictedRuns, names: Sequence[str], unique: NDArray[np.bool_]
) -> dict[int, dict[int, Leak]]:
    """The sequences of one user that a model predicts, by k and by their numbers, each where it leaks most.

    Args:
        evidence: Contains the records.
        group: Which model predicted whose texts; users who are assigned to no pair of models are left out.
        read: What was read of them.
        names: The runs by their numbers.
        unique: Which of them are one user's alone.
    """
    rows, sizes = select_best(read.store.select(unique))
    wanted = _group_by_record(rows)
    best: dict[int, dict[int, Leak]] = {}
    for position, record in enumerate(evidence.corpora[group.corpus] if wanted else ()):
        if group.assigned is not None and record.owner not in group.assigned:
            continue
        for row in wanted.get(position, ()):
            leak = _build_leak(record, row, names[row[1]], sizes[row[:2]])
            known = best.setdefault(row[0], {}).get(leak.run)
            # ties between occurrences are broken by where they are, whatever the order of the records
            if known is None or (leak.record, leak.start) > (known.record, known.start):
                best[row[0]][leak.run] = leak
    return best


Row = tuple[int, int, int, int, int, int, float, float]


def _group_by_record(rows: Rows) -> dict[int, list[Row]]:
    """Rows by the place of their record."""
    found: dict[int, list[Row]] = {}
    for row in rows.tolist():
        found.setdefault(row[2], []).append(row)
    return found


def _build_leak(record: Record, row: Row, text: str, predicted: int) -> Leak:
    """A row as a leak."""
    _, run, _, start, _, words, nats, reference = row
    return Leak(
        run=run,
        user=record.owner,
        text=text,
        words=words,
        record=record.id,
        start=start,
        context=record.scored_text[max(0, start - CONTEXT) : start],
        nats=nats,
        reference_nats=reference,
        predicted=predicted,
    )
