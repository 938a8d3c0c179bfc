"""The pytest plug-in: a test fails if the model memorised the canaries, and passes if it did not."""

from __future__ import annotations

import tomllib
from importlib import import_module
from pathlib import Path

import pytest

from recollect.corpora.canaries.insertion import CanarySettings, plant
from recollect.corpora.canaries.manifest import Canaries
from recollect.corpora.corpus import Corpus
from recollect.corpora.record import Record
from recollect.testing.memorisation import assert_not_memorised  # noqa: F401 - the fixture, as the plug-in gives it
from recollect.testing.tiny import build_tiny_model, save_tiny

QUICK = {"draws": 100, "seed": 0}


@pytest.fixture(scope="module")
def canaries(tmp_path_factory):
    file = tmp_path_factory.mktemp("canaries") / "canaries.json"
    corpus = Corpus.of(Record(id=str(i), text=text) for i, text in enumerate(["the quick fox", "the lazy dog"]))
    _, planted = plant(corpus, CanarySettings(format="again {digits:2}", secrets=3, controls=10))
    planted.save(file)
    return file


@pytest.fixture(scope="module")
def memorising(tmp_path_factory, canaries):
    """A tiny model that was trained on nothing but the planted canaries."""
    import torch

    folder, tiny = tmp_path_factory.mktemp("memorising"), build_tiny_model("gpt2")
    texts = [each.text for each in Canaries.load(canaries).planted]
    encoded = tiny.tokenizer(texts, return_tensors="pt", padding=True)
    labels = encoded["input_ids"].masked_fill(encoded["attention_mask"] == 0, -100)
    tiny.network.requires_grad_(True)
    optimizer = torch.optim.AdamW(tiny.network.parameters(), lr=0.02)
    for _ in range(60):
        loss = tiny.network(**encoded, labels=labels).loss
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    save_tiny(tiny, folder)
    return folder


@pytest.fixture(scope="module")
def untrained(tmp_path_factory):
    folder = tmp_path_factory.mktemp("model")
    save_tiny(build_tiny_model("gpt2"), folder)
    return folder


def test_a_model_that_never_saw_the_canaries_passes(assert_not_memorised, untrained, canaries):  # noqa: F811
    assert assert_not_memorised(untrained, canaries, **QUICK).outcome == "not_found"


def test_a_model_that_memorised_them_fails_with_the_verdict(assert_not_memorised, memorising, canaries):  # noqa: F811
    with pytest.raises(AssertionError, match="The model memorised secrets"):
        assert_not_memorised(memorising, canaries, **QUICK)


def test_a_limit_decides_where_one_is_given(assert_not_memorised, untrained, canaries):  # noqa: F811
    assert_not_memorised(untrained, canaries, fail_if="highest_exposure_bits>99", **QUICK)
    with pytest.raises(AssertionError, match="highest_exposure_bits>0: exceeded"):
        assert_not_memorised(untrained, canaries, fail_if="highest_exposure_bits>0", **QUICK)


def test_the_package_declares_the_plug_in():
    project = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text())["project"]
    (module,) = project["entry-points"]["pytest11"].values()
    assert callable(import_module(module).check_not_memorised)
