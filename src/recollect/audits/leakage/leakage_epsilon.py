"""Leakage epsilon: how much more likely a user's sequences are under a model than under a reference without them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from recollect.audits.leakage.predicted_runs import (
    PredictedRuns,
    select_best_rows,
)
from recollect.audits.leakage.reference_models import Group
from recollect.corpora.record import Record
from recollect.signals.evidence import Evidence

CONTEXT = 60
"""Characters before a sequence that are shown with it."""
Row = tuple[int, int, int, int, int, int, float, float]


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


def find_leaks(
    evidence: Evidence, group: Group, read: PredictedRuns, names: Sequence[str], unique: NDArray[np.bool_]
) -> dict[int, dict[int, Leak]]:
    """The leaks with their epsilon: sequences of one user that a model predicts, by k and number, where they leak most.

    Args:
        evidence: Contains the records.
        group: Which model predicted whose texts; users who are assigned to no pair of models are left out.
        read: What was read of them.
        names: The runs by their numbers.
        unique: Which of them are one user's alone.
    """
    rows, sizes = select_best_rows(read.store.select(unique))
    wanted: dict[int, list[Row]] = {}
    for row in rows.tolist():
        wanted.setdefault(row[2], []).append(row)
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


def _build_leak(record: Record, row: Row, text: str, predicted: int) -> Leak:
    """A leak, with the two surprises that make its epsilon, from a row of a predicted run."""
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
