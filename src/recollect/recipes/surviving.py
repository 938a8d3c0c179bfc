"""A check before training: does each planted secret survive the recipe's tokenizer, truncation and packing?"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from recollect.corpora.canaries.formats import parse_format
from recollect.corpora.canaries.manifest import Canaries, Canary
from recollect.corpora.corpus import Corpus
from recollect.corpora.record import Record
from recollect.errors import CorpusError, PlanError
from recollect.recipes.building import Data, build_tokenizer
from recollect.recipes.forcing import with_canaries
from recollect.recipes.job import Job
from recollect.recipes.layouts import Masked, Running
from recollect.recipes.preparing import Preparer, pair_of, texts_of
from recollect.recipes.recipe import Recipe

Fate = Literal["whole", "carried", "cut", "lost"]
"""Of one copy. `whole`: in one training sequence. `carried`: a border of sequences runs through it, but the model's
state goes on across the border, so it is still learnt. `cut`: no sequence shows it whole. `lost`: some of it is never
trained on, because it was cut off or held out for validation."""


@dataclass(frozen=True, kw_only=True)
class Survival:
    """What becomes of one planted secret in training."""

    secret: str
    """Its id."""
    planted: int
    unknown: int
    """How many of its symbols the vocabulary does not know: what they were is not learnt."""
    whole: int
    carried: int
    cut: int
    lost: int

    @property
    def verdict(self) -> Literal["survives", "in part", "lost"]:
        """Whether all copies that were planted, some, or none can be learnt."""
        learnt = 0 if self.unknown else self.whole + self.carried
        return "lost" if not learnt else "survives" if learnt == self.planted else "in part"


@dataclass(frozen=True, kw_only=True)
class Check:
    """What becomes of all secrets in training."""

    secrets: tuple[Survival, ...]
    unknown_controls: tuple[str, ...]
    """Controls that the vocabulary cannot spell: the model cannot be asked about them."""


def surviving(recipe: Recipe, corpus: Corpus, canaries: Canaries, *, seed: int = 0) -> Check:
    """What the recipe would make of each planted secret, found by preparing the corpus as training would.

    The symbols of the canaries are forced into the vocabulary, as `with_canaries` does.

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
    chosen = with_canaries(recipe, canaries)
    job = Job.of(chosen, corpus, None, seed=seed)
    tokenizer = build_tokenizer(chosen, texts_of(job.corpus))
    holding = {record: canary for canary in canaries.planted for record in canary.records}
    _refuse_others(corpus, holding)
    preparer = Preparer(recipe=chosen, tokenizer=tokenizer, data=Data(), scale=None)
    found = _of_pairs if chosen.task == "seq2seq" else _of_texts
    fates: dict[str, Counter[Fate]] = {canary.id: Counter() for canary in canaries.planted}
    for canary, fate in found(preparer, job.corpus, holding):
        fates[canary.id][fate] += 1
    return Check(
        secrets=tuple(_survival(canary, fates[canary.id], tokenizer) for canary in canaries.planted),
        unknown_controls=tuple(control.id for control in canaries.controls if _unknown(tokenizer, control)),
    )


def _refuse_others(corpus: Corpus, holding: dict[str, Canary]) -> None:
    """Refuse canaries that were planted into something else."""
    there = {record.id for record in corpus if record.id in holding and holding[record.id].text in record.predicted}
    if lost := [record for record in holding if record not in there]:
        raise CorpusError(
            f"{corpus.name} does not hold {len(lost)} of the {len(holding)} plantings, such as record {lost[0]!r}.",
            do="Give the planted corpus and the .canaries.json that was written beside it.",
            code="canaries_of_another_corpus",
        )


def _survival(canary: Canary, fates: Counter[Fate], tokenizer: Any) -> Survival:
    """What was counted of one secret; copies that did not come by were held out."""
    away = canary.planted - fates.total()
    return Survival(
        secret=canary.id,
        planted=canary.planted,
        unknown=_unknown(tokenizer, canary),
        whole=fates["whole"],
        carried=fates["carried"],
        cut=fates["cut"],
        lost=fates["lost"] + away,
    )


def _unknown(tokenizer: Any, canary: Canary) -> int:
    """How many symbols of the secret the vocabulary does not know."""
    texts = [text for text in (canary.text, canary.source) if text]
    found = tokenizer(texts, add_special_tokens=False, split_special_tokens=True)["input_ids"]
    return sum(ids.count(tokenizer.unk_token_id) for ids in found)


@dataclass(frozen=True)
class _Span:
    """Which symbols of a text are a secret."""

    begin: int
    """Where its known text begins."""
    secret: int
    """Where its first slot begins."""
    end: int

    @classmethod
    def of(cls, tokenizer: Any, text: str, filled: str, known: int) -> _Span:
        """The symbols that a filled-in format has in a text, of which the first characters are known."""
        start = text.index(filled)
        offsets = np.array(
            tokenizer(text, add_special_tokens=False, split_special_tokens=True, return_offsets_mapping=True)[
                "offset_mapping"
            ]
        ).reshape(-1, 2)
        # symbols that straddle a border belong to what is inside
        begin, secret = (int((offsets[:, 1] <= place).sum()) for place in (start, start + known))
        return cls(begin, secret, int((offsets[:, 0] < start + len(filled)).sum()))

    def moved(self, places: int) -> _Span:
        """The same symbols where the text stands among others."""
        return _Span(self.begin + places, self.secret + places, self.end + places)


def _held(corpus: Iterable[Record], holding: dict[str, Canary]) -> Iterator[tuple[int, Record, Canary]]:
    """The records that hold a secret, with their numbers."""
    return ((i, record, holding[record.id]) for i, record in enumerate(corpus) if record.id in holding)


def _of_pairs(preparer: Preparer, corpus: Corpus, holding: dict[str, Canary]) -> Iterator[tuple[Canary, Fate]]:
    """Each copy in pairs: what is too long is cut off on either side."""
    most = preparer.recipe.sequences.length
    for _, record, canary in _held(corpus, holding):
        source, target = pair_of(record)
        shown = _Span.of(preparer.tokenizer, source, canary.source or "", 0)
        predicted = _Span.of(preparer.tokenizer, target, canary.text, 0)
        yield canary, "lost" if predicted.end > most else "cut" if shown.end > most else "whole"


def _of_texts(preparer: Preparer, corpus: Corpus, holding: dict[str, Canary]) -> Iterator[tuple[Canary, Fate]]:
    """Each copy in texts, as they are laid out for training."""
    tokens = preparer.tokens(corpus)
    recipe = preparer.recipe
    laid = _Laid(
        preparer.laid_out(tokens, np.zeros(len(tokens), dtype=np.int32)),
        rows=recipe.training.batch_size if recipe.sequences.layout == "stream" else None,
    )
    before = len(preparer.around.before)
    for i, record, canary in _held(corpus, holding):
        span = _Span.of(preparer.tokenizer, record.predicted, canary.text, len(parse_format(canary.format).before))
        yield canary, laid.fate(span.moved(int(tokens.offsets[i]) + before))


class _Laid:
    """Training sequences in the order of the text, to look up which of them predicts a symbol."""

    def __init__(self, sequences: Running | Masked, rows: int | None) -> None:
        self._order = np.argsort(sequences.starts, kind="stable")
        self._starts = sequences.starts[self._order]
        # who reads from left to right predicts all symbols of a sequence but its first
        self._shift = 0 if isinstance(sequences, Masked) else 1
        self._ends = self._starts + sequences.lengths[self._order] + self._shift
        self._rows = rows

    def fate(self, span: _Span) -> Fate:
        """What becomes of these symbols."""
        symbols = np.arange(span.secret, span.end)
        at = np.searchsorted(self._starts, symbols - self._shift, side="right") - 1
        if not len(at) or (at < 0).any() or (symbols >= self._ends[at]).any():
            return "lost"
        first = np.searchsorted(self._starts, span.begin, side="right") - 1
        if (at == at[0]).all() and self._starts[at[0]] <= span.begin:
            return "whole"
        streams = set() if self._rows is None else set((self._order[[first, *at]] % self._rows).tolist())
        return "carried" if len(streams) == 1 else "cut"
