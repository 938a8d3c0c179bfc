"""Texts as tokens: places in the text, what is around it, and what a text cannot smuggle in."""

from __future__ import annotations

import numpy as np
import pytest
from tokenizers import Tokenizer, models, pre_tokenizers, processors
from transformers import PreTrainedTokenizerFast

from recollect.models.tokens.tokenization import EncodedText, TextEncoder
from recollect.testing.refusals import refused
from recollect.testing.tiny import TEXTS, build_tiny_tokenizer


def word_tokenizer(*words: str, around: bool = True) -> PreTrainedTokenizerFast:
    marks = ["[PAD]", "[UNK]", "[CLS]", "[SEP]"]
    raw = Tokenizer(models.WordLevel({word: i for i, word in enumerate([*marks, *words])}, unk_token="[UNK]"))  # noqa: S106
    raw.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    if around:
        raw.post_processor = processors.TemplateProcessing(
            single="[CLS] $A [SEP]", special_tokens=[("[CLS]", 2), ("[SEP]", 3)]
        )
    names = ("pad_token", "unk_token", "cls_token", "sep_token")
    return PreTrainedTokenizerFast(tokenizer_object=raw, **dict(zip(names, marks, strict=True)))


@pytest.mark.parametrize(("before", "after"), [(None, None), ("<s>", None), (None, "</s>"), ("[CLS]", "[SEP]")])
def test_what_stands_around_a_text_is_distinguished_from_it(before, after):
    tokenizer = build_tiny_tokenizer(before=before, after=after)
    encoder = TextEncoder(tokenizer)
    assert tokenizer.convert_ids_to_tokens(encoder.prefix_ids) == ([before] if before else [])
    assert tokenizer.convert_ids_to_tokens(encoder.suffix_ids) == ([after] if after else [])
    assert encoder.special_token_count == bool(before) + bool(after)
    for text, found in zip(TEXTS, encoder(TEXTS), strict=True):
        assert [*encoder.prefix_ids, *found.ids, *encoder.suffix_ids] == tokenizer(text)["input_ids"]


@pytest.mark.parametrize("text", TEXTS)
def test_tokens_lie_in_the_text_one_after_the_other_and_cover_it(text):
    (found,) = TextEncoder(build_tiny_tokenizer())([text])
    assert (found.start <= found.end).all()
    assert (np.diff(found.start) >= 0).all()
    assert {*range(len(text))} == {place for a, b in zip(found.start, found.end, strict=True) for place in range(a, b)}


@pytest.mark.parametrize("written", ["[SEP]", "<s>", "<mask>", "<pad>", "</s>", "[CLS][SEP]"])
def test_a_written_out_special_token_is_text(written):
    encoder = TextEncoder(build_tiny_tokenizer(before="[CLS]", after="[SEP]"))
    (found,) = encoder([f"a {written} b"])
    assert found.known.all()
    assert found.end[-1] == len(f"a {written} b")


def test_what_the_vocabulary_lacks_is_unknown():
    (found,) = TextEncoder(word_tokenizer("red", "green"))(["red blue green"])
    assert found.known.tolist() == [True, False, True]
    assert list(zip(found.start.tolist(), found.end.tolist(), strict=True)) == [(0, 3), (4, 8), (9, 14)]


def test_a_word_that_is_spelt_like_a_special_token_of_the_vocabulary_is_unknown():
    (found,) = TextEncoder(word_tokenizer("red"))(["red [SEP] red"])
    assert found.known.tolist() == [True, False, True]


def test_texts_without_tokens_have_none_and_are_not_lost():
    encoder = TextEncoder(build_tiny_tokenizer(before="<s>", after="</s>"))
    assert [len(text) for text in encoder(["", "a", ""])] == [0, 1, 0]
    assert encoder([]) == []


def test_a_vocabulary_without_the_letter_a_is_probed_otherwise():
    raw = Tokenizer(models.BPE(vocab={"<s>": 0, "</s>": 1, "7": 2}, merges=[]))
    raw.post_processor = processors.TemplateProcessing(single="<s> $A </s>", special_tokens=[("<s>", 0), ("</s>", 1)])
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=raw, bos_token="<s>", eos_token="</s>")  # noqa: S106
    encoder = TextEncoder(tokenizer)
    assert (encoder.prefix_ids, encoder.suffix_ids) == ([0], [1])
    assert encoder(["77"])[0].ids.tolist() == [2, 2]


def test_a_tokenizer_that_knows_nothing_is_refused():
    raw = Tokenizer(models.BPE(vocab={"<s>": 0}, merges=[]))
    with refused("empty_vocabulary"):
        TextEncoder(PreTrainedTokenizerFast(tokenizer_object=raw, bos_token="<s>"))  # noqa: S106


def test_texts_joined_keep_their_order_and_types():
    encoder = TextEncoder(build_tiny_tokenizer())
    parts = encoder(TEXTS)
    joined = EncodedText.concatenate(parts)
    assert joined.ids.tolist() == [symbol for part in parts for symbol in part.ids.tolist()]
    none = EncodedText.concatenate([])
    assert (len(none), none.ids.dtype, none.start.dtype, none.known.dtype) == (0, np.int64, np.int32, np.bool_)
