"""Lowercase: the loss of a memorised text increases most when it is lowercased."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from recollect.corpora.corpus import Corpus
from recollect.corpora.record import Record
from recollect.models.access import Access
from recollect.models.model import Kind
from recollect.signals.aggregation import ANY_LOGPROB, score_records
from recollect.signals.evidence import TARGET, Evidence
from recollect.signals.loss import mean_logprob
from recollect.signals.scores import Scores
from recollect.signals.signal import derived_role

MIN_LOSS = 1e-6
"""Nats per token; below it a loss is practically zero, and a ratio is meaningless."""


@dataclass(frozen=True, kw_only=True)
class Lowercase:
    """The loss of a text in lowercase, divided by its loss as it is.

    Carlini et al. 2021, "Extracting Training Data from Large Language Models". It says nothing of texts that have no
    capitals.
    """

    name: ClassVar[str] = "lowercase"
    paper: ClassVar[str] = "Carlini et al. 2021, Extracting Training Data from Large Language Models"
    kinds: ClassVar[tuple[Kind, ...]] = ("causal", "masked", "seq2seq")
    needs: ClassVar[Mapping[str, Access]] = {TARGET: ANY_LOGPROB}

    def derive_corpus(self, evidence: Evidence, corpus: str) -> Corpus:
        """The same records in lowercase."""
        original = evidence.corpora[corpus]
        return Corpus(f"{original.name} in lowercase", _LowercaseCorpus(original))

    def score(self, evidence: Evidence, corpus: str) -> Scores:
        """How much higher the loss of each record is in lowercase."""
        whole = score_records(evidence, corpus, [TARGET], lambda answers: mean_logprob(answers[0]))
        low = score_records(evidence, derived_role(self, corpus), [TARGET], lambda answers: mean_logprob(answers[0]))
        return compute_loss_ratio(low, whole)


def compute_loss_ratio(changed: Scores, original: Scores) -> Scores:
    """The loss of each record in lowercase, divided by its loss before; what lacks one of them is left out."""
    both = original.select([record for record in original.records if record in changed])
    return both.combine(
        changed.select(both.records),
        lambda before, after: np.asarray(np.minimum(after, 0) / np.minimum(before, -MIN_LOSS)),
    )


@dataclass(frozen=True)
class _LowercaseCorpus:
    """Opens the records of a corpus with their predicted text lowercased."""

    corpus: Corpus

    def __call__(self) -> Iterator[Record]:
        for record in self.corpus:
            yield record.with_scored_text(record.scored_text.lower())
