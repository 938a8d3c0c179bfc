"""Vocabularies that must know certain tokens: those of planted secrets, or those of a whole corpus."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from recollect.corpora.canaries.formats import parse_format
from recollect.corpora.canaries.manifest import Canaries
from recollect.corpora.corpus import Corpus
from recollect.recipes.data.sequence_builder import iter_sequence_texts
from recollect.recipes.data.tokenizers import SPECIAL_TOKENS
from recollect.recipes.model_builder import build_tokenizer
from recollect.recipes.recipe import Recipe, Tokenizer


def add_canaries_to_vocabulary(recipe: Recipe, canaries: Canaries) -> Recipe:
    """The recipe with a vocabulary that can spell every filling of the canaries' formats.

    Characters: all that a format can hold. Words: the known text, word lists and choices, and the secrets and controls
    themselves; other numbers, which are words that nobody wrote, stay unknown. Byte pairs spell everything anyway, and
    a checkpoint keeps the vocabulary it has: both recipes stay as they are.
    """
    settings = _get_trained_tokenizer(recipe)
    return recipe if settings is None else _force_into_vocabulary(recipe, settings, _iter_canary_texts(canaries))


def add_corpus_to_vocabulary(recipe: Recipe, corpus: Corpus) -> Recipe:
    """The recipe with the vocabulary that it would make of this corpus, whichever part of it a model is trained on.

    Models of parts can then be compared token by token. Byte pairs and checkpoints: as above.
    """
    settings = _get_trained_tokenizer(recipe)
    if settings is None:
        return recipe
    tokens = [
        token
        for token in build_tokenizer(recipe, iter_sequence_texts(corpus)).get_vocab()
        if token not in SPECIAL_TOKENS
    ]
    # of its own part a model then adds the most frequent word only, which the whole corpus has too
    return _force_into_vocabulary(recipe, settings.model_copy(update={"size": 1}), sorted(tokens))


def _get_trained_tokenizer(recipe: Recipe) -> Tokenizer | None:
    """The settings of a tokenizer whose vocabulary is made from texts and may lack tokens."""
    settings = recipe.tokenizer
    return None if settings is None or settings.kind == "bpe" or recipe.model.start is not None else settings


def _iter_canary_texts(canaries: Canaries) -> Iterator[str]:
    """All texts of canaries that the vocabulary must cover: formats, secrets and controls."""
    for format in dict.fromkeys(canary.format for canary in canaries.canaries):
        for unit in parse_format(format).units:
            yield from unit.alternatives
    for canary in canaries.canaries:
        yield canary.text
        yield canary.source or ""


def _force_into_vocabulary(recipe: Recipe, settings: Tokenizer, texts: Iterable[str]) -> Recipe:
    """The recipe with the tokens of these texts in its vocabulary, besides those that it forces already."""
    if settings.kind == "characters":
        forced = "".join(sorted(set(settings.forced).union(*texts)))
    else:
        forced = " ".join(dict.fromkeys([*settings.forced.split(), *(word for text in texts for word in text.split())]))
    return recipe.model_copy(update={"tokenizer": settings.model_copy(update={"forced": forced})})
