"""Tokenizers: characters, words, byte-level BPE."""

import random
from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from transformers import AutoTokenizer

from recollect.recipes.data.tokenizers import (
    SPECIAL_TOKENS,
    train_bpe_tokenizer,
    train_character_tokenizer,
    train_word_tokenizer,
)
from recollect.testing.refusals import refused

TEXTS = [
    "The cat sat on the mat.",
    "the dog, the cat\nand the <unk> dog don't",
    "naïve Ünïcode 日本語 😀 <eos> < eos > <pad>",
    "the number is 281265017",
]
MAKERS = {
    "characters": train_character_tokenizer,
    "words": lambda texts, **options: train_word_tokenizer(texts, 1000, **options),
    "bpe": lambda texts, **options: train_bpe_tokenizer(texts, 300, **options),
}
every_kind = pytest.mark.parametrize("kind", MAKERS)


def pieces(tokenizer, text):
    return tokenizer.convert_ids_to_tokens(tokenizer(text, add_special_tokens=False).input_ids)


@every_kind
def test_marks_have_the_first_ids_and_stand_around_each_text(kind):
    tokenizer = MAKERS[kind](TEXTS)
    assert tokenizer.convert_ids_to_tokens([0, 1, 2, 3]) == list(SPECIAL_TOKENS)
    assert (tokenizer.pad_token_id, tokenizer.unk_token_id) == (0, 1)
    assert (tokenizer.bos_token_id, tokenizer.eos_token_id) == (2, 3)
    ids = tokenizer("the cat").input_ids
    assert (ids[0], ids[-1]) == (2, 3)
    bare = MAKERS[kind](TEXTS, begin=False, end=False)
    assert bare("the cat").input_ids == ids[1:-1]


@every_kind
@pytest.mark.parametrize("text", ["<eos>", "a <bos> b", "< eos >", "< pad >< bos >", "x< bos >y", "<s></s>[MASK]"])
def test_a_mark_spelt_out_in_a_text_is_ordinary_text(kind, text, tmp_path):
    MAKERS[kind]([*TEXTS, text]).save_pretrained(tmp_path)
    loaded = AutoTokenizer.from_pretrained(tmp_path)
    assert not {0, 2, 3} & set(loaded(text, add_special_tokens=False).input_ids)
    assert 1 not in loaded(text, add_special_tokens=False).input_ids


@every_kind
def test_a_saved_tokenizer_comes_back_the_same(kind, tmp_path):
    tokenizer = MAKERS[kind](TEXTS, force=["42"])
    tokenizer.save_pretrained(tmp_path)
    loaded = AutoTokenizer.from_pretrained(tmp_path)
    for text in [*TEXTS, "quite new 42 words"]:
        before, after = (t(text, return_offsets_mapping=True) for t in (tokenizer, loaded))
        assert before.input_ids == after.input_ids
        assert before.offset_mapping == after.offset_mapping
        assert tokenizer.decode(before.input_ids) == loaded.decode(after.input_ids)


@every_kind
def test_order_and_cutting_of_the_stream_do_not_matter(kind):
    texts = [f"{a} {b}" for a in ("ab", "ba", "cab", "dab") for b in ("ab", "xy", "yx", "dab")] * 3
    whole = MAKERS[kind](texts).backend_tokenizer.to_str()
    for seed in range(3):
        shuffled = random.Random(seed).sample(texts, len(texts))
        assert MAKERS[kind](iter(shuffled)).backend_tokenizer.to_str() == whole


@settings(deadline=None, max_examples=50)
@given(st.text(max_size=40))
def test_characters_come_back_unchanged_with_their_places(text):
    tokenizer = train_character_tokenizer([text])
    encoded = tokenizer(text, add_special_tokens=False, return_offsets_mapping=True)
    assert tokenizer.decode(encoded.input_ids) == text
    assert encoded.offset_mapping == [(i, i + 1) for i in range(len(text))]
    assert len(tokenizer) == len(SPECIAL_TOKENS) + len(set(text))


def test_unknown_characters_are_unknown_one_by_one():
    assert pieces(train_character_tokenizer(["ab"], force=["01"]), "a0zz\nb") == [
        "a",
        "0",
        "<unk>",
        "<unk>",
        "<unk>",
        "b",
    ]


def test_words_are_the_most_frequent_and_equal_ones_by_text():
    texts = ["b a c a d <unk> <unk>", "e b a"]
    counts = Counter(word for text in texts for word in text.split() if word != "<unk>")
    expected = sorted(counts, key=lambda word: (-counts[word], word))
    tokenizer = train_word_tokenizer(texts, 4)
    assert tokenizer.convert_ids_to_tokens(range(len(tokenizer))) == [*SPECIAL_TOKENS, *expected[:4]]


def test_a_word_that_was_cut_out_before_is_not_known():
    for punctuation in (True, False):
        tokenizer = train_word_tokenizer(["the <unk> sat"], 10, punctuation=punctuation)
        assert tokenizer("the <unk> sat", add_special_tokens=False).input_ids[1] == tokenizer.unk_token_id


def test_punctuation_stands_alone_unless_the_text_is_tokenised_already():
    text = "Mr. Smith's dog—don't ask!"
    assert pieces(train_word_tokenizer([text], 50), text) == ["Mr", ".", "Smith's", "dog", "—", "don't", "ask", "!"]
    assert pieces(train_word_tokenizer([text], 50, punctuation=False), text) == ["Mr.", "Smith's", "dog—don't", "ask!"]


def test_small_letters_keep_their_places_in_the_text():
    text = "İstanbul IS here"
    encoded = train_word_tokenizer([text], 50, lower=True)(text, add_special_tokens=False, return_offsets_mapping=True)
    assert [text[a:b] for a, b in encoded.offset_mapping] == ["İstanbul", "IS", "here"]


def test_forced_words_are_known_however_rare():
    tokenizer = train_word_tokenizer(["a a a b"], 1, force=["1 2", "Three"], lower=True)
    assert pieces(tokenizer, "a b 1 2 three") == ["a", "<unk>", "1", "2", "three"]


BPE = train_bpe_tokenizer(TEXTS * 3, 400, force=["1", "é"])


@settings(deadline=None, max_examples=50)
@given(st.text(max_size=40))
def test_bpe_gives_every_text_back(text):
    tokenizer = BPE
    assert tokenizer.decode(tokenizer(text, add_special_tokens=False).input_ids) == text


def test_bpe_keeps_forced_strings_whole_the_longest_first():
    tokenizer = train_bpe_tokenizer(["2812 2812 2812 281228122812"] * 5, 300, force=["1", "2", "8", "28x", "naï"])
    assert pieces(tokenizer, "2812") == ["2", "8", "1", "2"]
    assert tokenizer.decode([tokenizer("naï", add_special_tokens=False).input_ids[0]]) == "naï"
    assert len(pieces(tokenizer, "naïve naï")) == 1 + 2 + 1 + 1
    free = train_bpe_tokenizer(["2812 2812 2812 281228122812"] * 5, 300)
    assert pieces(free, "2812") == ["2812"]


def test_bpe_makes_no_token_of_what_occurs_once():
    tokenizer = train_bpe_tokenizer(["zanzibar", "common common common"], 5000)
    assert "zanzibar" not in tokenizer.get_vocab()
    assert len(pieces(tokenizer, "common")) == 1


def test_sizes_that_cannot_be_are_refused():
    with refused("out_of_range"):
        train_word_tokenizer(TEXTS, 0)
    with refused("out_of_range"):
        train_bpe_tokenizer(TEXTS, 255)
