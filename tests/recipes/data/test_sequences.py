"""Training sequences: nothing is lost, nothing is joined that should not be, every token is predicted once."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from recollect.recipes import recipe
from recollect.recipes.data.sequence_layouts import (
    LabelledArraySequences,
    PairSequences,
    lay_out_masked,
    lay_out_records,
    lay_out_streams,
    lay_out_windows,
)
from recollect.recipes.data.sequences import IGNORED, SpecialTokens, TokenTable, tokenise_for_training
from recollect.recipes.data.tokenizers import train_character_tokenizer, train_word_tokenizer
from recollect.recipes.training.samplers import SequentialSampler, ShuffledSampler, iter_remaining

MARKS = SpecialTokens(padding=0, before=(2,), after=(3,))
RNG = np.random.default_rng(0)
some_texts = st.lists(st.lists(st.integers(4, 30), max_size=25), min_size=1, max_size=12)


def tokens_of(texts: list[list[int]]) -> TokenTable:
    wrapped = [[2, *text, 3] for text in texts]
    return TokenTable(flat=np.concatenate(wrapped).astype(np.int32), offsets=np.cumsum([0, *map(len, wrapped)]))


def predictions(batch) -> list[tuple[int, int]]:
    """(input, target) of every predicted place, row by row."""
    found = []
    for inputs, targets in zip(batch.inputs["input_ids"].tolist(), batch.targets.tolist(), strict=True):
        found += [(i, t) for i, t in zip(inputs, targets, strict=True) if t != IGNORED]
    return found


def all_of(sequences):
    return sequences.build_batch(np.arange(len(sequences.lengths)), lambda: RNG)


@settings(deadline=None, max_examples=40)
@given(some_texts, st.integers(1, 9))
def test_split_texts_predict_every_token_once_from_the_one_before(texts, length):
    sequences = lay_out_records(tokens_of(texts), np.arange(len(texts), dtype=np.int32), MARKS, length=length)
    expected = [pair for text in texts for pair in zip([2, *text], [*text, 3], strict=True)]
    batch = all_of(sequences)
    assert predictions(batch) == expected
    assert batch.token_count == len(expected)
    assert max(sequences.lengths) <= length
    owners = [i for i, text in enumerate(texts) for _ in range(-(-(len(text) + 1) // length))]
    assert sequences.users.tolist() == owners


@settings(deadline=None, max_examples=40)
@given(some_texts, st.integers(1, 9))
def test_cut_texts_are_one_sequence_each(texts, length):
    users = np.arange(len(texts), dtype=np.int32)
    sequences = lay_out_records(tokens_of(texts), users, MARKS, length=length, split=False)
    expected = [pair for text in texts for pair in list(zip([2, *text], [*text, 3], strict=True))[:length]]
    assert predictions(all_of(sequences)) == expected
    assert sequences.users.tolist() == users.tolist()


@settings(deadline=None, max_examples=40)
@given(some_texts, st.integers(1, 9))
def test_windows_predict_everything_but_the_beginnings_of_texts(texts, length):
    tokens = tokens_of(texts)
    flat = tokens.flat.tolist()
    expected = [pair for pair in pairwise(flat) if pair[1] != 2]
    assert predictions(all_of(lay_out_windows(tokens, MARKS, length=length))) == expected


@settings(deadline=None, max_examples=40)
@given(some_texts, st.integers(1, 9), st.integers(1, 4))
def test_streams_continue_where_they_left_off(texts, length, rows):
    tokens = tokens_of(texts)
    sequences = lay_out_streams(tokens, MARKS, length=length, rows=rows)
    each = (len(tokens.flat) - 1) // rows
    read = [[] for _ in range(rows)]
    for drawn in SequentialSampler(size=len(sequences.starts), batch_size=rows).iter_batches(0):
        batch = sequences.build_batch(drawn, lambda: RNG)
        for row, inputs in enumerate(batch.inputs["input_ids"].tolist()):
            read[row] += inputs
    assert [symbol for row in read for symbol in row] == tokens.flat[: each * rows].tolist()


def test_masking_hides_the_stated_share_and_shows_the_rest():
    tokenizer = train_word_tokenizer([" ".join(f"w{i}" for i in range(200))], 200)
    tokenizer.add_special_tokens({"mask_token": "< mask >"})
    texts = [" ".join(f"w{i}" for i in RNG.integers(0, 200, n)) for n in RNG.integers(1, 60, 400)]
    tokens = tokenise_for_training(texts, tokenizer, SpecialTokens(padding=0))
    sequences = lay_out_masked(
        tokens, np.zeros(400, np.int32), MARKS, tokenizer=tokenizer, settings=recipe.Sequences(length=40)
    )
    assert int(sequences.lengths.sum()) == len(tokens.flat)
    batch = sequences.build_batch(np.arange(len(sequences.lengths)), lambda: np.random.default_rng(1))
    shown, targets = batch.inputs["input_ids"].numpy(), batch.targets.numpy()
    read = batch.inputs["attention_mask"].numpy().astype(bool)
    chosen = targets != IGNORED
    assert batch.token_count == chosen.sum()
    assert chosen.sum() / len(tokens.flat) == pytest.approx(0.15, abs=0.01)
    hidden = shown[chosen] == tokenizer.mask_token_id
    assert hidden.mean() == pytest.approx(0.8, abs=0.03)
    assert (shown[chosen] == targets[chosen]).mean() == pytest.approx(0.1, abs=0.03)
    assert (shown[:, 0] == 2).all()
    assert (shown[np.arange(len(shown)), read.sum(1) - 1] == 3).all()
    whole = np.where(chosen, targets, shown)
    inner = [row[mask][1:-1].tolist() for row, mask in zip(whole, read, strict=True)]
    assert [symbol for row in inner for symbol in row] == tokens.flat.tolist()
    assert not np.isin(shown[chosen & (shown != targets)], [0, 1, 2, 3]).any()


def test_what_a_text_spells_out_is_text():
    tokenizer = train_character_tokenizer(["< bos >abc"])
    assert 2 not in tokenise_for_training(["< bos >a"], tokenizer, SpecialTokens(padding=0)).flat


def test_pairs_predict_the_target_after_the_decoders_start():
    pairs = PairSequences(
        sources=tokens_of([[5, 6], [7]]), targets=tokens_of([[8], [9, 10, 11]]), users=np.zeros(2, np.int32), padding=0
    )
    batch = pairs.build_batch(np.array([1, 0]), lambda: RNG)
    assert batch.inputs["input_ids"].tolist() == [[2, 7, 3, 0], [2, 5, 6, 3]]
    assert batch.inputs["attention_mask"].tolist() == [[1, 1, 1, 0], [1, 1, 1, 1]]
    assert batch.inputs["decoder_input_ids"].tolist() == [[2, 9, 10, 11], [2, 8, 3, 0]]
    assert batch.targets.tolist() == [[9, 10, 11, 3], [8, 3, IGNORED, IGNORED]]
    assert batch.token_count == 6


def test_arrays_are_read_as_the_classifier_reads_them():
    from recollect.corpora.record import Record
    from recollect.models.hugging_face.array_inputs import ArrayReader, ArrayScaling
    from recollect.recipes.data.sequence_builder import move_channels_first

    images = RNG.integers(0, 256, (5, 4, 3, 2), dtype=np.uint8)
    held = LabelledArraySequences(
        arrays=move_channels_first(images), classes=np.arange(5), users=np.zeros(5, np.int32), mean=0.3, std=0.2
    )
    reader = ArrayReader(scaling=ArrayScaling(mean=(0.3,), std=(0.2,)))
    expected = np.stack([reader(Record(id=str(i), array=image, label=i)) for i, image in enumerate(images)])
    assert np.array_equal(held.build_batch(np.arange(5), lambda: RNG).inputs["pixel_values"].numpy(), expected)


@settings(deadline=None, max_examples=40)
@given(st.lists(st.integers(1, 50), min_size=1, max_size=300), st.integers(1, 40), st.integers(0, 3))
def test_shuffling_takes_every_sequence_once(lengths, batch_size, epoch):
    sampler = ShuffledSampler(lengths=np.array(lengths, np.int32), batch_size=batch_size, seed=1)
    drawn = list(sampler.iter_batches(epoch))
    assert sorted(np.concatenate(drawn).tolist()) == list(range(len(lengths)))
    assert len(drawn) == sampler.steps
    assert max(map(len, drawn)) <= batch_size
    assert [part.tolist() for part in iter_remaining(sampler, epoch, 2)] == [part.tolist() for part in drawn[2:]]


def test_batches_are_of_similar_length_and_differ_from_epoch_to_epoch():
    lengths = RNG.integers(1, 200, 5000).astype(np.int32)
    sampler = ShuffledSampler(lengths=lengths, batch_size=32, seed=1)
    epochs = [list(sampler.iter_batches(epoch)) for epoch in (0, 1)]
    padded = sum(len(part) * lengths[part].max() for part in epochs[0])
    assert padded < 1.1 * lengths.sum()
    met = [{frozenset(part.tolist()) for part in epoch} for epoch in epochs]
    assert len(met[0] & met[1]) == 0


def test_bagging_draws_with_replacement():
    sampler = ShuffledSampler(lengths=np.ones(10_000, np.int32), batch_size=100, seed=1, bagging=True)
    drawn = np.concatenate(list(sampler.iter_batches(0)))
    assert len(np.unique(drawn)) / 10_000 == pytest.approx(1 - np.exp(-1), abs=0.02)
