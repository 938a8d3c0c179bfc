"""Models that cannot be trained privately are refused by the name of the layer, before anything is trained."""

from __future__ import annotations

import pytest
import transformers
from torch import nn

from recollect.models.architectures import RecurrentConfig, RecurrentLM
from recollect.recipes.private.supported_layers import check_layers
from recollect.testing.refusals import refused

BERT = {"vocab_size": 20, "hidden_size": 8, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 8}


def test_batch_norm_is_refused_by_name_with_what_to_use_instead():
    config = transformers.ResNetConfig(embedding_size=4, hidden_sizes=[4], depths=[1], layer_type="basic")
    model = transformers.ResNetForImageClassification(config)
    for unit in ("record", "user"):
        with refused("batch_norm") as refusal:
            check_layers(model, unit)
        assert "'resnet.embedder.embedder.normalization' (BatchNorm2d)" in refusal.error.found
        assert "model.norm=group" in refusal.error.do


def test_batch_norm_is_refused_even_where_it_is_not_trained():
    model = nn.Sequential(nn.Linear(2, 2), nn.BatchNorm1d(2, affine=False))
    with refused("batch_norm") as refusal:
        check_layers(model, "record")
    assert "'1'" in refusal.error.found


def test_tied_weights_are_refused_by_both_names():
    model = transformers.BertForMaskedLM(transformers.BertConfig(**BERT, tie_word_embeddings=True))
    with refused("tied_weights") as refusal:
        check_layers(model, "record")
    for named in ("'cls.predictions.decoder'", "'bert.embeddings.word_embeddings'"):
        assert named in refusal.error.found
    assert "tie_word_embeddings=false" in refusal.error.do
    check_layers(transformers.BertForMaskedLM(transformers.BertConfig(**BERT, tie_word_embeddings=False)), "record")


def test_a_user_may_be_protected_in_a_model_with_tied_weights():
    config = RecurrentConfig(vocab_size=9, embedding=4, units=4, tie_word_embeddings=True)
    check_layers(RecurrentLM(config), "user")
    with refused("tied_weights"):
        check_layers(RecurrentLM(config), "record")


@pytest.mark.parametrize(
    ("layer", "named"),
    [
        (nn.MultiheadAttention(4, 2), ("'0' (MultiheadAttention)", "'in_proj_weight'")),
        (nn.LSTM(3, 4, proj_size=2), ("'0' (LSTM)", "'weight_ih_l0'")),
        (nn.RNN(3, 4), ("'0' (RNN)",)),
        (nn.PReLU(), ("'0' (PReLU)", "'weight'")),
        (nn.Bilinear(2, 2, 2), ("'0' (Bilinear)",)),
        (nn.EmbeddingBag(3, 2), ("'0' (EmbeddingBag)",)),
    ],
)
def test_a_layer_without_known_gradients_is_refused_by_name(layer, named):
    with refused("no_gradient_formula") as refusal:
        check_layers(nn.Sequential(layer), "record")
    for part in named:
        assert part in refusal.error.found
    assert "linear, embedding" in refusal.error.do


def test_what_is_frozen_need_not_be_known():
    layer = nn.MultiheadAttention(4, 2).requires_grad_(False)
    check_layers(nn.Sequential(layer, nn.Linear(4, 2)), "record")


def test_norms_that_remember_are_refused():
    with refused("running_statistics"):
        check_layers(nn.Sequential(nn.InstanceNorm1d(3, track_running_stats=True)), "record")
