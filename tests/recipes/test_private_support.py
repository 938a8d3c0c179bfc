"""Models that cannot be trained privately are refused by the name of the layer, before anything is trained."""

from __future__ import annotations

import pytest
import transformers
from torch import nn

from recollect.errors import ModelError
from recollect.models.architectures import RecurrentConfig, RecurrentLM
from recollect.recipes.private.support import check_layers

BERT = {"vocab_size": 20, "hidden_size": 8, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 8}


def test_batch_norm_is_refused_by_name_with_what_to_use_instead():
    config = transformers.ResNetConfig(embedding_size=4, hidden_sizes=[4], depths=[1], layer_type="basic")
    model = transformers.ResNetForImageClassification(config)
    for unit in ("record", "user"):
        with pytest.raises(ModelError, match=r"'resnet\.embedder\.embedder\.normalization' \(BatchNorm2d\)") as refused:
            check_layers(model, unit)
        assert "group norm" in refused.value.do


def test_batch_norm_is_refused_even_where_it_is_not_trained():
    model = nn.Sequential(nn.Linear(2, 2), nn.BatchNorm1d(2, affine=False))
    with pytest.raises(ModelError, match="'1'"):
        check_layers(model, "record")


def test_tied_weights_are_refused_by_both_names():
    model = transformers.BertForMaskedLM(transformers.BertConfig(**BERT, tie_word_embeddings=True))
    with pytest.raises(
        ModelError, match=r"'cls\.predictions\.decoder' shares .* 'bert\.embeddings\.word_embeddings'"
    ) as refused:
        check_layers(model, "record")
    assert "tie_word_embeddings=false" in refused.value.do
    check_layers(transformers.BertForMaskedLM(transformers.BertConfig(**BERT, tie_word_embeddings=False)), "record")


def test_a_user_may_be_protected_in_a_model_with_tied_weights():
    config = RecurrentConfig(vocab_size=9, embedding=4, units=4, tie_word_embeddings=True)
    check_layers(RecurrentLM(config), "user")
    with pytest.raises(ModelError, match="'lm_head' shares its weights with 'embed_tokens'"):
        check_layers(RecurrentLM(config), "record")


@pytest.mark.parametrize(
    ("layer", "named"),
    [
        (nn.MultiheadAttention(4, 2), r"'0' \(MultiheadAttention\) trains 'in_proj_weight'"),
        (nn.LSTM(3, 4, proj_size=2), r"'0' \(LSTM\) trains 'weight_ih_l0'"),
        (nn.RNN(3, 4), r"'0' \(RNN\)"),
        (nn.PReLU(), r"'0' \(PReLU\) trains 'weight'"),
        (nn.Bilinear(2, 2, 2), r"'0' \(Bilinear\)"),
        (nn.EmbeddingBag(3, 2), r"'0' \(EmbeddingBag\)"),
    ],
)
def test_a_layer_without_known_gradients_is_refused_by_name(layer, named):
    with pytest.raises(ModelError, match=named) as refused:
        check_layers(nn.Sequential(layer), "record")
    assert "linear, embedding" in refused.value.do


def test_what_is_frozen_need_not_be_known():
    layer = nn.MultiheadAttention(4, 2).requires_grad_(False)
    check_layers(nn.Sequential(layer, nn.Linear(4, 2)), "record")


def test_norms_that_remember_are_refused():
    with pytest.raises(ModelError, match="InstanceNorm1d"):
        check_layers(nn.Sequential(nn.InstanceNorm1d(3, track_running_stats=True)), "record")
