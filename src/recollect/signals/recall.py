"""ReCaLL: foreign texts in front disturb a model most where it knew what comes next."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import islice
from typing import ClassVar

from recollect.checks import check_at_least
from recollect.corpora.corpus import Corpus
from recollect.corpora.record import Record
from recollect.errors import NotEnoughData
from recollect.models.access import Access
from recollect.models.answers import Answers
from recollect.models.model import Kind
from recollect.signals.aggregation import ANY_LOGPROB, average_tokens, get_logprobs, score_records
from recollect.signals.evidence import CONTROLS, TARGET, Evidence
from recollect.signals.loss import mean_logprob
from recollect.signals.lowercase import compute_loss_ratio
from recollect.signals.scores import Scores
from recollect.signals.signal import derived_role


@dataclass(frozen=True, kw_only=True)
class Recall:
    """The loss of a text after a prefix of non-member texts, divided by its loss alone (ReCaLL).

    Xie et al. 2024, "ReCaLL: Membership Inference via Relative Conditional Log-Likelihoods". The texts in front are
    the same for all records, but for those in front themselves, which get others.
    """

    shots: int = 4
    """How many of the controls are in front."""

    name: ClassVar[str] = "recall"
    paper: ClassVar[str] = "Xie et al. 2024, ReCaLL: Membership Inference via Relative Conditional Log-Likelihoods"
    kinds: ClassVar[tuple[Kind, ...]] = ("causal",)
    needs: ClassVar[Mapping[str, Access]] = {TARGET: ANY_LOGPROB}

    def __post_init__(self) -> None:
        check_at_least(1, shots=self.shots)

    def derive_corpus(self, evidence: Evidence, corpus: str) -> Corpus:
        """The same records, each after the texts in front."""
        original = evidence.corpora[corpus]
        return Corpus(f"{original.name} after others' texts", self._build_prefixed(evidence, corpus))

    def score(self, evidence: Evidence, corpus: str) -> Scores:
        """How much higher the loss of each record is after the texts in front."""
        prefixed = self._build_prefixed(evidence, corpus)
        offsets = {record.digest: offset for record, offset in prefixed.iter_with_offsets()}

        def after(answers: list[Answers]) -> dict[str, float]:
            return _average_from_offsets(answers[0], offsets)

        alone = score_records(evidence, corpus, [TARGET], lambda answers: mean_logprob(answers[0]))
        return compute_loss_ratio(score_records(evidence, derived_role(self, corpus), [TARGET], after), alone)

    def _build_prefixed(self, evidence: Evidence, corpus: str) -> _PrefixedCorpus:
        """The records with what is in front of them."""
        return _PrefixedCorpus(evidence.corpora[corpus], evidence.corpora[CONTROLS], self.shots)


@dataclass(frozen=True)
class _PrefixedCorpus:
    """Opens the records of a corpus after texts of the controls."""

    corpus: Corpus
    controls: Corpus
    shots: int

    def __call__(self) -> Iterator[Record]:
        for record, _ in self.iter_with_offsets():
            yield record

    def iter_with_offsets(self) -> Iterator[tuple[Record, int]]:
        """The records, and where in their text the original begins; empty texts have nothing to predict."""
        for record in self.corpus:
            if not record.scored_text.strip():
                continue
            prefix = self._prefixes[record.digest in self._prefix_digests]
            yield record.with_scored_text(f"{prefix} {record.scored_text}"), len(prefix)

    @cached_property
    def _prefix_records(self) -> list[Record]:
        """Twice as many controls as are in front at once: the first by id, whatever their order."""
        filled = (record for record in sorted(self.controls, key=lambda r: r.id) if record.scored_text.strip())
        chosen = list(islice({record.digest: record for record in filled}.values(), 2 * self.shots))
        if len(chosen) < 2:
            raise NotEnoughData(
                f"ReCaLL puts texts of controls in front; there are {len(chosen)}.",
                do="Give at least two controls.",
                code="too_few_controls",
                needed=2,
            )
        return chosen

    @cached_property
    def _prefix_digests(self) -> frozenset[str]:
        return frozenset(record.digest for record in self._prefix_records[::2])

    @cached_property
    def _prefixes(self) -> tuple[str, str]:
        """What is in front of nearly all records, and of those that are there themselves."""
        return " ".join(r.scored_text for r in self._prefix_records[::2]), " ".join(
            r.scored_text for r in self._prefix_records[1::2]
        )


def _average_from_offsets(answers: Answers, offsets: Mapping[str, int]) -> dict[str, float]:
    """For ReCaLL: the mean log-probability of each record's tokens after its prefix."""
    counted = answers.known.copy()
    for record in answers.records:
        rows = answers.get_rows(record)
        counted[rows] &= answers.end[rows] > offsets[record] + 1
    return average_tokens(replace(answers, known=counted), get_logprobs(answers))
