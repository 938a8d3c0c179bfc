"""Truncated evidence: what models that read from left to right answered about the first tokens of some records.

Nobody is asked again: the rows of a prefix are the first rows of the whole.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from recollect.corpora.corpus import Corpus
from recollect.corpora.record import Record
from recollect.models.access import Access
from recollect.models.answers import Answers
from recollect.signals.evidence import TARGET, Evidence, EvidenceAnswers
from recollect.signals.signal import DerivingSignal, Signal

_LEFT_TO_RIGHT: Final = ("causal", "seq2seq")


def can_truncate(signal: Signal, evidence: Evidence) -> bool:
    """Whether evidence can be truncated for a signal: the scores of prefixes follow from those of whole records.

    Not for masked models, which read to the end, nor for classifiers, nor for signals that also score texts which they
    derive from a record: those would have to be derived from the prefix.
    """
    return evidence.models[TARGET].kind in _LEFT_TO_RIGHT and not isinstance(signal, DerivingSignal)


@dataclass(frozen=True, eq=False)
class TruncatedAnswers:
    """All answers of one model about one corpus, in memory."""

    access: Access
    loaded: Answers

    @classmethod
    def of(cls, source: EvidenceAnswers, records: Iterable[Record]) -> TruncatedAnswers:
        """The answers to these records."""
        return cls(source.access, source.get_answers(records))

    def get_answers(self, records: Iterable[Record]) -> Answers:
        """The answers to these records, each content once, in their order."""
        names = tuple(dict.fromkeys(record.digest for record in records))
        return self.loaded if names == self.loaded.records else self.loaded.select(names)

    def iter_blocks(self, records: Iterable[Record]) -> Iterator[tuple[list[Record], Answers]]:
        """All records as one block."""
        listed = list(records)
        yield listed, self.get_answers(listed)

    @cached_property
    def rows(self) -> dict[str, int]:
        """How many tokens were predicted of each record, by digest."""
        return dict(zip(self.loaded.records, np.diff(self.loaded.offsets).tolist(), strict=True))


def load_truncatable_evidence(evidence: Evidence, roles: Iterable[str]) -> Evidence:
    """The evidence with all answers about some corpora in memory, to be truncated."""
    wanted = frozenset(roles)
    records = {role: list(evidence.corpora[role]) for role in wanted}
    answers = {
        (model, role): TruncatedAnswers.of(source, records[role]) if role in wanted else source
        for (model, role), source in evidence.answers.items()
    }
    corpora = {**evidence.corpora, **{role: Corpus.of(each, name=role) for role, each in records.items()}}
    return replace(evidence, corpora=corpora, answers=answers)


def count_truncatable_tokens(evidence: Evidence, role: str) -> dict[str, int]:
    """How many tokens of each record of a corpus the target predicted, by id; records without any are left out."""
    counts = dict[str, int]()
    for records, (answers,) in evidence.iter_blocks(role, [TARGET]):
        rows = dict(zip(answers.records, np.diff(answers.offsets).tolist(), strict=True))
        counts |= {record.id: rows[record.digest] for record in records if rows.get(record.digest)}
    return counts


def truncate_evidence(evidence: Evidence, kept: Mapping[str, Mapping[str, int]]) -> Evidence:
    """The truncated evidence: about the first tokens of some records, and about nothing else of their corpora.

    Args:
        evidence: Its answers about these corpora are in memory (`load_truncatable_evidence`).
        kept: By corpus and record: how many tokens of it are kept, as the target counts them.
    """
    corpora, answers = dict(evidence.corpora), dict(evidence.answers)
    for role, tokens in kept.items():
        records = [record for record in evidence.corpora[role] if record.id in tokens]
        whole = evidence.answers[TARGET, role]
        assert isinstance(whole, TruncatedAnswers)  # noqa: S101 - what `load_truncatable_evidence` made
        limits = {record.digest: min(tokens[record.id], whole.rows[record.digest]) for record in records}
        ends = _find_truncated_ends(whole.loaded, limits)
        for (model, about), source in evidence.answers.items():
            if about == role and isinstance(source, TruncatedAnswers):
                answers[model, role] = TruncatedAnswers(source.access, _truncate_answers(source.loaded, ends))
        corpora[role] = Corpus.of([_truncate_record(record, ends[record.digest]) for record in records], name=role)
    return replace(evidence, corpora=corpora, answers=answers)


def _find_truncated_ends(answers: Answers, limits: Mapping[str, int]) -> dict[str, int]:
    """Where in the text the kept tokens of each truncated record end, in characters, by digest."""
    starts = answers.offsets[[answers.index_of[record] for record in limits]]
    return dict(zip(limits, answers.end[starts + list(limits.values()) - 1].tolist(), strict=True))


def _truncate_answers(answers: Answers, ends: Mapping[str, int]) -> Answers:
    """The answers about some records up to where each is truncated."""
    names = [record for record in ends if record in answers]
    indices = np.array([answers.index_of[record] for record in names], dtype=np.int64)
    lengths = np.diff(answers.offsets)[indices]
    place = np.repeat(np.arange(len(names)), lengths)
    rows = np.arange(len(place)) + (answers.offsets[indices] - np.cumsum(lengths) + lengths)[place]
    kept = answers.end[rows] <= np.array([ends[record] for record in names], dtype=np.int64)[place]
    rows, counts = rows[kept], np.bincount(place[kept], minlength=len(names))
    columns: dict[str, Any] = {
        each.name: None if value is None else value[rows]
        for each in fields(Answers)
        if each.name not in {"records", "offsets"}
        for value in [getattr(answers, each.name)]
    }
    offsets: NDArray[np.int64] = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
    return Answers(records=tuple(names), offsets=offsets, **columns)


def _truncate_record(record: Record, end: int) -> Record:
    """The beginning of a record; it keeps the address of the whole, under which its answers are found."""
    cut = record.with_scored_text(record.scored_text[:end])
    cut.__dict__["digest"] = record.digest
    return cut
