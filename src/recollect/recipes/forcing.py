"""Vocabularies that must know certain symbols: those of planted secrets, or those of a whole corpus."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from recollect.corpora.canaries.formats import parse_format
from recollect.corpora.canaries.manifest import Canaries
from recollect.corpora.corpus import Corpus
from recollect.recipes.building import build_tokenizer
from recollect.recipes.preparing import texts_of
from recollect.recipes.recipe import Recipe, Tokenizer
from recollect.recipes.tokenizers import MARKS


def with_canaries(recipe: Recipe, canaries: Canaries) -> Recipe:
    """The recipe with a vocabulary that can spell every filling of the canaries' formats.

    Characters: all that a format can hold. Words: the known text, word lists and choices, and the secrets and controls
    themselves; other numbers, which are words that nobody wrote, stay unknown. Byte pairs spell everything anyway, and
    a checkpoint keeps the vocabulary it has: both recipes stay as they are.
    """
    settings = _own_vocabulary(recipe)
    return recipe if settings is None else _forcing(recipe, settings, _written(canaries))


def with_whole_vocabulary(recipe: Recipe, corpus: Corpus) -> Recipe:
    """The recipe with the vocabulary that it would make of this corpus, whichever part of it a model is trained on.

    Models of parts can then be compared symbol by symbol. Byte pairs and checkpoints: as above.
    """
    settings = _own_vocabulary(recipe)
    if settings is None:
        return recipe
    symbols = [symbol for symbol in build_tokenizer(recipe, texts_of(corpus)).get_vocab() if symbol not in MARKS]
    # of its own part a model then adds the most frequent word only, which the whole corpus has too
    return _forcing(recipe, settings.model_copy(update={"size": 1}), sorted(symbols))


def _own_vocabulary(recipe: Recipe) -> Tokenizer | None:
    """The settings of a tokenizer that is made from texts and may meet symbols that it does not know."""
    settings = recipe.tokenizer
    return None if settings is None or settings.kind == "bpe" or recipe.model.start is not None else settings


def _written(canaries: Canaries) -> Iterator[str]:
    """All that the formats, the secrets and the controls are written with."""
    for format in dict.fromkeys(canary.format for canary in canaries.canaries):
        for unit in parse_format(format).units:
            yield from unit.alternatives
    for canary in canaries.canaries:
        yield canary.text
        yield canary.source or ""


def _forcing(recipe: Recipe, settings: Tokenizer, texts: Iterable[str]) -> Recipe:
    """The recipe with the symbols of these texts in its vocabulary, besides those that it forces already."""
    if settings.kind == "characters":
        forced = "".join(sorted(set(settings.forced).union(*texts)))
    else:
        forced = " ".join(dict.fromkeys([*settings.forced.split(), *(word for text in texts for word in text.split())]))
    return recipe.model_copy(update={"tokenizer": settings.model_copy(update={"forced": forced})})
