"""Modified entropy: entropy that knows which label is right."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import scipy

from recollect.models.access import Access
from recollect.models.answers import Answers, Floats
from recollect.models.model import Kind
from recollect.signals.aggregation import DISTRIBUTION, average_tokens, get_logprobs, score_records
from recollect.signals.evidence import TARGET, Evidence
from recollect.signals.scores import Scores


@dataclass(frozen=True, kw_only=True)
class ModifiedEntropy:
    """Minus the modified entropy of a classifier's prediction.

    Song & Mittal 2021, "Systematic Evaluation of Privacy Risks of Machine Learning Models":
    −(1 − p_y) log p_y − Σ over other labels of p_i log(1 − p_i). It is 0 where the model is sure and right, and
    without bound where it is sure and wrong.
    """

    name: ClassVar[str] = "modified-entropy"
    paper: ClassVar[str] = "Song & Mittal 2021, Systematic Evaluation of Privacy Risks of Machine Learning Models"
    kinds: ClassVar[tuple[Kind, ...]] = ("classifier",)
    needs: ClassVar[Mapping[str, Access]] = {TARGET: DISTRIBUTION}

    def score(self, evidence: Evidence, corpus: str) -> Scores:
        """Minus the modified entropy of each record's prediction."""
        return score_records(
            evidence,
            corpus,
            [TARGET],
            lambda answers: average_tokens(answers[0], -compute_modified_entropy(answers[0])),
        )


def compute_modified_entropy(answers: Answers) -> Floats:
    """The modified entropy of each prediction, from the logits, so that nothing is rounded away near certainty."""
    assert answers.logits is not None  # noqa: S101 - the signal's `needs` say so
    logits = answers.logits.astype(np.float64)
    log_p = scipy.special.log_softmax(logits, axis=1)
    rows = np.arange(len(log_p))
    # The label itself is not kept; classes that are equally likely give the same number.
    label = np.abs(log_p - get_logprobs(answers)[:, None]).argmin(axis=1)
    log_not = np.log(np.maximum(-np.expm1(log_p), np.finfo(np.float64).tiny))
    terms = np.exp(log_p) * log_not
    terms[rows, label] = np.exp(log_not[rows, label]) * log_p[rows, label]
    return np.asarray(-terms.sum(axis=1))
