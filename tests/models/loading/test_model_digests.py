"""A model's digest: stable where nothing matters, different where anything does."""

from __future__ import annotations

import pytest
import torch
from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import AutoModelForMaskedLM, AutoTokenizer, BertConfig, BertForMaskedLM, PreTrainedTokenizerFast

from recollect.models.loading.model_digests import (
    compute_model_digest,
    compute_tokenizer_digest,
    compute_weights_digest,
    drop_volatile_keys,
)


def make_tokenizer(*more: str, **settings):
    words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "red", "green", *more]
    raw = Tokenizer(models.WordLevel({word: i for i, word in enumerate(words)}, unk_token="[UNK]"))  # noqa: S106
    raw.pre_tokenizer = pre_tokenizers.Whitespace()
    marks = {"pad_token": "[PAD]", "unk_token": "[UNK]", "mask_token": "[MASK]"} | settings
    return PreTrainedTokenizerFast(tokenizer_object=raw, **marks)


def make_network(**settings):
    torch.manual_seed(0)
    sizes = {"hidden_size": 8, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 16}
    return BertForMaskedLM(BertConfig(vocab_size=9, **sizes | settings)).eval()


def test_a_model_saved_and_loaded_twice_keeps_its_digest(tmp_path):
    network, tokenizer = make_network(), make_tokenizer()
    first = compute_model_digest(network, tokenizer)
    for folder in (tmp_path / "a", tmp_path / "b"):
        network.save_pretrained(folder)
        tokenizer.save_pretrained(folder)
        network, tokenizer = AutoModelForMaskedLM.from_pretrained(folder), AutoTokenizer.from_pretrained(folder)
        assert compute_model_digest(network, tokenizer) == first


def test_using_a_model_leaves_its_digest():
    network, tokenizer = make_network(), make_tokenizer()
    first = compute_model_digest(network, tokenizer)
    batch = tokenizer(["red", "red green"], padding=True, truncation=True, max_length=3, return_tensors="pt")
    network(input_ids=batch["input_ids"], attention_mask=batch["attention_mask"])
    assert compute_model_digest(network, tokenizer) == first


def test_every_single_weight_counts():
    network = make_network()
    seen = {compute_weights_digest(network.state_dict())}
    for parameter in network.parameters():
        with torch.no_grad():
            parameter.flatten()[-1] += 1e-6
        seen.add(compute_weights_digest(network.state_dict()))
    assert len(seen) == 1 + len(list(network.parameters()))


@pytest.mark.parametrize(
    "other",
    [
        {"a": torch.tensor([1.0, 2.0]), "c": torch.tensor(3.0)},
        {"a": torch.tensor([[1.0, 2.0]]), "b": torch.tensor(3.0)},
        {"a": torch.tensor([1.0, 2.0], dtype=torch.bfloat16), "b": torch.tensor(3.0)},
        {"a": torch.tensor([1.0, -2.0]), "b": torch.tensor(3.0)},
    ],
    ids=["name", "shape", "type", "value"],
)
def test_name_shape_type_and_value_of_a_tensor_count(other):
    weights = {"b": torch.tensor(3.0), "a": torch.tensor([1.0, 2.0])}
    assert compute_weights_digest(weights) == compute_weights_digest(dict(reversed(weights.items())))
    assert compute_weights_digest(weights) != compute_weights_digest(other)


def test_tensors_that_do_not_lie_in_a_row_count_by_value():
    table = torch.arange(6.0).reshape(2, 3)
    assert compute_weights_digest({"a": table.T}) == compute_weights_digest({"a": table.T.contiguous()})


def test_a_setting_that_moves_numbers_counts_and_a_note_does_not():
    plain = compute_model_digest(make_network())
    noted = make_network()
    noted.config._name_or_path, noted.config.use_cache, noted.config.architectures = (
        "elsewhere",
        False,
        ["BertForMaskedLM"],
    )
    assert compute_model_digest(noted) == plain
    assert compute_model_digest(make_network(layer_norm_eps=1e-6)) != plain
    assert compute_model_digest(make_network(), notes={"mean": 0.5}) != plain


@pytest.mark.parametrize(
    "other",
    [
        make_tokenizer("blue"),
        make_tokenizer(mask_token="[SEP]"),  # noqa: S106
        make_tokenizer(model_max_length=16),
    ],
    ids=["vocabulary", "special", "length"],
)
def test_what_a_tokenizer_does_counts(other):
    assert compute_tokenizer_digest(make_tokenizer()) == compute_tokenizer_digest(make_tokenizer())
    assert compute_tokenizer_digest(other) != compute_tokenizer_digest(make_tokenizer())


def test_notes_are_dropped_at_any_depth():
    assert drop_volatile_keys({"text": {"dtype": "float16", "layers": 3}}) == {"text": {"layers": 3}}
