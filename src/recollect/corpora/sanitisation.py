"""Sanitising: formats, high scores and duplicates are taken out of a corpus before training; each change says why.

Carlini et al. 2018, "The Secret Sharer", section 8.2 and appendix F. No way of sanitising gives a guarantee:
formats are never complete, and scores are heuristics.
"""

from __future__ import annotations

import math
import unicodedata
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from recollect.checks import check_at_least, check_between
from recollect.corpora.canaries.formats import Format
from recollect.corpora.canaries.matcher import Matcher
from recollect.corpora.corpus import Corpus
from recollect.corpora.record import Record
from recollect.corpora.spill import Spill, hash_number
from recollect.digests import digest_bytes
from recollect.errors import NotEnoughData

PLACEHOLDER = "[***]"
"""The replacement of a masked secret: characters that no slot is filled with, so that it is not found again."""


@dataclass(frozen=True, kw_only=True)
class Change:
    """What was done to one record, and why."""

    record: str
    """Its id."""
    action: Literal["removed", "masked"]
    reason: str
    duplicate_of: str | None = None
    """The id of the earlier record that it repeats."""
    score: float | None = None
    """The number by which it was chosen."""


@dataclass(frozen=True, kw_only=True)
class Sanitisation:
    """A corpus after sanitising."""

    corpus: Corpus
    changes: tuple[Change, ...]
    """In the order of the corpus."""

    @property
    def counts(self) -> dict[str, int]:
        """How many records were changed, by reason."""
        return dict(Counter(change.reason for change in self.changes))

    @property
    def removed(self) -> int:
        """How many records are gone."""
        return sum(change.action == "removed" for change in self.changes)


def sanitise_by_format(corpus: Corpus, formats: Sequence[Format], *, mask: bool = False) -> Sanitisation:
    """The corpus without what has one of these formats, wherever it is in a text.

    Args:
        corpus: What to sanitise.
        formats: What secrets look like.
        mask: Keep the record, with a placeholder from the first slot to the last of each match.
    """
    matchers = tuple(Matcher(format) for format in formats)
    action: Literal["removed", "masked"] = "masked" if mask else "removed"
    changes = [
        Change(record=record.id, action=action, reason=f"holds the format {matcher.format.pattern!r}")
        for record in corpus
        if (matcher := _find_matching_format(record, matchers)) is not None
    ]
    if mask:
        return Sanitisation(
            corpus=Corpus(_name_sanitised(corpus), _MaskedRecords(corpus, matchers)), changes=tuple(changes)
        )
    return remove_records(corpus, changes)


def sanitise_by_scores(corpus: Corpus, scores: Mapping[str, float], *, share: float, reason: str) -> Sanitisation:
    """The corpus without the share of records that has the highest scores; records without a score stay.

    Args:
        corpus: What to sanitise.
        scores: By record id; higher is removed first, and of equal scores what comes first in the corpus.
        share: Which share of all records is removed, rounded up.
        reason: What the scores are, in words.
    """
    check_between(0, 1, share=share)
    scored = [record.id for record in corpus if record.id in scores]
    order = np.argsort([-scores[record] for record in scored], kind="stable")
    chosen = sorted(order[: math.ceil(share * len(corpus))].tolist())
    changes = [
        Change(record=scored[i], action="removed", reason=reason, score=float(scores[scored[i]])) for i in chosen
    ]
    return remove_records(corpus, changes)


def remove_records(corpus: Corpus, changes: Sequence[Change]) -> Sanitisation:
    """The sanitised corpus: without the records that were removed."""
    gone = frozenset(change.record for change in changes)
    if len(gone) == len(corpus):
        raise NotEnoughData(
            f"Nothing of {corpus.name} would be left.", do="Sanitise by something less common.", code="nothing_left"
        )
    return Sanitisation(corpus=corpus.filter(_NotRemoved(gone), name=_name_sanitised(corpus)), changes=tuple(changes))


def _name_sanitised(corpus: Corpus) -> str:
    """The name of a sanitised corpus."""
    return f"{corpus.name} (sanitised)"


@dataclass(frozen=True)
class _NotRemoved:
    """Whether a record stays."""

    gone: frozenset[str]

    def __call__(self, record: Record) -> bool:
        return record.id not in self.gone


def collect_sanitised_texts(record: Record) -> dict[str, str]:
    """The texts of a record that are sanitised, by field; of a conversation, its turns by number and role."""
    if record.messages is not None:
        return {f"{i} {each.role}": each.content for i, each in enumerate(record.messages)}
    named = {name: getattr(record, name) for name in ("text", "source", "target")}
    return {name: text for name, text in named.items() if text is not None}


def _replace_sanitised_texts(record: Record, texts: Mapping[str, str]) -> Record:
    """The record with other texts in the fields, or turns, that `collect_sanitised_texts` named."""
    if record.messages is None:
        return replace(record, **texts)  # type: ignore[arg-type]
    turns = zip(record.messages, texts.values(), strict=True)
    return replace(record, messages=tuple(each._replace(content=text) for each, text in turns))


def _find_matching_format(record: Record, matchers: Sequence[Matcher]) -> Matcher | None:
    """The first format to sanitise that is somewhere in the record."""
    return next((m for m in matchers if any(text in m for text in collect_sanitised_texts(record).values())), None)


@dataclass(frozen=True)
class _MaskedRecords:
    """A pass over a corpus in which what has one of the formats is masked."""

    corpus: Corpus
    matchers: tuple[Matcher, ...]

    def __call__(self) -> Iterator[Record]:
        for record in self.corpus:
            texts = collect_sanitised_texts(record)
            masked = {name: self._mask(text) for name, text in texts.items()}
            yield record if masked == texts else _replace_sanitised_texts(record, masked)

    def _mask(self, text: str) -> str:
        """The text with a placeholder for each secret."""
        for matcher in self.matchers:
            # where two overlap both are masked: to mask one of them would leave the other
            spans = [(found.secret_start, found.secret_end) for found in matcher.find_matches(text, overlapping=True)]
            for start, end in reversed(_merge_masked_spans(spans)):
                text = text[:start] + PLACEHOLDER + text[end:]
        return text


def _merge_masked_spans(spans: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """Spans of a sanitised text that are masked, in order, those that overlap made one.

    >>> _merge_masked_spans([(0, 2), (1, 3), (3, 5)])
    [(0, 3), (3, 5)]
    """
    merged: list[tuple[int, int]] = []
    for start, end in sorted(spans):
        if merged and start < merged[-1][1]:
            merged[-1] = (merged[-1][0], max(end, merged[-1][1]))
        else:
            merged.append((start, end))
    return merged


def sanitise_by_duplicates(corpus: Corpus, *, passage: int | None = None) -> Sanitisation:
    """The corpus without records that repeat an earlier one; the first copy stays.

    Two texts are the same if they are after Unicode normalisation (NFKC), whatever their capitals and white space.
    Where users are known, the reasons distinguish users who repeat themselves from users who repeat others.

    Args:
        corpus: What to sanitise.
        passage: Also remove records that share so many words in a row with an earlier record.
    """
    if passage is not None:
        check_at_least(2, passage=passage)
    keys = _DuplicateKeys(passage)
    hashes = Spill()
    for record in corpus:
        for _, key in keys(record):
            hashes.add(key)
    repeated = {number for hashes_of_slice in hashes.iter_repeated() for number in hashes_of_slice.tolist()}
    first, changes = dict[str, tuple[str, str | None]](), list[Change]()
    for record in corpus:
        # the full digests of the few that may repeat make it certain
        found = [
            (reason, digest_bytes(key.encode("utf-8", "surrogatepass")))
            for reason, key in keys(record)
            if hash_number(key) in repeated
        ]
        duplicate = next(((reason, first[key]) for reason, key in found if key in first), None)
        if duplicate is not None:
            reason, (like, user) = duplicate
            changes.append(
                Change(
                    record=record.id,
                    action="removed",
                    reason=reason + _describe_repetition(record, user),
                    duplicate_of=like,
                )
            )
        else:
            first.update((key, (record.id, record.user)) for _, key in found)
    return remove_records(corpus, changes)


@dataclass(frozen=True)
class _DuplicateKeys:
    """What makes a record the same as another: its whole content, or some words in a row."""

    passage: int | None

    def __call__(self, record: Record) -> Iterator[tuple[str, str]]:
        """Why two records with the same key repeat each other, and the key."""
        texts = {name: normalise_duplicate(text) for name, text in collect_sanitised_texts(record).items()}
        content = [f"{name}:{text}" for name, text in texts.items()] or [record.digest]
        yield "repeats an earlier record", "\x1f".join([*content, f"label:{record.label}"])
        if self.passage is None:
            return
        for text in texts.values():
            words = text.split(" ")
            for i in range(len(words) - self.passage + 1):
                passage = "\x1f".join(words[i : i + self.passage])
                yield f"repeats {self.passage} words of an earlier record", passage


def _describe_repetition(record: Record, user: str | None) -> str:
    """Why a duplicate is removed in sanitising: users repeat themselves, or others; nothing without users."""
    if record.user is None or user is None:
        return ""
    return " of the same user" if record.user == user else " of another user"


def normalise_duplicate(text: str) -> str:
    r"""The text as sanitising compares duplicates: compatible characters, lowercase letters, single spaces.

    >>> normalise_duplicate("  Ｈello\u00a0 WORLD ")
    'hello world'
    """
    return " ".join(unicodedata.normalize("NFKC", text).casefold().split())
