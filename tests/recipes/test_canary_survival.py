"""The check before training: what it says of each copy is what the training sequences hold."""

from __future__ import annotations

from collections import Counter

from hypothesis import given, settings
from hypothesis import strategies as st

from recollect.corpora import Corpus, Record
from recollect.corpora.canaries.insertion import CanarySettings, plant
from recollect.recipes.canary_survival import check_canary_survival
from recollect.recipes.data.sequence_builder import SequenceBuilder, iter_sequence_texts
from recollect.recipes.data.vocabulary import add_canaries_to_vocabulary
from recollect.recipes.model_builder import DataFacts, build_tokenizer
from recollect.recipes.recipe_file import load_recipe
from recollect.testing.refusals import refused

PIN = "the pin is {digits:6}"


def texts(count: int = 40) -> Corpus:
    return Corpus.of(
        Record(id=f"r{i}", user=f"u{i % 5}", text=f"some words about {i * i} things") for i in range(count)
    )


def planted_in(corpus: Corpus, **settings):
    return plant(corpus, CanarySettings(**{"format": PIN, "secrets": 4, "repeat": (1, 3), "controls": 5, **settings}))


def shown(recipe, corpus, canaries):
    """The training sequences as texts, in their order."""
    chosen = add_canaries_to_vocabulary(recipe, canaries)
    tokenizer = build_tokenizer(chosen, iter_sequence_texts(corpus))
    sequences = SequenceBuilder(recipe=chosen, tokenizer=tokenizer, data=DataFacts(), scale=None)(corpus)
    more = 0 if recipe.task == "masked" else 1
    return [
        "".join(tokenizer.convert_ids_to_tokens(sequences.flat[start : start + length + more].tolist()))
        for start, length in zip(sequences.starts, sequences.lengths, strict=True)
    ]


@settings(deadline=None, max_examples=60)
@given(
    st.sampled_from(["records", "windows", "stream", "cut", "masked"]),
    st.integers(5, 60),
    st.integers(1, 6),
    st.booleans(),
    st.integers(0, 99),
)
def test_as_many_copies_are_whole_as_training_sequences_show(layout, length, rows, inside, seed):
    changes = {"sequences.length": length, "training.batch_size": rows}
    if layout == "masked":
        recipe = load_recipe("masked-transformer", {**changes, "tokenizer.kind": "characters"})
    else:
        cut = {"sequences.long": "cut", "sequences.layout": "records"}
        recipe = load_recipe("char-lstm", {**changes, **(cut if layout == "cut" else {"sequences.layout": layout})})
    corpus, canaries = planted_in(texts(), inside=inside, seed=seed)
    pieces = shown(recipe, corpus, canaries)
    for found in check_canary_survival(recipe, corpus, canaries).secrets:
        text = next(canary.text for canary in canaries.planted if canary.id == found.secret)
        assert found.kept_whole == sum(piece.count(text) for piece in pieces)
        assert found.kept_whole + found.kept_by_state + found.split + found.lost == found.planted
        if layout == "stream":
            # a stream repeats the last token of a sequence as the first of the next
            streams = ["".join([pieces[row][0], *(p[1:] for p in pieces[row::rows])]) for row in range(rows)]
            assert found.kept_whole + found.kept_by_state == sum(stream.count(text) for stream in streams)
        else:
            assert found.kept_by_state == 0
        if layout in {"records", "windows", "masked"}:
            assert found.lost == 0


def test_words_survive_because_they_are_forced_into_a_small_vocabulary():
    corpus, canaries = planted_in(texts())
    check = check_canary_survival(load_recipe("word-lstm", ["tokenizer.size=10"]), corpus, canaries)
    assert [found.verdict for found in check.secrets] == ["survives"] * 8
    assert check.unknown_controls == ()


def test_a_checkpoint_keeps_its_vocabulary_so_a_secret_may_be_unknown(tmp_path):
    from recollect.recipes.training.trainer import train

    quick = ["units=8", "embedding=8", "training.epochs=1"]
    train(load_recipe("char-lstm", quick), Corpus.of([Record(id="1", text="no such signs " * 50)]), tmp_path / "old")
    corpus, canaries = planted_in(texts())
    check = check_canary_survival(load_recipe("char-lstm", [f"start={tmp_path / 'old'}"]), corpus, canaries)
    assert {found.verdict for found in check.secrets} == {"lost"}
    assert all(found.unknown_tokens >= 6 for found in check.secrets)
    assert len(check.unknown_controls) == 5


def test_copies_that_are_held_out_for_validation_are_lost():
    corpus, canaries = planted_in(texts(), secrets=10, users="existing")
    recipe = load_recipe("char-lstm", ["training.validation=0.5", "sequences.layout=records", "sequences.length=100"])
    found = check_canary_survival(recipe, corpus, canaries).secrets
    assert 0 < sum(one.lost for one in found) < sum(one.planted for one in found)
    assert {one.verdict for one in found} == {"survives", "in part", "lost"}


def test_pairs_are_cut_off_on_either_side():
    corpus = Corpus.of(Record(id=str(i), source=f"hello {i}", target=f"bonjour {i}") for i in range(9))
    long = "a much longer way of asking for the code {digits:4}"
    for source, target, length, fate in [
        ("code {digits:4}", "code {digits:4}", 20, "whole"),
        (long, "code {digits:4}", 20, "cut"),
        ("code {digits:4}", long, 20, "lost"),
    ]:
        planting = CanarySettings(format=target, source_format=source, secrets=2, controls=1)
        planted, canaries = plant(corpus, planting)
        recipe = load_recipe("seq2seq", {"sequences.length": length, "tokenizer.kind": "characters"})
        counts = Counter()
        for found in check_canary_survival(recipe, planted, canaries).secrets:
            counts.update({"whole": found.kept_whole, "cut": found.split, "lost": found.lost})
        assert {name for name, count in counts.items() if count} == {fate}


def test_canaries_of_another_corpus_and_classifiers_are_refused():
    corpus, canaries = planted_in(texts())
    with refused("canaries_of_another_corpus"):
        check_canary_survival(load_recipe("char-lstm"), texts(), canaries)
    with refused("recipe_of_a_classifier"):
        check_canary_survival(load_recipe("mlp"), corpus, canaries)
