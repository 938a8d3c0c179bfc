"""A check before training, ours or another's: does each planted secret survive tokenizer, truncation and packing?"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np

from recollect.corpora.canaries.formats import parse_format
from recollect.corpora.canaries.manifest import Canaries, Canary
from recollect.corpora.corpus import Corpus
from recollect.corpora.record import Record
from recollect.errors import CorpusError, PlanError
from recollect.models.tokens.record_encoder import TokenSequence
from recollect.recipes.data.sequence_builder import SequenceBuilder, get_pair, iter_sequence_texts
from recollect.recipes.data.sequence_layouts import CausalSequences, MaskedSequences
from recollect.recipes.data.sequences import IGNORED
from recollect.recipes.data.vocabulary import add_canaries_to_vocabulary
from recollect.recipes.model_builder import DataFacts, build_tokenizer
from recollect.recipes.recipe import Recipe
from recollect.recipes.training.job import Job

Fate = Literal["whole", "carried", "cut", "lost"]
"""Of one copy. `kept_whole`: in one training sequence. `kept_by_state`: a border of sequences runs through it, but
the model's
state is carried across the border, so it is still trained on. `split`: no sequence shows it whole. `lost`: some of it
is never trained on, because it was cut off or held out for validation."""


@dataclass(frozen=True, kw_only=True)
class Survival:
    """What becomes of one planted secret in training."""

    secret: str
    """Its id."""
    planted: int
    unknown_tokens: int
    """How many of its tokens are outside the vocabulary: they are not trained on."""
    kept_whole: int
    kept_by_state: int
    split: int
    lost: int

    @property
    def verdict(self) -> Literal["survives", "in part", "lost"]:
        """Whether all planted copies, some, or none can be trained on."""
        kept = 0 if self.unknown_tokens else self.kept_whole + self.kept_by_state
        return "lost" if not kept else "survives" if kept == self.planted else "in part"


@dataclass(frozen=True, kw_only=True)
class SurvivalCheck:
    """What becomes of all secrets in training."""

    secrets: tuple[Survival, ...]
    unknown_controls: tuple[str, ...]
    """Controls that the vocabulary cannot spell: the model cannot be used about them."""


def check_canary_survival(recipe: Recipe, corpus: Corpus, canaries: Canaries, *, seed: int = 0) -> SurvivalCheck:
    """What the recipe would make of each planted secret, found by preparing the corpus as training would.

    The tokens of the canaries are forced into the vocabulary, as `add_canaries_to_vocabulary` does.

    Args:
        recipe: How the model would be trained.
        corpus: The planted corpus.
        canaries: What was planted in it.
        seed: Of the training.

    Raises:
        CorpusError: The corpus does not hold these canaries.
        PlanError: The recipe trains a classifier, which predicts no text.
    """
    if recipe.task == "classifier":
        raise PlanError(
            f"Recipe {recipe.name!r} trains a classifier.",
            do="Choose a recipe that predicts texts.",
            code="recipe_of_a_classifier",
        )
    chosen = add_canaries_to_vocabulary(recipe, canaries)
    job = Job.of(chosen, corpus, None, seed=seed)
    tokenizer = build_tokenizer(chosen, iter_sequence_texts(job.corpus))
    holding = {record: canary for canary in canaries.planted for record in canary.records}
    _refuse_other_corpus(corpus, holding)
    preparer = SequenceBuilder(recipe=chosen, tokenizer=tokenizer, data=DataFacts(), scale=None)
    found = _iter_pair_fates if chosen.task == "seq2seq" else _iter_text_fates
    fates: dict[str, Counter[Fate]] = {canary.id: Counter() for canary in canaries.planted}
    for canary, fate in found(preparer, job.corpus, holding):
        fates[canary.id][fate] += 1
    return SurvivalCheck(
        secrets=tuple(_build_survival(canary, fates[canary.id], tokenizer) for canary in canaries.planted),
        unknown_controls=tuple(
            control.id for control in canaries.controls if _count_unknown_canary_tokens(tokenizer, control)
        ),
    )


def _refuse_other_corpus(corpus: Corpus, holding: dict[str, Canary]) -> None:
    """Refuse canaries that were planted into something else."""
    found_ids = {
        record.id for record in corpus if record.id in holding and holding[record.id].text in record.scored_text
    }
    if lost := [record for record in holding if record not in found_ids]:
        raise CorpusError(
            f"{corpus.name} does not hold {len(lost)} of the {len(holding)} plantings, such as record {lost[0]!r}.",
            do="Give the planted corpus and the .canaries.json that was written beside it.",
            code="canaries_of_another_corpus",
        )


def _build_survival(canary: Canary, fates: Counter[Fate], tokenizer: Any) -> Survival:
    """What was counted of one secret; copies that did not come by were held out."""
    held_out_count = canary.planted - fates.total()
    return Survival(
        secret=canary.id,
        planted=canary.planted,
        unknown_tokens=_count_unknown_canary_tokens(tokenizer, canary),
        kept_whole=fates["whole"],
        kept_by_state=fates["carried"],
        split=fates["cut"],
        lost=fates["lost"] + held_out_count,
    )


def _count_unknown_canary_tokens(tokenizer: Any, canary: Canary) -> int:
    """How many tokens of the secret the vocabulary does not know."""
    texts = [text for text in (canary.text, canary.source) if text]
    found = tokenizer(texts, add_special_tokens=False, split_special_tokens=True)["input_ids"]
    return sum(ids.count(tokenizer.unk_token_id) for ids in found)


@dataclass(frozen=True)
class _SecretSpan:
    """Which tokens of a text are a secret."""

    begin: int
    """Where its known text begins."""
    secret: int
    """Where its first slot begins."""
    end: int

    @classmethod
    def of(cls, tokenizer: Any, text: str, filled: str, known: int) -> _SecretSpan:
        """The tokens that a filled-in format has in a text, of which the first characters are known."""
        start = text.index(filled)
        offsets = np.array(
            tokenizer(text, add_special_tokens=False, split_special_tokens=True, return_offsets_mapping=True)[
                "offset_mapping"
            ]
        ).reshape(-1, 2)
        # tokens that straddle a border belong to what is inside
        begin, secret = (int((offsets[:, 1] <= position).sum()) for position in (start, start + known))
        return cls(begin, secret, int((offsets[:, 0] < start + len(filled)).sum()))

    @classmethod
    def of_reply(cls, sequence: TokenSequence, start: int, size: int, known: int) -> _SecretSpan | None:
        """The tokens of a secret in a completion, or in what an assistant says; None if some are not trained on."""
        places, ends, starts = np.flatnonzero(sequence.scored), sequence.text.end, sequence.text.start
        inside = (ends > start) & (starts < start + size)
        covered = np.zeros(size, np.bool_)
        for first, last in zip(starts[inside].tolist(), ends[inside].tolist(), strict=True):
            covered[max(first - start, 0) : last - start] = True
        if not covered.all():
            return None
        begin, secret = (int(places[ends > position][0]) for position in (start, start + known))
        return cls(begin, secret, int(places[inside][-1]) + 1)

    def shift(self, positions: int) -> _SecretSpan:
        """The same tokens where the text is among others."""
        return _SecretSpan(self.begin + positions, self.secret + positions, self.end + positions)


def _iter_holding_records(corpus: Iterable[Record], holding: dict[str, Canary]) -> Iterator[tuple[int, Record, Canary]]:
    """The records that hold a canary, with their numbers."""
    return ((i, record, holding[record.id]) for i, record in enumerate(corpus) if record.id in holding)


def _iter_pair_fates(
    preparer: SequenceBuilder, corpus: Corpus, holding: dict[str, Canary]
) -> Iterator[tuple[Canary, Fate]]:
    """The fate of each canary's copies in pairs: what is too long is cut off on either side."""
    max_length = preparer.recipe.sequences.length
    for _, record, canary in _iter_holding_records(corpus, holding):
        source, target = get_pair(record)
        shown = _SecretSpan.of(preparer.tokenizer, source, canary.source or "", 0)
        predicted = _SecretSpan.of(preparer.tokenizer, target, canary.text, 0)
        yield canary, "lost" if predicted.end > max_length else "cut" if shown.end > max_length else "whole"


def _iter_text_fates(
    preparer: SequenceBuilder, corpus: Corpus, holding: dict[str, Canary]
) -> Iterator[tuple[Canary, Fate]]:
    """The fate of each canary's copies in texts, as they are laid out for training."""
    tokens = preparer.tokenise(corpus)
    recipe = preparer.recipe
    laid = _SequenceIndex(
        preparer.lay_out(tokens, np.zeros(len(tokens), dtype=np.int32)),
        rows=recipe.training.batch_size if recipe.sequences.layout == "stream" else None,
    )
    before = len(preparer.layout_special_tokens.before)
    for i, record, canary in _iter_holding_records(corpus, holding):
        known = len(parse_format(canary.format).known_prefix)
        if record.text is None:
            (sequence,) = preparer.reply_encoder([record], training=True)
            reply = _SecretSpan.of_reply(sequence, record.scored_text.index(canary.text), len(canary.text), known)
            yield canary, "lost" if reply is None else laid.get_fate(reply.shift(int(tokens.offsets[i])))
            continue
        span = _SecretSpan.of(preparer.tokenizer, record.scored_text, canary.text, known)
        yield canary, laid.get_fate(span.shift(int(tokens.offsets[i]) + before))


class _SequenceIndex:
    """Training sequences in the order of the text, to look up which of them predicts a token."""

    def __init__(self, sequences: CausalSequences | MaskedSequences, rows: int | None) -> None:
        self._order = np.argsort(sequences.starts, kind="stable")
        self._starts = sequences.starts[self._order]
        # who reads from left to right predicts all tokens of a sequence but its first
        self._shift = 0 if isinstance(sequences, MaskedSequences) else 1
        self._ends = self._starts + sequences.lengths[self._order] + self._shift
        self._rows = rows

    def get_fate(self, span: _SecretSpan) -> Fate:
        """What becomes of the tokens of a canary."""
        positions = np.arange(span.secret, span.end)
        at = np.searchsorted(self._starts, positions - self._shift, side="right") - 1
        if not len(at) or (at < 0).any() or (positions >= self._ends[at]).any():
            return "lost"
        first = np.searchsorted(self._starts, span.begin, side="right") - 1
        if (at == at[0]).all() and self._starts[at[0]] <= span.begin:
            return "whole"
        streams = set() if self._rows is None else set((self._order[[first, *at]] % self._rows).tolist())
        return "carried" if len(streams) == 1 else "cut"


BATCH = 16
"""Examples that are collated at once."""


@dataclass(frozen=True, kw_only=True)
class TrainedSecret:
    """What becomes of one planted secret."""

    secret: str
    """Its id."""
    planted: int
    trained: int
    """Of how many copies the loss is computed on all that is secret."""
    read: int
    """How many whole copies the model reads, trained on or not."""


def check_trained_secrets(
    canaries: Canaries, dataset: Any, collate: Callable[[list[Any]], Any], tokenizer: Any
) -> list[TrainedSecret]:
    """Which canaries survive chat template, truncation, packing and label mask, from batches as they are made.

    Args:
        canaries: What was planted.
        dataset: The prepared training set of a Trainer.
        collate: What makes a batch of its examples, with `input_ids` and `labels`.
        tokenizer: Turns tokens into text again.

    Raises:
        CorpusError: A secret would never be trained on.
        PlanError: The training set has no length, so that it cannot be looked through.
    """
    found = [TrainedSecret(secret=each.id, planted=each.planted, trained=0, read=0) for each in canaries.planted]
    known = [len(parse_format(each.format).known_prefix) for each in canaries.planted]
    for ids, labels in _iter_checked_examples(dataset, collate):
        row = _SecretRow(ids, labels, tokenizer)
        for i, canary in enumerate(canaries.planted):
            if canary.text in row.text:
                places = [match.start() for match in re.finditer(re.escape(canary.text), row.text)]
                learnt = sum(row.is_learnt(at + known[i], at + len(canary.text)) for at in places)
                found[i] = replace(found[i], trained=found[i].trained + learnt, read=found[i].read + len(places))
    lost = [each for each in found if not each.trained]
    if lost:
        raise _build_lost_secret_error(lost, len(found))
    return found


def _iter_checked_examples(
    dataset: Any, collate: Callable[[list[Any]], Any]
) -> Iterator[tuple[list[int], list[int] | None]]:
    """The tokens and labels of every example that is checked for canaries, as a batch has them."""
    if not hasattr(dataset, "__len__") or not hasattr(dataset, "__getitem__"):
        raise PlanError(
            "The training set is a stream, so whether planted secrets survive its preparation cannot be checked.",
            do="Give a data set with a length, or follow without canaries.",
            code="stream_of_examples",
        )
    for begin in range(0, len(dataset), BATCH):
        batch = collate([dataset[i] for i in range(begin, min(begin + BATCH, len(dataset)))])
        labels = batch.get("labels")
        for i, ids in enumerate(batch["input_ids"].tolist()):
            yield ids, None if labels is None else labels[i].tolist()


class _SecretRow:
    """One row of a batch as text."""

    def __init__(self, ids: list[int], labels: list[int] | None, tokenizer: Any) -> None:
        self._ids, self._labels, self._tokenizer = ids, labels, tokenizer
        self.text = self._spell(len(ids))

    def is_learnt(self, begin: int, end: int) -> bool:
        """Whether the loss is computed on all tokens of these characters; the first of a row is never predicted."""
        first = bisect_right(range(len(self._ids)), begin, key=lambda size: len(self._spell(size))) - 1
        last = bisect_left(range(len(self._ids) + 1), end, key=lambda size: len(self._spell(size)))
        labels = self._ids if self._labels is None else self._labels
        return first > 0 and all(label != IGNORED for label in labels[first:last])

    def _spell(self, size: int) -> str:
        """The text of the first so many tokens of a row that may hold a canary."""
        spelled: str = self._tokenizer.decode(self._ids[:size], clean_up_tokenization_spaces=False)
        return spelled


def _build_lost_secret_error(lost: Sequence[TrainedSecret], total: int) -> CorpusError:
    """Which canaries do not survive, where, and what to do."""
    masked = [each for each in lost if each.read]
    shown = ", ".join(each.secret for each in lost[:5]) + (" …" if len(lost) > 5 else "")
    where = (
        f"{len(masked)} of them are read but not trained on: the label mask hides them."
        if masked
        else "They are not whole in the prepared examples: cut off by the length limit, split by packing, or not there."
    )
    return CorpusError(
        f"{len(lost)} of {total} planted secrets would never be trained on ({shown}). {where}",
        do="Raise max_length (or the length to which you cut), plant shorter records or into the assistant's turns, "
        "pack without splitting, or give the manifest of this training set.",
        code="secrets_not_trained_on",
    )
