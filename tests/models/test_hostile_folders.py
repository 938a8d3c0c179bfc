"""Model folders that want to run code, choose code, or be larger than any machine: refused, before anything is made."""

from __future__ import annotations

import json
import pickle
import time

import pytest
import torch

from recollect.models import load_model
from recollect.testing.refusals import refused
from recollect.testing.tiny import build_tiny_model, save_tiny


@pytest.fixture
def folder(tmp_path):
    """A small model."""
    return save_tiny(build_tiny_model("gpt2"), tmp_path / "model")


def change(folder, **settings):
    """Other values in the configuration."""
    config = folder / "config.json"
    config.write_text(json.dumps({**json.loads(config.read_text()), **settings}))


@pytest.mark.parametrize(
    "sizes",
    [
        {"n_layer": 10**9},
        {"vocab_size": 10**12},
        {"n_embd": 10**6 * 4},
        {"n_positions": 10**10},
        {"n_inner": 10**11},
    ],
    ids=lambda sizes: next(iter(sizes)),
)
def test_absurd_sizes_are_refused_before_anything_of_that_size_is_made(sizes, folder):
    change(folder, **sizes)
    began = time.process_time()
    with refused("absurd_sizes"):
        load_model(str(folder))
    assert time.process_time() - began < 10


def test_how_attention_is_computed_is_never_taken_from_a_configuration(folder):
    plain = load_model(str(folder))
    change(folder, attn_implementation="somebody/kernel-that-runs-code", _attn_implementation="flash_attention_2")
    loaded = load_model(str(folder))
    assert loaded._network.config._attn_implementation == plain._network.config._attn_implementation
    assert loaded.digest == plain.digest


class Code:
    """What a pickle can carry."""

    def __reduce__(self):
        return (print, ("it ran",))


def test_advice_to_read_pickled_code_is_not_passed_on(folder, capsys):
    (folder / "model.safetensors").unlink()
    torch.save({"weights": Code()}, folder / "pytorch_model.bin", pickle_protocol=pickle.HIGHEST_PROTOCOL)
    with refused("weights_unreadable") as refusal:
        load_model(str(folder))
    assert "weights_only" not in str(refusal.error)
    assert "safetensors" in str(refusal.error)
    assert "it ran" not in capsys.readouterr().out
