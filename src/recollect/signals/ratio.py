"""Ratio: how much more likely a record is under the target than under a reference not trained on it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from recollect.checks import check_one_of
from recollect.errors import PlanError
from recollect.models.access import Access
from recollect.models.answers import Answers
from recollect.models.model import Kind
from recollect.signals.aggregation import ANY_LOGPROB, ValueByRecord, get_logprobs, index_records, score_records
from recollect.signals.evidence import REFERENCE, TARGET, Evidence
from recollect.signals.scores import Scores

Normalisation = Literal["auto", "token", "record"]


@dataclass(frozen=True, kw_only=True)
class Ratio:
    """The log-likelihood of a record under the target, minus that under reference models.

    Mireshghallah et al. 2022, equations 1 and 2, with the sign turned (−L). A masked model's likelihood is minus its
    energy: the log-probabilities of the hidden tokens, summed over a pattern, averaged over patterns. Both models
    are scored with the same patterns, and where they read a text as the same tokens, only tokens that both know
    count. Several references are averaged.
    """

    per: Normalisation = "auto"
    """`record`: the sum over a record's tokens (of masked models: over a pattern's), as in equation 2; `token`: their
    mean, as in the authors' code; `auto`: the sum for masked models, the mean for all others, whose records differ in
    length."""

    name: ClassVar[str] = "ratio"
    paper: ClassVar[str] = "Mireshghallah et al. 2022, Quantifying Privacy Risks of Masked Language Models"
    kinds: ClassVar[tuple[Kind, ...]] = ("causal", "masked", "seq2seq", "classifier")
    needs: ClassVar[Mapping[str, Access]] = {TARGET: ANY_LOGPROB, REFERENCE: ANY_LOGPROB}

    def __post_init__(self) -> None:
        check_one_of(("auto", "token", "record"), per=self.per)

    def score(self, evidence: Evidence, corpus: str) -> Scores:
        """The difference of log-likelihoods, averaged over all references."""
        references = evidence.models_of_role(REFERENCE)
        if not references:
            raise PlanError(
                "The signal 'ratio' compares with a reference model, and none is given.",
                do="Give --reference MODEL.",
                code="missing_reference",
            )
        summed = self.per == "record" or (self.per == "auto" and evidence.models[TARGET].kind == "masked")

        def measure(answers: list[Answers]) -> ValueByRecord:
            each = [compute_log_ratio(answers[0], reference, summed=summed) for reference in answers[1:]]
            shared = set.intersection(*map(set, each))
            return {record: sum(found[record] for found in each) / len(each) for record in shared}

        return score_records(evidence, corpus, [TARGET, *references], measure)


def compute_log_ratio(target: Answers, reference: Answers, *, summed: bool) -> ValueByRecord:
    """How much more likely each record is to the target than to the reference.

    Args:
        target: What the target answered.
        reference: What the reference answered about the same records.
        summed: Whether likelihoods are sums over a record (per pattern) rather than means per token.
    """
    alike, other = _split_by_tokenisation(target, reference)
    mine, theirs = target.select(alike), reference.select(alike)
    both = mine.known & theirs.known
    found = _subtract_log_likelihoods(
        _compute_log_likelihood(mine, both, summed=summed), _compute_log_likelihood(theirs, both, summed=summed)
    )
    mine, theirs = target.select(other), reference.select(other)
    return found | _subtract_log_likelihoods(
        _compute_log_likelihood(mine, mine.known, summed=summed),
        _compute_log_likelihood(theirs, theirs.known, summed=summed),
    )


def _split_by_tokenisation(target: Answers, reference: Answers) -> tuple[list[str], list[str]]:
    """For the ratio: records that both models read as the same tokens under the same patterns, and all others."""
    shared = [record for record in target.records if record in reference]
    same = target.count_rows(shared) == reference.count_rows(shared)
    equal = [record for record, is_same in zip(shared, same.tolist(), strict=True) if is_same]
    mine, theirs = target.select(equal), reference.select(equal)
    differs = np.zeros(mine.rows, dtype=np.bool_)
    for column in ("pattern", "start", "end"):
        differs |= getattr(mine, column) != getattr(theirs, column)
    unlike = set(np.unique(index_records(mine)[differs]).tolist())
    alike = {record: None for i, record in enumerate(equal) if i not in unlike}
    return list(alike), [record for record in shared if record not in alike]


def _compute_log_likelihood(answers: Answers, counted: NDArray[np.bool_], *, summed: bool) -> ValueByRecord:
    """The log-likelihood in a ratio, of each record from the rows that count; records without any are left out."""
    record = index_records(answers)[counted]
    counts = np.bincount(record, minlength=len(answers))
    sums = np.bincount(record, weights=get_logprobs(answers)[counted], minlength=len(answers))
    divisors = counts
    if summed:
        divisors = np.ones(len(answers), dtype=np.int64)
        np.maximum.at(divisors, index_records(answers), answers.pattern + 1)
    return {answers.records[i]: float(sums[i] / divisors[i]) for i in np.flatnonzero(counts)}


def _subtract_log_likelihoods(mine: ValueByRecord, theirs: ValueByRecord) -> ValueByRecord:
    """The log-ratio of every record that both models scored; none where both give it probability zero."""
    both = {record: value - theirs[record] for record, value in mine.items() if record in theirs}
    return {record: value for record, value in both.items() if not np.isnan(value)}
