"""Model folders that want to run code, choose code, or be larger than any machine: refused, before anything is made."""

from __future__ import annotations

import json
import pickle
import struct
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
        {"n_layer": -5},
    ],
    ids=lambda sizes: "-".join(map(str, *sizes.items())),
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


@pytest.mark.parametrize(
    ("settings", "code"),
    [
        ({"n_embd": float("nan")}, "config_unreadable"),
        ({"dtype": "no_such_type"}, "config_unreadable"),
        ({"n_head": 0}, "weights_unreadable"),
    ],
    ids=lambda each: next(iter(each)) if isinstance(each, dict) else each,
)
def test_whatever_a_library_raises_is_one_refusal(settings, code, folder):
    change(folder, **settings)
    with refused(code):
        load_model(str(folder))


def test_a_header_of_endless_lists_is_refused(folder):
    header = b'{"a":' + b"[" * 100_000 + b"]" * 100_000 + b"}"
    (folder / "model.safetensors").write_bytes(struct.pack("<Q", len(header)) + header)
    with refused("weights_unreadable"):
        load_model(str(folder))


def test_a_description_larger_than_any_is_not_read(folder):
    with (folder / "tokenizer.json").open("r+b") as file:
        file.truncate(2**32)
    with refused("huge_description"):
        load_model(str(folder))


@pytest.mark.parametrize("part", ["vocabulary", "normaliser"])
def test_a_tokenizer_that_would_fill_the_memory_is_refused(part, folder):
    """Its library would end the process."""
    file = folder / "tokenizer.json"
    described = json.loads(file.read_text())
    if part == "vocabulary":
        vocabulary = described["model"]["vocab"]
        vocabulary[next(iter(vocabulary))] = 2**31
    else:
        step = {"type": "Replace", "pattern": {"Regex": "."}, "content": "x" * 1000}
        described["normalizer"] = {"type": "Sequence", "normalizers": [step] * 4}
    file.write_text(json.dumps(described))
    with refused("absurd_tokenizer"):
        load_model(str(folder))


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
