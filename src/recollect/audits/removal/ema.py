"""EMA: thresholds from one calibration model, a vote for every record, and a test of the votes against all ones.

Huang, Li & Li 2021, "EMA: Auditing Data Removal from Trained Models", Algorithms 1 and 2, with the misprints undone:
TNR counts what is *below* the threshold, and the test is the two-sided two-sample t-test with equal variances, which
gives the p-values printed in the paper.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal

import numpy as np
import scipy

from recollect.audits.removal.confidence_scores import Flags, list_trained_digests
from recollect.checks import check_one_of
from recollect.corpora.record import Record
from recollect.errors import NotEnoughData
from recollect.models.answers import Answers
from recollect.signals.aggregation import ValueByRecord, average_tokens, get_logprobs
from recollect.signals.evidence import AUDITED, CONTROLS, SHADOW, TARGET, Evidence
from recollect.stats.groups import Floats
from recollect.stats.requirements import require_count
from recollect.stats.roc import best_threshold

Test = Literal["t", "ks"]
Scope = Literal["global", "per-class"]
Labels = Sequence[str | int | None]

METRICS: Final = ("correctness", "confidence", "negative_entropy")
"""What is measured of every record; higher is more evidence of training."""


@dataclass(frozen=True, kw_only=True)
class MetricThresholds:
    """The thresholds of one metric."""

    everyone: float
    """Of all records."""
    by_class: Mapping[str | int | None, float]
    """Of the records of one class, where they have their own."""

    def vote(self, values: Floats, labels: Labels) -> Flags:
        """EMA's vote: which records reach their threshold."""
        levels = np.array([self.by_class.get(label, self.everyone) for label in labels], dtype=np.float64)
        return np.asarray(values >= levels)


@dataclass(frozen=True, kw_only=True, eq=False)
class Votes:
    """What every audited record scores, and which thresholds it reaches."""

    records: tuple[str, ...]
    values: Mapping[str, Floats]
    """By metric."""
    by_metric: Mapping[str, Flags]
    """By metric."""
    thresholds: Mapping[str, MetricThresholds]
    """By metric."""
    members: int
    """Records of the half of the calibration set that trained the calibration model."""
    others: int
    """Records of the other half."""

    @property
    def memorised(self) -> Flags:
        """By EMA's votes: which records reach any threshold."""
        return np.asarray(np.any(list(self.by_metric.values()), axis=0))


@dataclass(frozen=True, kw_only=True, eq=False)
class _Metrics:
    """The three metrics of the records that have answers, in the order of their ids."""

    records: list[Record]
    labels: Labels
    values: dict[str, Floats]


def collect_votes(evidence: Evidence, *, scope: Scope) -> Votes:
    """The votes of EMA on the audited records, by the thresholds of one calibration model (Algorithm 2).

    Args:
        evidence: Contains the answers of the target about the query set, and of the calibration model about its set.
        scope: Whether every class has its own thresholds.

    Raises:
        NotEnoughData: A side has no records.
    """
    models = evidence.models_of_role(SHADOW)
    if not models:
        raise NotEnoughData(
            "The calibration set is too small to be halved.", do="Give more controls.", code="too_few_controls"
        )
    trained = list_trained_digests(evidence.corpora[CONTROLS], evidence.cohorts.get(CONTROLS), models[0])
    calibration = _measure_ema_metrics(evidence, models[0], CONTROLS)
    queried = _measure_ema_metrics(evidence, TARGET, AUDITED)
    inside = np.array([record.digest in trained for record in calibration.records], dtype=np.bool_)
    if inside.all() or not inside.any() or not queried.records:
        raise NotEnoughData(
            "One half of the calibration set, or the query set, has no answers.",
            do="Give more records.",
            code="too_few_records",
        )
    members, others = (
        [label for label, is_present in zip(calibration.labels, side, strict=True) if is_present]
        for side in (inside, ~inside)
    )
    thresholds = {
        metric: find_thresholds(values[inside], values[~inside], (members, others), scope=scope)
        for metric, values in calibration.values.items()
    }
    return Votes(
        records=tuple(record.id for record in queried.records),
        values=queried.values,
        by_metric={metric: found.vote(queried.values[metric], queried.labels) for metric, found in thresholds.items()},
        thresholds=thresholds,
        members=int(inside.sum()),
        others=int((~inside).sum()),
    )


def find_thresholds(
    members: Floats, others: Floats, labels: tuple[Labels, Labels], *, scope: Scope
) -> MetricThresholds:
    """The thresholds of EMA with the highest balanced accuracy, found by sorting (Algorithm 2); of equals the largest.

    Args:
        members: A metric of the records that trained the calibration model, under that model.
        others: The same of the other half of the calibration set.
        labels: The true classes of both.
        scope: Whether every class has its own threshold; classes that one half lacks share the global one.
    """
    check_one_of(("global", "per-class"), scope=scope)
    everyone, _ = best_threshold(members, others)
    by_class: dict[str | int | None, float] = {}
    if scope == "per-class":
        for label in dict.fromkeys(labels[0]):
            mine = [np.array([each == label for each in side], dtype=np.bool_) for side in labels]
            if mine[1].any():
                by_class[label], _ = best_threshold(members[mine[0]], others[mine[1]])
    return MetricThresholds(everyone=everyone, by_class=by_class)


def compute_ema_rho(votes: Flags, *, test: Test = "t") -> float:
    """ρ_EMA: the p-value of "all votes are one"; small means removed (Algorithm 1).

    If all votes agree there is no variance to test with: ρ is 1 if all are one, and 0 if none is.

    >>> compute_ema_rho(np.array([True] * 10)), compute_ema_rho(np.array([False] * 10))
    (1.0, 0.0)
    >>> round(compute_ema_rho(np.array([True] * 49 + [False])), 2)
    0.32
    """
    check_one_of(("t", "ks"), test=test)
    require_count(len(votes), 2, of="votes", purpose="EMA's test", code="too_few_votes")
    if votes.all():
        return 1.0
    if test == "t" and not votes.any():
        return 0.0
    with warnings.catch_warnings():
        # that one side has no variance is how the paper means it; that many ties have no exact p-value is how scipy is
        warnings.simplefilter("ignore", RuntimeWarning)
        numbers, ones = votes.astype(np.float64), np.ones(len(votes))
        found = scipy.stats.ks_2samp(numbers, ones) if test == "ks" else scipy.stats.ttest_ind(numbers, ones)
        return float(found.pvalue)


def _measure_ema_metrics(evidence: Evidence, model: str, corpus: str) -> _Metrics:
    """The metrics of EMA: correctness, confidence and negative entropy; of texts the means over tokens."""
    rows: list[tuple[Record, dict[str, float]]] = []
    for records, (answers,) in evidence.iter_blocks(corpus, [model]):
        found = dict(zip(METRICS, _compute_ema_metrics(answers), strict=True))
        rows += [
            (record, {metric: values[record.digest] for metric, values in found.items()})
            for record in records
            if record.digest in found["confidence"]
        ]
    rows.sort(key=lambda row: row[0].id)
    return _Metrics(
        records=[record for record, _ in rows],
        labels=[record.label for record, _ in rows],
        values={metric: np.array([found[metric] for _, found in rows]) for metric in METRICS},
    )


def _compute_ema_metrics(answers: Answers) -> tuple[ValueByRecord, ValueByRecord, ValueByRecord]:
    """The three metrics of EMA by record digest."""
    assert answers.entropy is not None  # noqa: S101 - the access guarantees it
    confidence = {
        record: float(np.exp(value)) for record, value in average_tokens(answers, get_logprobs(answers)).items()
    }
    correct: Floats = (answers.rank == 1).astype(np.float64)
    return average_tokens(answers, correct), confidence, average_tokens(answers, -answers.entropy)
