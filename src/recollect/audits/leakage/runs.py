"""Runs: words in a row that a model predicts (Algorithm 1 of the paper, with the run that reaches the end of a text).

A word counts as predicted when tokens among the model's top k cover all of it, and every token that overlaps it is
among them. So a word is a word however a tokenizer splits it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from recollect.audits.leakage.words import Flags, Integers, Words
from recollect.corpora.record import Record
from recollect.models.answers import Answers

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Runs:
    """Maximal runs of predicted words, in the order of the block."""

    words: Words
    first: Integers
    """The place of each run's first word."""
    beyond: Integers
    """The place after its last word."""

    def __len__(self) -> int:
        return len(self.first)

    @property
    def lengths(self) -> Integers:
        """How many words each run has."""
        return self.beyond - self.first

    def get_texts(self) -> list[str]:
        """Each run with single spaces: two runs are the same if these are."""
        words = self.words.texts
        return [" ".join(words[a:b]) for a, b in zip(self.first.tolist(), self.beyond.tolist(), strict=True)]

    def take(self, chosen: Flags | Integers) -> Runs:
        """Some of the runs."""
        return Runs(self.words, self.first[chosen], self.beyond[chosen])

    @property
    def start(self) -> Integers:
        """Where each run begins, in characters of the block."""
        return self.words.start[self.first]

    @property
    def end(self) -> Integers:
        """Where each run ends."""
        return self.words.end[self.beyond - 1]


@dataclass(frozen=True, eq=False)
class ScoredTokens:
    """The scores of a block of records token by token, placed in the text of the whole block."""

    words: Words
    answers: Answers
    """Of the records in their order; contents that come twice are there twice."""
    start: Integers
    end: Integers
    """Where each token ends; one without width ends one character after it began, so that it touches its word."""
    full: Integers
    """Where it really ends."""

    @classmethod
    def of(cls, records: Sequence[Record], words: Words, answers: Answers) -> ScoredTokens:
        """The tokens of these records; answers are joined by record id, never by position."""
        theirs = answers.select([record.digest for record in records])
        shift = np.repeat(words.base, np.diff(theirs.offsets))
        start, full = theirs.start + shift, theirs.end + shift
        return cls(words, theirs, start, np.maximum(full, start + 1), full)

    def find_runs(self, k: int, *, min_length: int = 1) -> Runs:
        """The maximal runs of words that are among the model's top k.

        Args:
            k: How many tokens the model shows.
            min_length: How many words a run must have.
        """
        predicted = self._find_predicted(k)
        piece = self.words.piece
        joins = predicted[1:] & predicted[:-1] & (piece[1:] == piece[:-1])
        first = np.flatnonzero(predicted & ~np.concatenate([[False], joins])[: len(predicted)])
        last = np.flatnonzero(predicted & ~np.concatenate([joins, [False]])[: len(predicted)])
        long = last + 1 - first >= min_length
        return Runs(self.words, first[long], last[long] + 1)

    def sum_nats(self, runs: Runs) -> Floats:
        """How surprised the model is by each run, in nats: minus the log-probability of all tokens that touch it.

        Where a token is `<unk>`, this is the surprise at any unknown word: the word itself surprises the model at least
        as much. NaN where the model did not have to predict all of the run, or does not show it.
        """
        summed, missing, gaps = self._surprise
        first = np.searchsorted(self.end, runs.start, side="right")
        beyond = np.searchsorted(self.start, runs.end, side="left")
        whole = (missing[beyond] == missing[first]) & (gaps[runs.beyond] == gaps[runs.first])
        return np.where(whole, summed[beyond] - summed[first], np.nan)

    @cached_property
    def _surprise(self) -> tuple[Floats, Integers, Integers]:
        """Running sums: nats of tokens, tokens without a number, and words that no tokens cover."""
        assert self.answers.logprob is not None  # noqa: S101 - the audit needs it wherever nats are summed
        logprob = self.answers.logprob.astype(np.float64)
        hidden = np.isnan(logprob)
        bare = self._find_uncovered(np.ones(len(self.start), dtype=np.bool_))
        return (
            np.concatenate([[0.0], np.cumsum(np.where(hidden, 0, -logprob))]),
            np.concatenate([[0], np.cumsum(hidden)]),
            np.concatenate([[0], np.cumsum(bare)]),
        )

    @property
    def unknown(self) -> int:
        """How many words are, partly or wholly, `<unk>` to the model."""
        unknown = ~self.answers.known
        return int(self._find_words(self._find_touched(self.start[unknown], self.end[unknown])).sum())

    def _find_predicted(self, k: int) -> Flags:
        """Which words are predicted."""
        rank = self.answers.rank
        hit = self.answers.known & (rank >= 1) & (rank <= k)
        missed = self._find_touched(self.start[~hit], self.end[~hit])
        return ~self._find_uncovered(hit) & ~self._find_words(missed)

    def _find_uncovered(self, tokens: Flags) -> Flags:
        """Which words have a character that none of these tokens covers."""
        return self._find_words(~self._find_touched(self.start[tokens], self.full[tokens]))

    def _find_touched(self, start: Integers, end: Integers) -> Flags:
        """Which characters of the block are in one of these spans."""
        size = self.words.size + 2
        change = np.bincount(start, minlength=size) - np.bincount(end, minlength=size)
        return np.cumsum(change) > 0

    def _find_words(self, characters: Flags) -> Flags:
        """Which words have such a character."""
        before = np.concatenate([[0], np.cumsum(characters)])
        return np.asarray(before[self.words.end] > before[self.words.start])
