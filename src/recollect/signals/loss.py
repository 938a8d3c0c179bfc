"""Loss: a model is more confident in its training data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from recollect.models.access import Access
from recollect.models.answers import Answers
from recollect.models.model import Kind
from recollect.signals.aggregation import ANY_LOGPROB, ValueByRecord, average_tokens, get_logprobs, score_records
from recollect.signals.evidence import TARGET, Evidence
from recollect.signals.scores import Scores


@dataclass(frozen=True, kw_only=True)
class Loss:
    """The mean log-probability of a record's tokens under the model.

    Yeom et al. 2018, "Privacy Risk in Machine Learning", section 3; the baseline of Mireshghallah et al. 2022.
    It is minus the loss, so that higher is more evidence of training. Easy records score high whether or not they
    were trained on: `ratio` corrects for that.
    """

    name: ClassVar[str] = "loss"
    paper: ClassVar[str] = "Yeom et al. 2018, Privacy Risk in Machine Learning"
    kinds: ClassVar[tuple[Kind, ...]] = ("causal", "masked", "seq2seq", "classifier")
    needs: ClassVar[Mapping[str, Access]] = {TARGET: ANY_LOGPROB}

    def score(self, evidence: Evidence, corpus: str) -> Scores:
        """The mean log-probability of each record's tokens under the target."""
        return score_records(evidence, corpus, [TARGET], lambda answers: mean_logprob(answers[0]))


def mean_logprob(answers: Answers) -> ValueByRecord:
    """Minus the loss: the mean log-probability of each record's known tokens, by record digest."""
    return average_tokens(answers, get_logprobs(answers))
