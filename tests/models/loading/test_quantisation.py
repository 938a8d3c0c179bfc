"""Quantising: few values per matrix, nearly the same answers, and a card that says so."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from safetensors.torch import load_file

from recollect.corpora import Corpus, Record
from recollect.models import load_model
from recollect.models.loading.model_cards import read_card, refuse_damaged_files
from recollect.models.loading.quantisation import quantise, round_weights
from recollect.recipes.recipe_file import load_recipe
from recollect.recipes.training.trainer import train
from recollect.testing.refusals import refused
from recollect.testing.tiny import build_tiny_model, save_tiny

TEXTS = [Record(id=str(i), text=text) for i, text in enumerate(["see you at noon", "the train is late again"])]


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    out = tmp_path_factory.mktemp("models") / "lstm"
    recipe = load_recipe("char-lstm", ["units=16", "embedding=16", "epochs=2", "layout=records"])
    return train(recipe, Corpus.of(TEXTS), out, threads=1)


@pytest.mark.parametrize("family", ["char-lstm", "gpt2", "bert", "t5"])
def test_every_loader_reads_it_and_answers_nearly_the_same(family, trained, tmp_path):
    source = trained
    if family != "char-lstm":
        source = tmp_path / "model"
        save_tiny(build_tiny_model(family), source)
    folder = quantise(str(source), tmp_path / "small")
    before, after = load_file(source / "model.safetensors"), load_file(folder / "model.safetensors")
    assert before.keys() == after.keys()
    for name, value in after.items():
        assert value.dtype == before[name].dtype
        if value.dim() >= 2:
            assert len(value.unique()) <= 256
            assert (value - before[name]).abs().max() <= before[name].abs().max() / 253
        else:
            assert torch.equal(value, before[name])
    records = TEXTS if family != "t5" else [Record(id="1", source="see you", target="à midi")]
    old, new = load_model(str(source)), load_model(str(folder))
    assert new.digest != old.digest
    # the tiny ones have wide random weights and nothing that training has made robust
    near = 0.05 if family == "char-lstm" else 0.5
    np.testing.assert_allclose(new.answer(records).logprob, old.answer(records).logprob, atol=near)


@settings(deadline=None, max_examples=100)
@given(st.lists(st.floats(-1e3, 1e3, width=32), min_size=1, max_size=40), st.integers(2, 8))
def test_rounding_goes_to_the_nearest_level_as_a_slow_search_does(values, bits):
    weights = torch.tensor([values], dtype=torch.float64)
    most = 2 ** (bits - 1) - 1
    largest = max(abs(value) for value in values)
    levels = np.array([largest * i / most for i in range(-most, most + 1)])
    for value, found in zip(values, round_weights(weights, bits=bits)[0].tolist(), strict=True):
        assert abs(found - value) <= np.abs(levels - value).min() + 1e-9 * largest
        assert np.abs(levels - found).min() <= 1e-9 * largest


def test_the_card_says_what_was_done_and_a_second_call_does_nothing(trained, tmp_path):
    folder = quantise(str(trained), tmp_path / "small")
    card = read_card(folder)
    made = card.pop("quantised")
    assert card == read_card(trained)
    refuse_damaged_files(folder)
    assert made["bits"] == 8
    assert 0.9 < made["weights_rounded"] / made["weights"] < 1
    assert "rounded to 8 bits" in (folder / "README.md").read_text()
    stamp = (folder / "model.safetensors").stat().st_mtime_ns
    assert quantise(str(trained), folder) == folder
    assert (folder / "model.safetensors").stat().st_mtime_ns == stamp


def test_rubbish_is_refused(trained, tmp_path):
    with refused("folder_taken"):
        quantise(str(trained), trained)
    quantise(str(trained), tmp_path / "small")
    with refused("folder_taken"):
        quantise(str(trained), tmp_path / "small", bits=4)
    for bits in (1, 17):
        with refused("out_of_range"):
            quantise(str(trained), tmp_path / "other", bits=bits)
    with refused("no_such_model"):
        quantise(str(tmp_path / "nowhere"), tmp_path / "other")
