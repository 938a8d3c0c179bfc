"""Deduplication: records that repeat an earlier one. What is repeated is memorised first."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass

from recollect.checks import check_at_least
from recollect.corpora.corpus import Corpus
from recollect.corpora.record import Record
from recollect.corpora.sanitisation import Change, Sanitisation, collect_sanitised_texts, remove_records
from recollect.corpora.spill import Spill, hash_number
from recollect.digests import digest_bytes


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
    keys = _Keys(passage)
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
class _Keys:
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
    """Whether users repeat themselves, which makes a model memorise them, or others; nothing without users."""
    if record.user is None or user is None:
        return ""
    return " of the same user" if record.user == user else " of another user"


def normalise_duplicate(text: str) -> str:
    r"""The text as duplicates are compared: compatible characters, lowercase letters, single spaces.

    >>> normalise_duplicate("  Ｈello\u00a0 WORLD ")
    'hello world'
    """
    return " ".join(unicodedata.normalize("NFKC", text).casefold().split())
