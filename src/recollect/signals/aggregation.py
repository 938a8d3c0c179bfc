"""From one number per token to one per record: what most signals share. All of it is sorting and sums, no loops."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from recollect.models.access import Access
from recollect.models.answers import Answers, Floats
from recollect.signals.evidence import Evidence
from recollect.signals.scores import Scores

ANY_LOGPROB = Access(k=1, logprob="any", distribution=False, steps=False)
"""What a signal needs that reads log-probabilities alone."""
DISTRIBUTION = Access(k=1, logprob="any", distribution=True, steps=False)
"""What a signal needs that also reads entropy, logprob_std or the logits of all classes."""

ValueByRecord = dict[str, float]
"""One number per record, by the digest of its content; a record that has none is absent."""


def score_records(
    evidence: Evidence, corpus: str, models: Sequence[str], measure: Callable[[list[Answers]], ValueByRecord]
) -> Scores:
    """The scores of a corpus by aggregation, block by block, of what these models' answers are for each content."""
    blocks = []
    for records, answers in evidence.iter_blocks(corpus, models):
        found = measure(answers)
        blocks.append(Scores.of(records, {r.id: found[r.digest] for r in records if r.digest in found}))
    return Scores.concatenate(blocks)


def get_logprobs(answers: Answers) -> Floats:
    """The log-probability column that is aggregated, which the signal's `needs` promise."""
    assert answers.logprob is not None  # noqa: S101 - the signal's `needs` say so
    return answers.logprob


def index_records(answers: Answers) -> NDArray[np.int64]:
    """For each row that is aggregated, which record it belongs to."""
    return np.repeat(np.arange(len(answers)), np.diff(answers.offsets))


def average_tokens(answers: Answers, values: Floats) -> ValueByRecord:
    """Aggregate a number per token: its mean over each record's known tokens.

    Tokens that the model's vocabulary does not know are left out, and so are records that have no others: their
    number would be that of `<unk>`.
    """
    record = index_records(answers)[answers.known]
    counts = np.bincount(record, minlength=len(answers))
    sums = np.bincount(record, weights=values[answers.known], minlength=len(answers))
    return {answers.records[i]: float(sums[i] / counts[i]) for i in np.flatnonzero(counts)}


def average_lowest_tokens(answers: Answers, values: Floats, *, fraction: float) -> ValueByRecord:
    """Aggregate a number per token: its mean over the lowest share of each record's known tokens.

    A token that several mask patterns hid counts once, with its mean.
    """
    record, value = _average_patterns(answers, values)
    order = np.lexsort((value, record))
    record, value = record[order], value[order]
    counts = np.bincount(record, minlength=len(answers))
    kept = np.maximum(1, np.rint(fraction * counts)).astype(np.int64)
    place = np.arange(len(record)) - (np.cumsum(counts) - counts)[record]
    low = place < kept[record]
    sums = np.bincount(record[low], weights=value[low], minlength=len(answers))
    return {answers.records[i]: float(sums[i] / kept[i]) for i in np.flatnonzero(counts)}


def _average_patterns(answers: Answers, values: Floats) -> tuple[NDArray[np.int64], Floats]:
    """Record and mean value of each known token, aggregated over the patterns that hid it."""
    known = answers.known
    width = int(answers.position.max(initial=0)) + 1
    keys, place = np.unique(index_records(answers)[known] * width + answers.position[known], return_inverse=True)
    means = np.bincount(place, weights=values[known], minlength=len(keys)) / np.bincount(place, minlength=len(keys))
    return keys // width, means
