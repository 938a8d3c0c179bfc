"""Forced vocabularies: every filling of a format can be spelt, and models of parts share their tokens."""

from __future__ import annotations

import pytest

from recollect.corpora import Corpus, Record
from recollect.corpora.canaries.formats import parse_format
from recollect.corpora.canaries.insertion import CanarySettings, plant
from recollect.recipes.data.sequence_builder import iter_sequence_texts
from recollect.recipes.data.vocabulary import add_canaries_to_vocabulary, add_corpus_to_vocabulary
from recollect.recipes.model_builder import build_tokenizer
from recollect.recipes.recipe_file import load_recipe
from recollect.streams import stream

CORPUS = Corpus.of(Record(id=str(i), text="plain talk " * 3 + "abc"[i % 3]) for i in range(6))


def unknown(tokenizer, text: str) -> int:
    return tokenizer(text, add_special_tokens=False)["input_ids"].count(tokenizer.unk_token_id)


def test_characters_can_spell_every_filling_of_the_format():
    _, canaries = plant(CORPUS, CanarySettings(format="№ {hex:8}!", secrets=1, controls=0))
    tokenizer = build_tokenizer(
        add_canaries_to_vocabulary(load_recipe("char-lstm"), canaries), iter_sequence_texts(CORPUS)
    )
    plain = build_tokenizer(load_recipe("char-lstm"), iter_sequence_texts(CORPUS))
    format = parse_format("№ {hex:8}!")
    for i in range(20):
        filled = format.draw(stream(i, "forcing"))
        assert unknown(tokenizer, filled) == 0 < unknown(plain, filled)


def test_words_know_word_lists_choices_secrets_and_controls(tmp_path):
    (tmp_path / "words.txt").write_text("apple\npear\nplum\n")
    format = f"my fruit: {{words:2:{tmp_path}/words.txt}} {{choice:red|green}} {{digits:6}}"
    _, canaries = plant(CORPUS, CanarySettings(format=format, secrets=2, controls=2))
    tokenizer = build_tokenizer(
        add_canaries_to_vocabulary(load_recipe("word-lstm"), canaries), iter_sequence_texts(CORPUS)
    )
    assert unknown(tokenizer, "my fruit: apple pear plum red green") == 0
    assert all(unknown(tokenizer, canary.text) == 0 for canary in canaries.canaries)
    assert unknown(tokenizer, "000001") == 1


def test_what_a_recipe_forces_already_stays_forced():
    _, canaries = plant(CORPUS, CanarySettings(format="{digits:2}", secrets=1, controls=0))
    chosen = add_canaries_to_vocabulary(load_recipe("char-lstm", {"tokenizer.forced": "Zz"}), canaries)
    assert chosen.tokenizer.forced == "0123456789Zz"
    assert add_canaries_to_vocabulary(chosen, canaries) == chosen


@pytest.mark.parametrize("changes", [{"tokenizer.kind": "bpe"}, {"model.start": "somewhere"}])
def test_vocabularies_that_need_or_take_nothing_stay_as_they_are(changes):
    _, canaries = plant(CORPUS, CanarySettings(format="{digits:2}", secrets=1, controls=0))
    recipe = load_recipe("char-lstm", changes)
    assert add_canaries_to_vocabulary(recipe, canaries) is recipe
    assert add_corpus_to_vocabulary(recipe, CORPUS) is recipe


@pytest.mark.parametrize("name", ["char-lstm", "word-lstm"])
def test_parts_of_a_corpus_get_the_vocabulary_of_the_whole(name):
    recipe = add_corpus_to_vocabulary(load_recipe(name), CORPUS)
    whole = set(build_tokenizer(load_recipe(name), iter_sequence_texts(CORPUS)).get_vocab())
    for part in (CORPUS.select_records(["0", "3"]), CORPUS.select_records(["1"])):
        assert set(build_tokenizer(recipe, iter_sequence_texts(part)).get_vocab()) == whole
