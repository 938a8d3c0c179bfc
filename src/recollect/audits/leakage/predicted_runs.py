"""Predicted runs: words in a row that a model predicts (Algorithm 1 of the paper, with runs that reach a text's end).

A word is what is between white space (any that Unicode knows), capitals kept. It counts as predicted when tokens among
the model's top k cover all of it, and every token that overlaps it is among them. So a word is a word however a
tokenizer splits it. One small row is stored for each place of a run, until it is known which runs are unique.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import IO

import numpy as np
from numpy.typing import NDArray

from recollect.audits.common.unicode_words import find_spaces
from recollect.audits.leakage.reference_models import Group, ModelPair
from recollect.corpora.messages import SEPARATOR, list_scored
from recollect.corpora.record import Record
from recollect.corpora.spill import append_values
from recollect.models.answer_store.store import split_into_store_blocks
from recollect.models.answers import Answers
from recollect.signals.evidence import Evidence

Numbers = dict[str, int]
"""The distinct runs by their text, each with its number."""
BLOCK = 1024
"""Records that are read together."""


Floats = NDArray[np.float64]
HELD = 1 << 20
"""How many rows are kept in memory before they are written: 40 MB."""
ROW = np.dtype(
    [
        ("k", np.int32),
        ("run", np.int32),
        ("record", np.int64),
        ("start", np.int32),
        ("first", np.int32),
        ("words", np.int32),
        ("nats", np.float64),
        ("reference", np.float64),
    ]
)
"""The value of k, which run, in which record of the corpus by its index, from which character and which of its words
on, how many words, and how surprised the model and the reference are, in nats: NaN where that is not known."""
Rows = NDArray[np.void]
Integers = NDArray[np.int64]
Flags = NDArray[np.bool_]

_BORDER = "\n"
"""Stands between the texts of a block: it is white space, so no word crosses it."""


@dataclass(frozen=True, eq=False)
class PredictedWords:
    """The words of a block of records, one text after the other.

    >>> PredictedWords.of([Record(id="a", text="To be"), Record(id="b", text="or\u00a0not")]).texts
    ('To', 'be', 'or', 'not')
    """

    texts: tuple[str, ...]
    """Every word as it is written."""
    start: Integers
    """Where each word begins, in characters of the whole block."""
    end: Integers
    record: Integers
    """Which record of the block it is in."""
    piece: Integers
    """Which uninterrupted text of the block it is in: a record's, or of a conversation one turn."""
    base: Integers
    """Where the text of each record begins in the block."""
    size: int
    """Characters of the whole block."""

    @classmethod
    def of(cls, records: Sequence[Record]) -> PredictedWords:
        """The words of these records' texts (of pairs: of their targets; of conversations: of their scored turns)."""
        written = [record.scored_text for record in records]
        lengths = np.array([len(text) + len(_BORDER) for text in written], dtype=np.int64)
        base = np.cumsum(lengths) - lengths
        whole = _BORDER.join(written)
        start, end = _find_word_spans(whole)
        return cls(
            texts=tuple(whole.split()),
            start=start,
            end=end,
            record=np.searchsorted(base, start, side="right") - 1,
            piece=np.searchsorted(_find_uninterrupted_texts(records, base), start, side="right") - 1,
            base=base,
            size=int(lengths.sum()),
        )

    def __len__(self) -> int:
        return len(self.texts)


def _find_uninterrupted_texts(records: Sequence[Record], base: Integers) -> Integers:
    """Where each text begins that no predicted run crosses, in characters of the whole block."""
    begins = list[int]()
    for record, begin in zip(records, base.tolist(), strict=True):
        begins.append(begin)
        for turn in list_scored(record.messages or ())[:-1]:
            begins.append(begins[-1] + len(turn) + len(SEPARATOR))
    return np.array(begins, dtype=np.int64)


def _find_word_spans(text: str) -> tuple[Integers, Integers]:
    """Where every word of a predicted text begins and ends, as `str.split` finds them."""
    inside = ~find_spaces(text)
    change = np.diff(inside.astype(np.int8), prepend=0, append=0)
    return np.flatnonzero(change == 1), np.flatnonzero(change == -1)


@dataclass(frozen=True, eq=False)
class Runs:
    """Maximal runs of predicted words, in the order of the block."""

    words: PredictedWords
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
class PredictedTokens:
    """The scores of a block of records token by token, placed in the text of the whole block."""

    words: PredictedWords
    answers: Answers
    """Of the records in their order; contents that come twice are there twice."""
    start: Integers
    end: Integers
    """Where each token ends; one without width ends one character after it began, so that it touches its word."""
    full: Integers
    """Where it really ends."""

    @classmethod
    def of(cls, records: Sequence[Record], words: PredictedWords, answers: Answers) -> PredictedTokens:
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
        summed, infinite, missing, gaps = self._surprise
        first = np.searchsorted(self.end, runs.start, side="right")
        beyond = np.searchsorted(self.start, runs.end, side="left")
        whole = (missing[beyond] == missing[first]) & (gaps[runs.beyond] == gaps[runs.first])
        # counted apart: the difference of two sums that are both infinite would be no number, in all that follows
        nats = np.where(infinite[beyond] > infinite[first], np.inf, summed[beyond] - summed[first])
        return np.where(whole, nats, np.nan)

    @cached_property
    def _surprise(self) -> tuple[Floats, Integers, Integers, Integers]:
        """Up to each token of predicted runs: finite surprise in nats, how many are infinite, not shown, uncovered."""
        assert self.answers.logprob is not None  # noqa: S101 - the audit needs it wherever nats are summed
        logprob = self.answers.logprob.astype(np.float64)
        hidden, endless = np.isnan(logprob), np.isneginf(logprob)
        bare = self._find_uncovered(np.ones(len(self.start), dtype=np.bool_))
        return (
            np.concatenate([[0.0], np.cumsum(np.where(hidden | endless, 0, -logprob))]),
            np.concatenate([[0], np.cumsum(endless)]),
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


class RunStore:
    """Rows in order of arrival; those that are not in memory are in an unnamed temporary file."""

    def __init__(self, held: int = HELD) -> None:
        """Begin with none.

        Args:
            held: How many rows are kept in memory.
        """
        self._held, self._pending, self._count = held, list[Rows](), 0
        self._file: IO[bytes] | None = None

    def add(self, rows: Rows) -> None:
        """Add some rows."""
        self._pending.append(rows)
        self._count += len(rows)
        if self._count > self._held:
            self._file = append_values(self._file, np.concatenate(self._pending))
            self._pending, self._count = [], 0

    def select(self, chosen: NDArray[np.bool_]) -> Rows:
        """The rows of chosen runs.

        Args:
            chosen: For each run, whether its rows are wanted.
        """
        return np.concatenate([np.empty(0, ROW), *(rows[chosen[rows["run"]]] for rows in self._iterate())])

    def _iterate(self) -> Iterator[Rows]:
        """All rows, some at a time."""
        if self._file is not None:
            self._file.flush()
            stored = np.memmap(self._file, dtype=ROW, mode="r")
            for begin in range(0, len(stored), self._held):
                yield np.array(stored[begin : begin + self._held])
        yield from self._pending


def select_best_rows(rows: Rows) -> tuple[Rows, dict[tuple[int, int], int]]:
    """The stored rows in which each predicted run leaks most (all, where several are tied), and how many rows each has.

    Args:
        rows: Rows of any runs and k.
    """
    gain = np.nan_to_num(rows["reference"] - rows["nats"], nan=-np.inf)
    order = np.lexsort((gain, rows["run"], rows["k"]))
    rows, gain = rows[order], gain[order]
    last = np.flatnonzero(np.append((np.diff(rows["run"]) != 0) | (np.diff(rows["k"]) != 0), True))[: len(rows)]
    sizes = np.diff(np.concatenate([[-1], last]))
    kept = gain == np.repeat(gain[last], sizes)
    keys = zip(rows["k"][last].tolist(), rows["run"][last].tolist(), strict=True)
    return rows[kept], dict(zip(keys, sizes.tolist(), strict=True))


@dataclass(frozen=True, kw_only=True, eq=False)
class PredictedRuns:
    """How much was read, and where which runs are predicted."""

    words: int
    unknown: int
    """Words that are, partly or wholly, `<unk>` to the model: it cannot predict them, and each ends a run."""
    predicted: int
    """Words in runs at the largest k."""
    sequences: int
    """Different runs at the largest k."""
    store: RunStore

    @property
    def all_predicted(self) -> bool:
        """Whether no word was read that the model knows and does not predict at the largest k."""
        return 0 < self.predicted == self.words - self.unknown


def collect_predicted_runs(
    evidence: Evidence, group: Group, numbers: Numbers, ks: Sequence[int], min_length: int
) -> PredictedRuns:
    """Read what the models of a group predict: the distinct runs are numbered, and their places kept.

    Args:
        evidence: Contains the answers.
        group: Which model predicts whose texts, and which reference it is compared with.
        numbers: The runs so far; new ones are added.
        ks: Values of k in ascending order: for each, runs of words within the model's top k.
        min_length: How many words a run must have.
    """
    words = unknown = predicted = before = 0
    distinct, store = set[int](), RunStore()
    for block in split_into_store_blocks(evidence.corpora[group.corpus], BLOCK):
        for pair, positions in group.assign(block):
            scored = _ScoredPair.of(evidence, [block[i] for i in positions], pair)
            words, unknown = words + len(scored.model.words), unknown + scored.model.unknown
            for k in ks:
                runs = scored.model.find_runs(k, min_length=min_length)
                number = [numbers.setdefault(text, len(numbers)) for text in runs.get_texts()]
                store.add(scored.build_rows(runs, number, np.array(positions) + before, k))
            distinct.update(number)
            predicted += int(runs.lengths.sum())
        before += len(block)
    return PredictedRuns(words=words, unknown=unknown, predicted=predicted, sequences=len(distinct), store=store)


@dataclass(frozen=True, eq=False)
class _ScoredPair:
    """Some records, as a model and a reference scored them."""

    model: PredictedTokens
    reference: PredictedTokens | None
    """None if there is none, or one of the two shows no probabilities."""

    @classmethod
    def of(cls, evidence: Evidence, records: Sequence[Record], pair: ModelPair) -> _ScoredPair:
        """The scores of these records."""
        words = PredictedWords.of(records)
        model = PredictedTokens.of(records, words, evidence.answers[pair.model].get_answers(records))
        if pair.reference is None or model.answers.logprob is None:
            return cls(model, None)
        answers = evidence.answers[pair.reference].get_answers(records)
        return cls(model, None if answers.logprob is None else PredictedTokens.of(records, words, answers))

    def build_rows(self, runs: Runs, number: list[int], positions: NDArray[np.int64], k: int) -> Rows:
        """The runs as rows; `positions` are those of the records in the corpus."""
        record = runs.words.record[runs.first]
        rows = np.empty(len(runs), dtype=ROW)
        rows["k"], rows["run"], rows["record"], rows["words"] = k, number, positions[record], runs.lengths
        rows["start"] = runs.start - runs.words.base[record]
        rows["first"] = runs.first - np.searchsorted(runs.words.record, record)
        for name, tokens in (("nats", self.model), ("reference", self.reference)):
            rows[name] = np.nan if self.reference is None or tokens is None else tokens.sum_nats(runs)
        return rows
