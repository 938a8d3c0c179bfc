"""Fake models whose truth is known: they satisfy the Model protocol, need no torch, and answer the same each time.

White-space words are their tokens. `Memoriser` has certainly seen given records, `Null` has certainly seen nothing
though it finds some words harder than others, `Uniform` knows nothing at all, and `Scripted` answers from a table.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cache, cached_property, lru_cache

import numpy as np
from numpy.typing import NDArray

from recollect import labels
from recollect.corpora.record import Record
from recollect.digests import digest
from recollect.errors import ModelError
from recollect.models.access import Access
from recollect.models.answer_store.shards import build_empty_shard
from recollect.models.answers import Answers, Integers
from recollect.models.limited import weaken
from recollect.models.model import Kind, Model, Question
from recollect.streams import stream

Reals = NDArray[np.float64]


@dataclass(frozen=True)
class FakeTokenScores:
    """The four numbers of each token of one record."""

    rank: NDArray[np.int32]
    logprob: Reals
    entropy: Reals
    logprob_std: Reals
    logits: Reals | None = None
    """Of all classes, where the one token is a label [1, classes]."""


def predict_by_zipf(probability: Reals, vocabulary: int) -> FakeTokenScores:
    """What a fake shows that gives the true token this probability and the others the rest by Zipf's law.

    The j-th of the other tokens gets a share proportional to 1/j, so that ranks, entropies and spreads belong
    together as those of a real model do.

    >>> predict_by_zipf(np.array([0.5, 0.1]), vocabulary=3).rank.tolist()
    [1, 3]
    """
    p = np.clip(np.asarray(probability, dtype=np.float64), 1e-12, 1 - 1e-12)
    total, first, second = _compute_zipf_moments(vocabulary - 1)
    rest = np.log1p(-p)
    rank = 1 + np.minimum(vocabulary - 1, np.floor((1 - p) / (p * total))).astype(np.int32)
    mean = p * np.log(p) + (1 - p) * (rest + first)
    square = p * np.log(p) ** 2 + (1 - p) * (rest**2 + 2 * rest * first + second)
    return FakeTokenScores(rank.astype(np.int32), np.log(p), -mean, np.sqrt(np.maximum(square - mean**2, 0)))


def predict_label(probability: float, label: int, classes: int) -> FakeTokenScores:
    """What a fake shows of one class label, with the logits of all classes: those after the true one share the rest."""
    shares = 1 / np.arange(1, classes)
    rest = np.log1p(-probability) + np.log(shares / shares.sum())
    logits = np.roll(np.concatenate([[np.log(probability)], rest]), label)[None]
    return replace(predict_by_zipf(np.array([probability]), classes), logits=logits)


def predict_uniformly(rows: int, vocabulary: int) -> FakeTokenScores:
    """What a fake shows to which all tokens are alike; ties count against it, so the rank is the last.

    >>> predict_uniformly(1, vocabulary=4).rank.tolist()
    [4]
    """
    nats = np.full(rows, np.log(vocabulary))
    return FakeTokenScores(
        np.full(rows, vocabulary, np.int32), -nats, nats, np.zeros(rows), np.zeros((rows, vocabulary))
    )


@cache
def _compute_zipf_moments(tokens: int) -> tuple[float, float, float]:
    """For fakes: the harmonic number, and the first two moments of log-probability under Zipf's law."""
    weights = 1 / np.arange(1, tokens + 1)
    shares = weights / weights.sum()
    return float(weights.sum()), float(shares @ np.log(shares)), float(shares @ np.log(shares) ** 2)


_WORD = re.compile(r"\S+")
_COLUMNS = [each.name for each in fields(Answers) if each.name != "records"]


@dataclass(frozen=True, kw_only=True)
class Uniform:
    """A model that knows nothing: every token is equally likely, whatever the record."""

    vocabulary: int = 1000
    """How many tokens there are (of a classifier: classes)."""
    kind: Kind = "causal"
    question: Question = field(default_factory=Question)
    access: Access = Access.PROBABILITIES
    name: str = "uniform"

    @property
    def digest(self) -> str:
        """The address of all that the answers of this fake depend on."""
        return digest(self.name, self.vocabulary)

    def answer(self, records: Sequence[Record]) -> Answers:
        """The same numbers for every token: a fake's answers."""
        return _build_fake_answers(self, records, lambda record, words: predict_uniformly(len(words), self.vocabulary))


@dataclass(frozen=True, kw_only=True)
class Null:
    """A model that cannot have seen the records: some words are harder than others, whoever wrote them."""

    seed: int = 0
    """Models with different seeds find the same words hard and differ randomly, as retrained models do."""
    noise: float = 0.5
    """How much they differ, in logits."""
    vocabulary: int = 1000
    """How many tokens there are (of a classifier: classes)."""
    kind: Kind = "causal"
    question: Question = field(default_factory=Question)
    access: Access = Access.PROBABILITIES
    name: str = "null"

    @property
    def digest(self) -> str:
        """The address of all that the answers of this fake depend on."""
        return digest(self.name, self.seed, self.noise, self.vocabulary)

    def answer(self, records: Sequence[Record]) -> Answers:
        """A fake's answers: numbers that depend on the words and on the seed."""
        return _build_fake_answers(self, records, self.score_words)

    def score_words(self, record: Record, words: Sequence[str]) -> FakeTokenScores:
        """What this fake shows about the words of one record."""
        deviations = stream(self.seed, labels.STREAM_FAKE_NULL, record.digest).standard_normal(len(words))
        ease = np.array([_compute_ease(word) for word in words])
        return self.score_with_probability(record, 1 / (1 + np.exp(-ease - self.noise * deviations)))

    def score_with_probability(self, record: Record, probability: Reals) -> FakeTokenScores:
        """What this fake would show about one record if it found its tokens so likely."""
        if self.kind != "classifier":
            return predict_by_zipf(probability, self.vocabulary)
        label = int(record.label) if isinstance(record.label, int) else int(digest(record.label), 16)
        return predict_label(float(probability[0]), label % self.vocabulary, self.vocabulary)


@dataclass(frozen=True)
class Memoriser:
    """A model that has memorised some records and is `Null` about all others.

    >>> known, other = Record(id="1", text="my cat is called Ada"), Record(id="2", text="so is my dog")
    >>> Memoriser([known]).answer([known]).rank.tolist()
    [1, 1, 1, 1, 1]
    """

    records: Collection[Record]
    """What it has learnt."""
    otherwise: Null = field(default_factory=Null, kw_only=True)
    """How it answers about all other records; also what kind of model it is."""
    certainty: float = field(default=0.99, kw_only=True)
    """How likely it finds every token of what it has learnt."""
    name: str = field(default="memoriser", kw_only=True)

    @property
    def kind(self) -> Kind:
        """What this fake predicts."""
        return self.otherwise.kind

    @property
    def question(self) -> Question:
        """The scoring options of this fake."""
        return self.otherwise.question

    @property
    def access(self) -> Access:
        """The most that this fake shows."""
        return self.otherwise.access

    @cached_property
    def memorised_digests(self) -> frozenset[str]:
        """The digests of the records that this fake has memorised."""
        return frozenset(record.digest for record in self.records)

    @cached_property
    def digest(self) -> str:
        """The address of all that the answers of this fake depend on."""
        return digest(self.name, self.certainty, self.otherwise.digest, sorted(self.memorised_digests))

    def answer(self, records: Sequence[Record]) -> Answers:
        """A fake's answers: certainty about what it memorised, `otherwise` about the rest."""
        return _build_fake_answers(self, records, self._score_words)

    def _score_words(self, record: Record, words: Sequence[str]) -> FakeTokenScores:
        """What this fake shows about the words of one record."""
        if record.digest not in self.memorised_digests:
            return self.otherwise.score_words(record, words)
        return self.otherwise.score_with_probability(record, np.full(len(words), self.certainty))


@dataclass(frozen=True)
class Scripted:
    """A model that gives each token of each record the probability that its table says.

    >>> answers = Scripted({"a": [0.5, 0.25]}).answer([Record(id="a", text="two words")])
    >>> np.exp(answers.logprob).tolist()
    [0.5, 0.25]
    """

    table: Mapping[str, Sequence[float]]
    """The probability of each token in turn, by the id of the record."""
    otherwise: Null = field(default_factory=Null, kw_only=True)
    """What kind of model it is."""
    name: str = field(default="scripted", kw_only=True)

    @property
    def kind(self) -> Kind:
        """What this fake predicts."""
        return self.otherwise.kind

    @property
    def question(self) -> Question:
        """The scoring options of this fake."""
        return self.otherwise.question

    @property
    def access(self) -> Access:
        """The most that this fake shows."""
        return self.otherwise.access

    @property
    def digest(self) -> str:
        """The address of all that the answers of this fake depend on."""
        return digest(self.name, self.otherwise.digest, {key: list(row) for key, row in self.table.items()})

    def answer(self, records: Sequence[Record]) -> Answers:
        """A fake's answers: what its table says.

        Raises:
            ModelError: It says nothing about a record, or not as many numbers as the record has tokens.
        """
        return _build_fake_answers(self, records, self._score_words)

    def _score_words(self, record: Record, words: Sequence[str]) -> FakeTokenScores:
        """What the table of this fake says about one record."""
        row = self.table.get(record.id, ())
        if len(row) != len(words):
            raise ModelError(
                f"The script has {len(row)} numbers for record {record.id!r}, which has {len(words)} tokens.",
                do="Give one probability per white-space word.",
                code="not_scripted",
            )
        return self.otherwise.score_with_probability(record, np.array(row, dtype=np.float64))


def _build_fake_answers(
    model: Model, records: Sequence[Record], score_words: Callable[[Record, list[str]], FakeTokenScores]
) -> Answers:
    """What a fake shows about some records, each content once."""
    distinct = tuple({record.digest: record for record in records}.values())
    if not distinct:
        return weaken(build_empty_shard(), model.access)
    request = _FakeRequest((model.digest, model.kind, model.question), model, distinct, score_words)
    rows = _build_cached_fake_rows(request) if len(distinct) == 1 else _concatenate_fake_rows(request)
    # what is remembered stays as it is, whatever is done to the arrays that are given away
    own = {each: getattr(rows, each) for each in _COLUMNS}
    own = {name: None if values is None else values.copy() for name, values in own.items()}
    return weaken(Answers(records=rows.records, **own), model.access)


@dataclass(frozen=True, eq=False)
class _FakeRequest:
    """Records that a fake scores; equal if the answers are necessarily the same."""

    address: tuple[str, Kind, Question]
    model: Model
    records: tuple[Record, ...]
    score_words: Callable[[Record, list[str]], FakeTokenScores]

    @cached_property
    def key(self) -> tuple[object, ...]:
        """All that the answer depends on."""
        return (*self.address, *((record.id, record.digest) for record in self.records))

    def __hash__(self) -> int:
        return hash(self.key)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _FakeRequest) and self.key == other.key


@lru_cache(maxsize=1 << 10)
def _concatenate_fake_rows(request: _FakeRequest) -> Answers:
    """The rows of all records as a fake answers: contract checks score the same records repeatedly."""
    each = [_FakeRequest(request.address, request.model, (record,), request.score_words) for record in request.records]
    return Answers.concatenate([_build_cached_fake_rows(one) for one in each])


@lru_cache(maxsize=1 << 14)
def _build_cached_fake_rows(request: _FakeRequest) -> Answers:
    """The rows of one record, which may be scored again together with others."""
    return _build_fake_rows(request.model, request.records[0], request.score_words)


def _build_fake_rows(
    model: Model, record: Record, score_words: Callable[[Record, list[str]], FakeTokenScores]
) -> Answers:
    """The rows of one record as a fake answers: each word once or, masked, once per pattern that hides it."""
    labelled = model.kind == "classifier"
    spans = [(0, 0)] if labelled else [match.span() for match in _WORD.finditer(record.scored_text)]
    words = [str(record.label)] if labelled else [record.scored_text[begin:end] for begin, end in spans]
    pattern, position = _choose_fake_positions(model, record, len(words))
    numbers = score_words(record, words)
    real = np.float64 if model.question.precision == "float64" else np.float32
    spans_by_row = np.array(spans, dtype=np.int32).reshape(-1, 2)[position]
    return Answers(
        records=(record.digest,),
        offsets=np.array([0, len(position)], dtype=np.int64),
        pattern=pattern,
        position=position,
        start=spans_by_row[:, 0],
        end=spans_by_row[:, 1],
        known=np.ones(len(position), dtype=np.bool_),
        rank=numbers.rank[position],
        logprob=numbers.logprob[position].astype(real),
        entropy=numbers.entropy[position].astype(real),
        logprob_std=numbers.logprob_std[position].astype(real),
        logits=numbers.logits.astype(real) if labelled and numbers.logits is not None else None,
    )


def _choose_fake_positions(model: Model, record: Record, words: int) -> tuple[Integers, Integers]:
    """Pattern and position of each row that a fake answers."""
    if model.kind != "masked":
        return np.zeros(words, dtype=np.int32), np.arange(words, dtype=np.int32)
    question = model.question
    every = np.tile(np.arange(words), (question.patterns, 1))
    shuffled = stream(question.mask_seed, record.digest).permuted(every, axis=1)
    hidden = np.sort(shuffled[:, : math.ceil(question.masked * words)], axis=1)
    pattern = np.repeat(np.arange(question.patterns), hidden.shape[1])
    return pattern.astype(np.int32), hidden.reshape(-1).astype(np.int32)


@cache
def _compute_ease(word: str) -> float:
    """How easy a word is for fakes to predict, in logits between -7 and 1: its own, the same for every fake."""
    return 1 - 8 * int(digest(word), 16) / 2**128
