"""Neighbourhood: a memorised text is more likely than texts that differ in one word."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import ClassVar

import numpy as np

from recollect import labels
from recollect.checks import check_at_least
from recollect.corpora.corpus import Corpus
from recollect.corpora.record import Record
from recollect.errors import PlanError
from recollect.models.access import Access
from recollect.models.model import Kind, Perturber
from recollect.signals.aggregation import ANY_LOGPROB, score_records
from recollect.signals.evidence import CONTROLS, TARGET, Evidence
from recollect.signals.loss import mean_logprob
from recollect.signals.roles import PERTURBER
from recollect.signals.scores import Scores
from recollect.signals.signal import derived_role
from recollect.streams import stream


@dataclass(frozen=True, kw_only=True)
class Neighbourhood:
    """The log-probability of a record, minus the mean over texts that differ from it in one word.

    Mattern et al. 2023, "Membership Inference Attacks against Language Models via Neighbourhood Comparison". A masked
    model writes the neighbours where one is given. Each costs a pass of the target.
    """

    count: int = 10
    """How many neighbours each record has; fewer if it has fewer words."""

    name: ClassVar[str] = "neighbourhood"
    paper: ClassVar[str] = "Mattern et al. 2023, Membership Inference Attacks via Neighbourhood Comparison"
    kinds: ClassVar[tuple[Kind, ...]] = ("causal", "masked", "seq2seq")
    needs: ClassVar[Mapping[str, Access]] = {TARGET: ANY_LOGPROB}

    def __post_init__(self) -> None:
        check_at_least(1, count=self.count)

    def derive_corpus(self, evidence: Evidence, corpus: str) -> Corpus:
        """The neighbours of all records."""
        original = evidence.corpora[corpus]
        return Corpus(
            f"neighbours of {original.name}", _NeighbourCorpus(original, _pick_perturber(evidence), self.count)
        )

    def score(self, evidence: Evidence, corpus: str) -> Scores:
        """How much more likely each record is than its neighbours on average."""
        alone = score_records(evidence, corpus, [TARGET], lambda answers: mean_logprob(answers[0]))
        near = score_records(evidence, derived_role(self, corpus), [TARGET], lambda answers: mean_logprob(answers[0]))
        found: dict[str, list[float]] = {}
        for name, value in zip(near.records, near.values.tolist(), strict=True):
            found.setdefault(name.rpartition("\x1f")[0], []).append(value)
        both = alone.select([record for record in alone.records if record in found])
        return both.with_values(both.values - np.array([np.mean(found[record]) for record in both.records]))


def _pick_perturber(evidence: Evidence) -> Perturber:
    """Who writes the neighbours of the neighbourhood signal.

    Raises:
        PlanError: A model of the wrong kind is given.
    """
    model: object = evidence.models.get(PERTURBER)
    if model is None:
        return _WordSwapper(evidence.corpora[CONTROLS])
    if isinstance(model, Perturber):
        return model
    raise PlanError(
        f"The perturber is a {evidence.models[PERTURBER].kind} model, which cannot predict a masked word.",
        do="Give a masked model, or none.",
        code="perturber_not_masked",
    )


@dataclass(frozen=True)
class _NeighbourCorpus:
    """Opens the neighbours of a corpus; they are written once, because a model may write them."""

    corpus: Corpus
    perturber: Perturber
    count: int

    def __call__(self) -> Iterator[Record]:
        for record in self.corpus:
            for i, text in enumerate(self._neighbours_by_digest.get(record.digest, ())):
                name = f"{record.id}\x1f{i}"
                yield replace(record.with_scored_text(text), id=name)

    @cached_property
    def _neighbours_by_digest(self) -> dict[str, list[str]]:
        """The neighbours by what a record says; one that says nothing has none."""
        records = list({record.digest: record for record in self.corpus if record.scored_text.strip()}.values())
        texts = [record.scored_text for record in records]
        return dict(zip((r.digest for r in records), self.perturber.neighbours(texts, self.count), strict=True))


@dataclass(frozen=True)
class _WordSwapper:
    """Swaps one word for another that is about as frequent in a corpus."""

    corpus: Corpus

    def neighbours(self, texts: Sequence[str], count: int) -> list[list[str]]:
        """For each text up to so many others."""
        return [self._swap_words(text, count) for text in texts]

    def _swap_words(self, text: str, count: int) -> list[str]:
        """A neighbour of a text: one word swapped, in up to so many places."""
        rng, words = stream(0, labels.STREAM_WORD_SWAPS, text), text.split()
        found = []
        for place in sorted(rng.permutation(len(words))[:count].tolist()):
            near = self._frequency_rank.get(words[place], len(self._words_by_frequency) - 1)
            step = int(rng.integers(1, 6)) * (1 if near < 5 or rng.random() < 0.5 else -1)
            other = (
                self._words_by_frequency[(near + step) % len(self._words_by_frequency)]
                if self._words_by_frequency
                else words[place][::-1]
            )
            found.append(" ".join([*words[:place], other, *words[place + 1 :]]))
        return found

    @cached_property
    def _words_by_frequency(self) -> list[str]:
        """All words for neighbours, the most frequent first."""
        counted = Counter(word for record in self.corpus for word in record.scored_text.split())
        return sorted(counted, key=lambda word: (-counted[word], word))

    @cached_property
    def _frequency_rank(self) -> dict[str, int]:
        return {word: place for place, word in enumerate(self._words_by_frequency)}
