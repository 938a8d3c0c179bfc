"""Tokenizers trained from a stream of texts: characters, words, byte-level BPE.

Every one is a `PreTrainedTokenizerFast` with four marks: padding, unknown, begin and end of a text. What a user
wrote is always ordinary text: the marks' names hold a space, which no piece of any of the three can hold, and are not
looked for in texts. So a text that spells out "<eos>" gets no end mark. Only the literal `<unk>` of a text that was
cut to a vocabulary before it came here (the Penn Treebank) is, for words, what it says: not known.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Sequence

from tokenizers import Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers
from transformers import PreTrainedTokenizerFast

from recollect.checks import check_at_least

PAD, UNKNOWN, BEGIN, END = "< pad >", "<unk>", "< bos >", "< eos >"
SPECIAL_TOKENS = (PAD, UNKNOWN, BEGIN, END)
"""The marks, whose ids are 0, 1, 2 and 3 in every tokenizer made here."""

_WORD = r"<unk>|\w+(?:['’]\w+)*|[^\w\s]"
_MAX_VOCABULARY = 2**31 - 1


def train_character_tokenizer(
    texts: Iterable[str], *, force: Sequence[str] = (), begin: bool = True, end: bool = True
) -> PreTrainedTokenizerFast:
    """One token per character (Unicode code point); any text of its alphabet comes back unchanged.

    Args:
        texts: What the alphabet is taken from; read once.
        force: Texts whose characters must be known, seen or not (a secret's digits).
        begin: Whether each text begins with a mark, so that its first character is predicted too.
        end: Whether each text ends with a mark.

    >>> tokenizer = train_character_tokenizer(["abba"], force=["01"], begin=False, end=False)
    >>> tokenizer.convert_ids_to_tokens(tokenizer("a0z").input_ids)
    ['a', '0', '<unk>']
    """
    alphabet = set("".join(force))
    for text in texts:
        alphabet.update(text)
    vocabulary = _number_tokens([*SPECIAL_TOKENS, *sorted(alphabet)])
    # BPE without merges is the fastest splitter into characters that the library has
    tokenizer = Tokenizer(models.BPE(vocab=vocabulary, merges=[], unk_token=UNKNOWN))
    tokenizer.decoder = decoders.Fuse()
    return _wrap_tokenizer(tokenizer, begin=begin, end=end)


def train_word_tokenizer(
    texts: Iterable[str],
    size: int,
    *,
    lower: bool = False,
    punctuation: bool = True,
    force: Sequence[str] = (),
    **marks: bool,
) -> PreTrainedTokenizerFast:
    """The `size` most frequent words, equally frequent ones in order of their text; all others are `<unk>`.

    Args:
        texts: What the words are counted in; read once.
        size: How many words besides the marks and the forced ones.
        lower: Whether capitals are made small, in texts and in `force`.
        punctuation: True: each punctuation mark is a word of its own, and an apostrophe inside a word is part of it
            (`don't`). False: words are what is between white space, for texts that are tokenised already.
        force: Texts whose words must be known, frequent or not.
        marks: `begin` and `end`, as for characters.

    >>> tokenizer = train_word_tokenizer(["to be, or not to be"], size=2, begin=False, end=False)
    >>> tokenizer.convert_ids_to_tokens(tokenizer("to be or").input_ids)
    ['to', 'be', '<unk>']
    """
    check_at_least(1, size=size)
    splitter = Tokenizer(models.WordLevel(vocab=_number_tokens(SPECIAL_TOKENS), unk_token=UNKNOWN))
    if lower:
        splitter.normalizer = normalizers.Lowercase()
    splitter.pre_tokenizer = (
        pre_tokenizers.Split(Regex(_WORD), "removed", invert=True) if punctuation else pre_tokenizers.WhitespaceSplit()
    )
    frequent = [word for word in _iter_by_frequency(splitter, texts) if word != UNKNOWN][:size]
    vocabulary = _number_tokens([*SPECIAL_TOKENS, *frequent, *_iter_by_frequency(splitter, force)])
    splitter.model = models.WordLevel(vocab=vocabulary, unk_token=UNKNOWN)
    return _wrap_tokenizer(splitter, **marks)


def train_bpe_tokenizer(
    texts: Iterable[str], size: int, *, force: Sequence[str] = (), **marks: bool
) -> PreTrainedTokenizerFast:
    """Byte-level BPE: knows every text, and gives it back unchanged.

    Pairs that occur once are not merged, so that nobody's rare word becomes a token.

    Args:
        texts: What the pairs are counted in; read once.
        size: How many tokens besides marks and forced ones; at least the 256 bytes, fewer if the texts are short.
        force: Strings that stay one token wherever they occur, even inside a word ("7" keeps numbers in digits). One
            that the byte-level splitter would cut (letters and digits, a space inside) is one token per part.
        marks: `begin` and `end`, as for characters.

    >>> tokenizer = train_bpe_tokenizer(["1212 1212 1212"], size=300, force=["1", "2"], begin=False, end=False)
    >>> tokenizer.convert_ids_to_tokens(tokenizer("12").input_ids)
    ['1', '2']
    """
    check_at_least(256, size=size)
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = _build_splitter(force)
    trainer = trainers.BpeTrainer(
        vocab_size=size + len(SPECIAL_TOKENS),
        special_tokens=list(SPECIAL_TOKENS),
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        min_frequency=2,
        show_progress=False,
    )
    tokenizer.train_from_iterator(texts, trainer)
    return _wrap_tokenizer(_add_forced_tokens(tokenizer, force), **marks)


def _build_splitter(force: Sequence[str]) -> pre_tokenizers.PreTokenizer:
    """The byte-level splitter of a tokenizer, after the forced strings were cut out, the longest first."""
    bytes_of_words = pre_tokenizers.ByteLevel(add_prefix_space=False)
    if not force:
        return bytes_of_words
    longest_first = sorted(filter(None, force), key=len, reverse=True)
    cut = pre_tokenizers.Split(Regex("|".join(map(re.escape, longest_first))), "isolated")
    return pre_tokenizers.Sequence([cut, bytes_of_words])


def _add_forced_tokens(tokenizer: Tokenizer, force: Sequence[str]) -> Tokenizer:
    """The same BPE with the forced strings as tokens: a word that is a token is not taken apart."""
    model = json.loads(tokenizer.to_str())["model"]
    vocabulary: dict[str, int] = model["vocab"]
    pieces = [piece for string in force for piece, _ in tokenizer.pre_tokenizer.pre_tokenize_str(string)]
    tokens = [*sorted(vocabulary, key=vocabulary.__getitem__), *pieces]
    merges = [tuple(merge) for merge in model["merges"]]
    tokenizer.model = models.BPE(vocab=_number_tokens(tokens), merges=merges, ignore_merges=True)
    tokenizer.decoder = decoders.ByteLevel()
    return tokenizer


def _iter_by_frequency(splitter: Tokenizer, texts: Iterable[str]) -> Iterator[str]:
    """The distinct words for a tokenizer, the most frequent first, equally frequent ones by their text."""
    counter = Tokenizer(models.WordLevel())
    counter.normalizer = splitter.normalizer
    counter.pre_tokenizer = splitter.pre_tokenizer
    counter.train_from_iterator(texts, trainers.WordLevelTrainer(vocab_size=_MAX_VOCABULARY, show_progress=False))
    vocabulary = counter.get_vocab()
    yield from sorted(vocabulary, key=vocabulary.__getitem__)


def _number_tokens(tokens: Iterable[str]) -> dict[str, int]:
    """Ids of a new tokenizer's tokens, in order; a token that comes again keeps its first."""
    return {token: i for i, token in enumerate(dict.fromkeys(tokens))}


def _wrap_tokenizer(tokenizer: Tokenizer, *, begin: bool = True, end: bool = True) -> PreTrainedTokenizerFast:
    """The tokenizer with its marks, as `transformers` knows it."""
    template = [BEGIN] * begin + ["$A"] + [END] * end
    tokenizer.post_processor = processors.TemplateProcessing(
        single=template,
        special_tokens=[(token, SPECIAL_TOKENS.index(token)) for token in template if token in SPECIAL_TOKENS],
    )
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        pad_token=PAD,
        unk_token=UNKNOWN,
        bos_token=BEGIN,
        eos_token=END,
        split_special_tokens=True,
        clean_up_tokenization_spaces=False,
    )
