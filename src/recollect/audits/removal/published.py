"""What EMA and KS say, as their papers have it; their scores are no error rates, and the result says so."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from recollect.audits.removal.ema import METRICS, Labels, Votes, cuts, score
from recollect.audits.removal.judging import refused
from recollect.audits.removal.ks import ratio
from recollect.audits.removal.units import trained_contents
from recollect.corpora.record import Record
from recollect.errors import NotEnoughData
from recollect.models.answers import Answers, Floats
from recollect.results.result import Finding, Result
from recollect.signals.evidence import AUDITED, CONTROLS, SHADOW, TARGET, Evidence
from recollect.signals.per_record import Measured, logprobs, mean_of

if TYPE_CHECKING:
    from recollect.audits.removal.audit import RemovalAudit

_UNTESTED = (
    "This is the published method, with its known faults: EMA cannot reject for small sets and calls a set removed as "
    "soon as a few of its records are hard; KS measures how alike two models are. `calibrated` has error rates.",
)


def judged_as_published(audit: RemovalAudit, evidence: Evidence) -> Result:
    """The result of `ema` or `ks`."""
    try:
        return _ema(audit, evidence) if audit.method == "ema" else _ks(audit, evidence)
    except NotEnoughData as refusal:
        return refused(audit, refusal)


def _ema(audit: RemovalAudit, evidence: Evidence) -> Result:
    """Algorithms 1 and 2: one calibration model, three thresholds, votes, and a test against all ones."""
    models = evidence.playing(SHADOW)
    if not models:
        raise NotEnoughData("The calibration set is too small to be halved.", do="Give more controls.")
    trained = trained_contents(evidence.corpora[CONTROLS], evidence.cohorts.get(CONTROLS), models[0])
    calibration = _measured(evidence, models[0], CONTROLS)
    queried = _measured(evidence, TARGET, AUDITED)
    inside = np.array([record.digest in trained for record in calibration.records], dtype=np.bool_)
    if inside.all() or not inside.any() or not queried.records:
        raise NotEnoughData(
            "One half of the calibration set, or the query set, has no answers.", do="Give more records."
        )
    halves = [
        [label for label, there in zip(calibration.labels, side, strict=True) if there] for side in (inside, ~inside)
    ]
    chosen = {
        metric: cuts(values[inside], values[~inside], (halves[0], halves[1]), per=audit.thresholds)
        for metric, values in calibration.values.items()
    }
    votes = {metric: found.votes(queried.values[metric], queried.labels) for metric, found in chosen.items()}
    memorised = np.any(list(votes.values()), axis=0)
    rho = score(memorised, test=audit.test)
    removed = rho <= audit.level
    n = {"audited": len(memorised), "members": int(inside.sum()), "others": int((~inside).sum())}
    finding = _finding("rho_ema", rho, n, f"EMA, {audit.test}-test, {audit.thresholds} thresholds")
    share = _finding("memorised", float(memorised.mean()), n, "any of three metrics passes its threshold")
    said = f"EMA calls the {len(memorised):,} audited records {'removed' if removed else 'memorised'} (ρ = {rho:.2g})."
    return _result(audit, said, removed=removed, findings=(finding, share)).with_tables(
        votes=_votes(queried, votes, memorised),
        thresholds=pa.table({"metric": list(chosen), "threshold": [found.everyone for found in chosen.values()]}),
    )


def _ks(audit: RemovalAudit, evidence: Evidence) -> Result:
    """Equation 1, with a model trained on the query set and one trained on the calibration set."""
    from recollect.audits.removal.audit import CALIBRATION_MODEL, QUERY_MODEL

    target, calibration, query = (_logits(evidence, model) for model in (TARGET, CALIBRATION_MODEL, QUERY_MODEL))
    rho = ratio(target, calibration, query)
    removed = rho >= 1
    said = f"KS calls the {len(target):,} audited records {'forgotten' if removed else 'memorised'} (ρ = {rho:.2f})."
    finding = _finding("rho_ks", rho, {"audited": len(target)}, "ratio of Kolmogorov–Smirnov distances")
    return _result(audit, said, removed=removed, findings=(finding,))


class _Metrics:
    """The three metrics of the records that have answers, in the order of their ids."""

    def __init__(self, rows: list[tuple[Record, dict[str, float]]]) -> None:
        rows = sorted(rows, key=lambda row: row[0].id)
        self.records = [record for record, _ in rows]
        self.labels: Labels = [record.label for record in self.records]
        self.values = {metric: np.array([found[metric] for _, found in rows]) for metric in METRICS}


def _measured(evidence: Evidence, model: str, corpus: str) -> _Metrics:
    """Correctness, confidence and negative entropy; of texts the means over symbols, geometric for confidence."""
    rows: list[tuple[Record, dict[str, float]]] = []
    for records, (answers,) in evidence.each(corpus, [model]):
        found = dict(zip(METRICS, _metrics(answers), strict=True))
        rows += [
            (record, {metric: values[record.digest] for metric, values in found.items()})
            for record in records
            if record.digest in found["confidence"]
        ]
    return _Metrics(rows)


def _metrics(answers: Answers) -> tuple[Measured, Measured, Measured]:
    """The three metrics by record digest."""
    assert answers.entropy is not None  # noqa: S101 - the access says so
    sure = {record: float(np.exp(value)) for record, value in mean_of(answers, logprobs(answers)).items()}
    correct: Floats = (answers.rank == 1).astype(np.float64)
    return mean_of(answers, correct), sure, mean_of(answers, -answers.entropy)


def _logits(evidence: Evidence, model: str) -> Floats:
    """The logits of the query set, in the order of its ids."""
    rows: dict[str, Floats] = {}
    for records, (answers,) in evidence.each(AUDITED, [model]):
        if answers.logits is None:
            raise NotEnoughData("The model does not show the probabilities of all classes.", do="Use `calibrated`.")
        rows |= {record.id: answers.logits[answers.rows_of(record.digest)][0] for record in records}
    return np.stack([rows[name] for name in sorted(rows)])


def _votes(found: _Metrics, votes: dict[str, Votes], memorised: Votes) -> pa.Table:
    """What each record shows and which thresholds it passes."""
    columns = {"record": [record.id for record in found.records], **found.values}
    return pa.table({**columns, **{f"{name}_passed": passed for name, passed in votes.items()}, "memorised": memorised})


def _finding(name: str, value: float, n: dict[str, int], method: str) -> Finding:
    """A published score."""
    readings = {
        "rho_ema": "The p-value of the votes being all ones; at most α is read as removed. It is no error rate.",
        "rho_ks": "At least 1 is read as forgotten. It is no error rate.",
        "memorised": "The share of the audited records that pass at least one threshold.",
    }
    why = "The paper gives a score without an interval."
    return Finding(
        name=name, value=value, why_no_interval=why, unit="score", n=n, method=method, reading=readings[name]
    )


def _result(audit: RemovalAudit, said: str, *, removed: bool, findings: tuple[Finding, ...]) -> Result:
    """A published verdict."""
    return Result(
        audit=audit.name,
        question=audit.question,
        verdict=said,
        outcome="not_found" if removed else "found",
        findings=findings,
        untested=_UNTESTED,
        settings=audit.settings,
    )
