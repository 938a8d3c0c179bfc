"""Alignment: ranks of the same words in several models, although their tokenizers may cut texts differently.

A word here is the shortest piece of text that begins and ends where a token of every model does. Its rank is the
product of the ranks of its tokens. So models with one vocabulary are compared token by token, others word by word.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from recollect.audits.common.unicode_words import find_spaces
from recollect.audits.provenance.queries import (
    CALIBRATION,
    CALIBRATION_PIECES,
    PIECES,
    QUERIES,
    find_owner,
    find_text_of_piece,
)
from recollect.audits.provenance.word_frequencies import find_word
from recollect.corpora.record import Record
from recollect.models.answers import Answers
from recollect.signals.evidence import Evidence

Floats = NDArray[np.float64]
Codes = NDArray[np.int64]
NOTHING: Mapping[str, int] = MappingProxyType({})
"""No counts, where it does not matter how frequent words are."""


@dataclass(frozen=True, kw_only=True, eq=False)
class WordRanks:
    """The words of some users, with their ranks in every model; unknown ones are left out."""

    users: tuple[str, ...]
    """In ascending order."""
    user: Codes
    """Whose each word is: an index into the users [words]."""
    text: Codes
    """Which of the user's queries it is in, from 0 [words]."""
    texts: Codes
    """How many queries each user has [users]."""
    log_rank: Floats
    """The natural logarithm of each word's rank; infinite where the model does not show it [models, words]."""
    max_rank: Floats
    """The largest rank among each word's tokens; infinite where one of them is not shown [models, words]."""
    frequency: Codes
    """How often the shadows' users wrote it; 0 for what is no word of theirs, or a rare one [words]."""
    unknown: Codes
    """Words of each user that were left out because some model does not know them [users]."""
    incomplete: Codes
    """Words of each user that were left out because some model did not predict all of them [users]."""

    def __len__(self) -> int:
        return len(self.user)

    @cached_property
    def commonness(self) -> Floats:
        """The logarithm of how often each word was written, and once more [words]."""
        return np.log1p(self.frequency)

    @cached_property
    def hardness(self) -> Floats:
        """How hard each word is to guess for models other than the first: the mean of their ranks' logarithms."""
        ranks = self.log_rank[1:]
        return np.asarray(np.where(np.isfinite(ranks), ranks, 0.0).mean(axis=0))

    @cached_property
    def place(self) -> Codes:
        """How many words of the same text stand before each word: what a cut of the text to an amount needs."""
        key = self.user * (int(self.text.max(initial=0)) + 1) + self.text
        order = np.argsort(key, kind="stable")
        ordered = key[order]
        found = np.empty(len(key), dtype=np.int64)
        found[order] = np.arange(len(key)) - np.searchsorted(ordered, ordered, side="left")
        return found

    def append(self, others: WordRanks) -> WordRanks:
        """These users, then others, whose words the same models scored."""
        columns = {
            name: np.concatenate([getattr(self, name), getattr(others, name)], axis=-1)
            for name in ("text", "texts", "log_rank", "max_rank", "frequency", "unknown", "incomplete")
        }
        user = np.concatenate([self.user, others.user + len(self.users)])
        return WordRanks(users=self.users + others.users, user=user, **columns)

    def add_pieces(self, more: WordRanks) -> WordRanks:
        """These words, and further ranks of some of them, from pieces of the same texts."""
        code = {user: index for index, user in enumerate(self.users)}
        owners = np.array([code[user] for user in more.users], dtype=np.int64)
        columns: dict[str, Any] = {
            name: np.concatenate([getattr(self, name), getattr(more, name)], axis=-1)
            for name in ("text", "log_rank", "max_rank", "frequency")
        }
        return replace(self, user=np.concatenate([self.user, owners[more.user]]), **columns)

    def count_words(self, most: int | None = None) -> Codes:
        """How many words each user has within the first so many queries [users]."""
        chosen = self.user if most is None else self.user[self.text < most]
        return np.bincount(chosen, minlength=len(self.users))

    def limit_ranks(self, model: int, k: int | None) -> Floats:
        """The logarithms of the ranks in one model, as if it showed only its k most likely tokens."""
        if k is None:
            return np.asarray(self.log_rank[model])
        return np.where(self.max_rank[model] <= k, self.log_rank[model], np.inf)


def align_words(
    evidence: Evidence,
    corpus: str,
    models: Sequence[str],
    counts: Mapping[str, int] = NOTHING,
    text_of: Callable[[Record], int] | None = None,
) -> WordRanks:
    """The aligned words of a corpus of queries, with their ranks in these models.

    Args:
        evidence: Holds the answers of these models about this corpus.
        corpus: The role of the corpus; the texts of each user are in the order in which they were chosen.
        models: The roles of the models; the ranks come in this order.
        counts: How often the shadows' users wrote each word.
        text_of: Which of its author's texts a record belongs to; by default each is one of its own.
    """
    seen: dict[str, int] = {}
    blocks, owners = list[_AlignedBlock](), list[str]()
    for records, answers in evidence.iter_blocks(corpus, models):
        numbers = []
        for record in records:
            numbers.append(seen.get(find_owner(record), 0) if text_of is None else text_of(record))
            seen[find_owner(record)] = numbers[-1] + 1
        texts = [record.digest for record in records]
        block = _align_block(records, [given.select(texts) for given in answers], counts)
        blocks.append(block.number(len(owners), np.array(numbers, dtype=np.int64)))
        owners += [find_owner(record) for record in records]
    return _join_aligned_blocks(blocks, owners, seen, models=len(models))


@dataclass(frozen=True, eq=False)
class _AlignedBlock:
    """The words of some texts, unknown ones among them."""

    record: Codes
    text: Codes
    log_rank: Floats
    max_rank: Floats
    frequency: Codes
    known: NDArray[np.bool_]
    whole: NDArray[np.bool_]

    def number(self, first: int, texts: Codes) -> _AlignedBlock:
        """The same with the numbers of its texts in the whole corpus, and of each among its user's."""
        return replace(self, record=self.record + first, text=texts[self.record])


def _join_aligned_blocks(
    blocks: Sequence[_AlignedBlock], owners: Sequence[str], texts: dict[str, int], *, models: int
) -> WordRanks:
    """All blocks of aligned words as one; only words that every model knows and predicted are kept."""
    users = tuple(sorted(texts))
    code = {user: i for i, user in enumerate(users)}
    of_record = np.array([code[user] for user in owners], dtype=np.int64)
    record = np.concatenate([np.empty(0, np.int64), *(block.record for block in blocks)])
    user = of_record[record] if len(record) else record
    known = np.concatenate([np.empty(0, bool), *(block.known for block in blocks)])
    whole = np.concatenate([np.empty(0, bool), *(block.whole for block in blocks)])
    kept, nothing = known & whole, np.empty((models, 0))
    return WordRanks(
        users=users,
        user=user[kept],
        text=np.concatenate([np.empty(0, np.int64), *(block.text for block in blocks)])[kept],
        texts=np.array([texts[name] for name in users], dtype=np.int64),
        log_rank=np.concatenate([nothing, *(block.log_rank for block in blocks)], axis=1)[:, kept],
        max_rank=np.concatenate([nothing, *(block.max_rank for block in blocks)], axis=1)[:, kept],
        frequency=np.concatenate([np.empty(0, np.int64), *(block.frequency for block in blocks)])[kept],
        unknown=np.bincount(user[~known], minlength=len(users)),
        incomplete=np.bincount(user[known & ~whole], minlength=len(users)),
    )


def _align_block(records: Sequence[Record], answers: Sequence[Answers], counts: Mapping[str, int]) -> _AlignedBlock:
    """The aligned words of some texts: from one character where a token of every model begins to the next."""
    after, before, starts = _find_word_edges([record.scored_text for record in records])
    begins, ends, common = [], [], np.ones(len(after), np.bool_)
    for given in answers:
        first = np.repeat(starts, np.diff(given.offsets))
        begins.append(first + after[first + given.start])
        ends.append(first + before[first + given.end])
        common &= _mark_positions(begins[-1], len(common))
    words = _WordPositions.of(common, starts)
    rows = [_AlignedRows.of(*each, words) for each in zip(answers, begins, ends, strict=True)]
    last = np.stack([each.last for each in rows])
    return _AlignedBlock(
        record=words.record,
        text=words.record,
        log_rank=np.stack([each.log_rank for each in rows]),
        max_rank=np.stack([each.max_rank for each in rows]),
        frequency=_look_up_aligned_words(records, words, counts),
        known=np.logical_and.reduce([each.known for each in rows]),
        whole=np.logical_and.reduce(last == last[0]),
    )


def _mark_positions(positions: Codes, count: int) -> NDArray[np.bool_]:
    """Which of all positions at which a word may be aligned are among these."""
    marked = np.zeros(count, np.bool_)
    marked[positions] = True
    return marked


@dataclass(frozen=True, eq=False)
class _WordPositions:
    """Where aligned words begin; a position is the number of a character among those of all texts."""

    record: Codes
    """The number of the text that each word is in [words]."""
    character: Codes
    """At which of the text's characters each word begins [words]."""
    word: Codes
    """The last word that begins at each position or before it in the same text; −1 for none [positions]."""

    @classmethod
    def of(cls, begins: NDArray[np.bool_], starts: Codes) -> _WordPositions:
        """The words that begin where it is marked, of texts that begin at these positions."""
        position = np.flatnonzero(begins)
        record = np.searchsorted(starts, position, side="right") - 1
        word, sizes = np.cumsum(begins) - 1, np.diff(starts, append=len(begins))
        words_before = np.repeat(np.searchsorted(position, starts), sizes)
        return cls(record, position - starts[record], np.where(word >= words_before, word, -1))


@dataclass(frozen=True, eq=False)
class _AlignedRows:
    """The tokens of one model, joined to words."""

    log_rank: Floats
    max_rank: Floats
    known: NDArray[np.bool_]
    last: Codes
    """Where each word ends."""

    @classmethod
    def of(cls, answers: Answers, begin: Codes, end: Codes, words: _WordPositions) -> _AlignedRows:
        """Join the tokens that begin where a word does or between it and the next."""
        word, count = words.word[begin], len(words.record)
        inside = word >= 0
        word, rank = word[inside], answers.rank[inside].astype(np.float64)
        rank[rank == 0] = np.inf
        log_rank, max_rank = np.zeros(count), np.zeros(count)
        last, known = np.zeros(count, np.int64), np.ones(count, np.bool_)
        np.add.at(log_rank, word, np.log(rank))
        np.maximum.at(max_rank, word, rank)
        np.maximum.at(last, word, end[inside])
        known[word[~answers.known[inside]]] = False
        return cls(log_rank, max_rank, known, last)


def _look_up_aligned_words(records: Sequence[Record], words: _WordPositions, counts: Mapping[str, int]) -> Codes:
    """How often each aligned word was written by others."""
    if not counts:
        return np.zeros(len(words.record), np.int64)
    texts = [record.scored_text for record in records]
    found = map(find_word, (texts[each] for each in words.record.tolist()), words.character.tolist())
    return np.fromiter((counts.get(word, 0) for word in found), np.int64, count=len(words.record))


def _find_word_edges(texts: Sequence[str]) -> tuple[Codes, Codes, Codes]:
    """For each character of all texts, the next that is no white space, and the last end of what is none before it.

    Some tokenizers count the space before a word to the word. Both are numbers within a text, which has one position
    more than characters; the third array says where each text begins among all positions.
    """
    sizes = np.array([len(text) + 1 for text in texts], dtype=np.int64)
    starts = np.cumsum(sizes) - sizes
    inked = ~find_spaces("".join(f"{text}\n" for text in texts))
    ended = np.append(True, inked)[:-1]
    inked[starts + sizes - 1] = ended[starts] = True
    positions, first = np.arange(len(inked)), np.repeat(starts, sizes)
    after = np.minimum.accumulate(np.where(inked, positions, len(inked))[::-1])[::-1] - first
    before = np.maximum.accumulate(np.where(ended, positions, 0)) - first
    return after, before, starts


def align_everybody(
    evidence: Evidence, models: Sequence[str], counts: Mapping[str, int]
) -> tuple[WordRanks, WordRanks]:
    """The aligned words of audited people, and then of calibration users; and the same with those of their pieces."""
    whole, with_pieces = [], []
    for role, cut in ((QUERIES, PIECES), (CALIBRATION, CALIBRATION_PIECES)):
        words = align_words(evidence, role, models, counts)
        whole.append(words)
        if cut in evidence.corpora:
            words = words.add_pieces(align_words(evidence, cut, models, counts, find_text_of_piece))
        with_pieces.append(words)
    return whole[0].append(whole[1]), with_pieces[0].append(with_pieces[1])
