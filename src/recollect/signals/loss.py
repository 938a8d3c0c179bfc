"""Loss: a model is surer of what it was trained on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from recollect.models.access import Access
from recollect.models.answers import Answers
from recollect.models.model import Kind
from recollect.signals.evidence import TARGET, Evidence
from recollect.signals.scores import Scores


@dataclass(frozen=True, kw_only=True)
class Loss:
    """The mean log-probability of a record's symbols under the model.

    Yeom et al. 2018, "Privacy Risk in Machine Learning", section 3; the baseline of Mireshghallah et al. 2022.
    It is minus the loss, so that higher is more evidence of training. Easy records score high whether or not they
    were trained on: `ratio` corrects for that.
    """

    name: ClassVar[str] = "loss"
    paper: ClassVar[str] = "Yeom et al. 2018, Privacy Risk in Machine Learning"
    kinds: ClassVar[tuple[Kind, ...]] = ("causal", "masked", "seq2seq", "classifier")
    needs: ClassVar[Mapping[str, Access]] = {TARGET: Access(k=1, logprob="any", distribution=False, steps=False)}

    def score(self, evidence: Evidence, corpus: str) -> Scores:
        """The mean log-probability of each record's symbols under the target."""
        parts = []
        for records, (answers,) in evidence.each(corpus, [TARGET]):
            means = mean_logprob(answers)
            found = {record.id: means[record.digest] for record in records if record.digest in means}
            parts.append(Scores.of(records, found))
        return Scores.joined(parts)


def mean_logprob(answers: Answers) -> dict[str, float]:
    """The mean log-probability of each record's symbols, by record digest.

    Symbols that the model's vocabulary does not know are left out, and so are records that have no others: their
    number would be that of `<unk>`.
    """
    logprob = answers.logprob
    assert logprob is not None  # noqa: S101 - the signal's `needs` say so
    record = np.repeat(np.arange(len(answers)), np.diff(answers.offsets))[answers.known]
    counts = np.bincount(record, minlength=len(answers))
    sums = np.bincount(record, weights=logprob[answers.known], minlength=len(answers))
    return {answers.records[i]: float(sums[i] / counts[i]) for i in np.flatnonzero(counts)}
