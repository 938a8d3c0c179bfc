"""Per-record gradients: those of all records at once equal those of a batch that holds one record alone."""

from __future__ import annotations

import numpy as np
import pytest
import torch
import transformers
from torch import nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from recollect.models.architectures import (
    ConvolutionalConfig,
    ConvolutionalLM,
    GroupedResNet,
    GroupedResNetConfig,
    PerceptronClassifier,
    PerceptronConfig,
    RecurrentConfig,
    RecurrentLM,
    TranslatingConfig,
    TranslatingLM,
)
from recollect.recipes.data.sequence_layouts import (
    LabelledArraySequences,
    LabelledTextSequences,
    MaskedSequences,
    PairSequences,
    lay_out_records,
)
from recollect.recipes.data.sequences import SpecialTokens, TokenTable
from recollect.recipes.private.per_record_gradients import (
    check_equal,
    compute_all_at_once,
    get_gradients,
    get_trained_parameters,
)
from recollect.recipes.private.per_record_gradients import compute_one_by_one as gradients_one_by_one
from recollect.recipes.private.recurrent_gradients import build_recording_forward
from recollect.recipes.private.supported_layers import check_layers
from recollect.recipes.private.unit_gradients import RecordUnitGradients, compute_record_losses
from recollect.testing.refusals import refused

MARKS = SpecialTokens(padding=0, before=(2,), after=(3,))
SYMBOLS, TEXTS = 20, 5


def tokens(seed: int = 0) -> TokenTable:
    """Texts of very different lengths, so that batches are padded."""
    rng = np.random.default_rng(seed)
    found = [[2, *rng.integers(4, SYMBOLS, length), 3] for length in (1, 9, 4, 12, 6)]
    return TokenTable(flat=np.concatenate(found).astype(np.int32), offsets=np.cumsum([0, *map(len, found)]))


NOBODY = np.zeros(TEXTS, np.int32)
RUNNING = lay_out_records(tokens(), NOBODY, MARKS, length=30)
MASKED = MaskedSequences(
    flat=tokens().flat,
    starts=tokens().offsets[:-1],
    lengths=tokens().lengths,
    users=NOBODY,
    special_tokens=MARKS,
    mask_id=1,
    share=0.5,
    ordinary_ids=np.arange(4, SYMBOLS),
)
PAIRS = PairSequences(sources=tokens(1), targets=tokens(), users=NOBODY, padding=0)
CLASSES = np.arange(TEXTS) % 3
LABELLED = LabelledTextSequences(tokens=tokens(), classes=CLASSES, users=NOBODY, padding=0)


def arrays(*shape: int) -> LabelledArraySequences:
    values = np.random.default_rng(3).normal(size=(TEXTS, *shape)).astype(np.float32)
    return LabelledArraySequences(arrays=values, classes=CLASSES, users=NOBODY, mean=0.0, std=1.0)


def transformer(config: str, model: str, **settings):
    return getattr(transformers, model)(
        getattr(transformers, config)(vocab_size=SYMBOLS, tie_word_embeddings=False, pad_token_id=0, **settings)
    )


def bert(model: str = "BertForMaskedLM"):
    sizes = {"hidden_size": 8, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 12}
    return transformer("BertConfig", model, **sizes, max_position_embeddings=32, num_labels=3)


def gpt2():
    return transformer(
        "GPT2Config", "GPT2LMHeadModel", n_embd=8, n_layer=2, n_head=2, n_positions=32, bos_token_id=2, eos_token_id=3
    )


def llama():
    return transformer(
        "LlamaConfig",
        "LlamaForCausalLM",
        hidden_size=8,
        intermediate_size=12,
        num_hidden_layers=2,
        num_attention_heads=2,
        num_key_value_heads=1,
    )


def resnet():
    return GroupedResNet(
        GroupedResNetConfig(
            num_channels=1, embedding_size=4, hidden_sizes=[4, 8], depths=[1, 1], layer_type="basic", num_labels=3
        )
    )


def adapted():
    """A tied GPT-2 of which only low-rank adapters are trained."""
    peft = pytest.importorskip("peft")
    sizes = {"n_embd": 8, "n_layer": 1, "n_head": 2, "n_positions": 32, "bos_token_id": 2, "eos_token_id": 3}
    model = transformers.GPT2LMHeadModel(transformers.GPT2Config(vocab_size=SYMBOLS, **sizes))
    return peft.get_peft_model(model, peft.LoraConfig(r=2, init_lora_weights=False, fan_in_fan_out=True))


def recurrent(cell: str, **options):
    return RecurrentLM(RecurrentConfig(vocab_size=SYMBOLS, embedding=6, units=5, cell=cell, **options))


def convolutional(form: str):
    return ConvolutionalLM(ConvolutionalConfig(vocab_size=SYMBOLS, embedding=6, units=5, form=form, width=3))


def translating(*, attention: bool, cell: str = "lstm", layers: int = 1):
    return TranslatingLM(
        TranslatingConfig(vocab_size=SYMBOLS, embedding=6, units=5, attention=attention, cell=cell, layers=layers)
    )


MODELS = {
    "lstm": (lambda: recurrent("lstm", layers=2), RUNNING),
    "gru": (lambda: recurrent("gru", layers=2), RUNNING),
    "cnn": (lambda: convolutional("cnn"), RUNNING),
    "wavenet": (lambda: convolutional("wavenet"), RUNNING),
    "encoder-decoder": (lambda: translating(attention=False, cell="gru"), PAIRS),
    "encoder-decoder of two layers": (lambda: translating(attention=False, layers=2), PAIRS),
    "attention": (lambda: translating(attention=True), PAIRS),
    "gpt2": (gpt2, RUNNING),
    "llama": (llama, RUNNING),
    "bert": (bert, MASKED),
    "text classifier": (lambda: bert("BertForSequenceClassification"), LABELLED),
    "perceptron": (
        lambda: PerceptronClassifier(PerceptronConfig(inputs=12, hidden=[7, 6], num_labels=3)),
        arrays(3, 4),
    ),
    "adapter": (adapted, RUNNING),
    "resnet": (resnet, arrays(1, 16, 16)),
}


def built(name: str):
    """A model in double precision, in training mode but without dropout, and what it is trained on."""
    make, sequences = MODELS[name]
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(1)
        model = make().double().train()
    for module in model.modules():
        if isinstance(module, nn.Dropout):
            module.p = 0.0
    return model, sequences


def batch_of(sequences, drawn):
    """The same masks for a record alone and among others."""
    if not isinstance(sequences, MaskedSequences):
        batch = sequences.build_batch(np.asarray(drawn), lambda: np.random.default_rng(0))
    else:
        whole = sequences.build_batch(np.arange(TEXTS), lambda: np.random.default_rng(0))
        width = int(sequences.lengths[drawn].max()) + 2
        batch = type(whole)(
            inputs={name: value[drawn, :width] for name, value in whole.inputs.items()},
            targets=whole.targets[drawn, :width],
            token_count=0,
        )
    for name, value in batch.inputs.items():
        if value.is_floating_point():
            batch.inputs[name] = value.double()
    return batch


def gradients_of_one(model, batch) -> list[torch.Tensor]:
    """The twin: a batch that holds one record, unpadded, its mean loss, and torch's own backward pass."""
    model.zero_grad()
    logits, targets = model(**batch.inputs).logits, batch.targets
    nn.functional.cross_entropy(logits.flatten(0, -2), targets.flatten()).backward()
    return [torch.zeros_like(p) if p.grad is None else p.grad.clone() for p in get_trained_parameters(model)]


@pytest.mark.parametrize("name", MODELS)
def test_gradients_of_all_records_at_once_equal_those_of_a_record_alone(name):
    model, sequences = built(name)
    check_layers(model, "record")
    twins = [gradients_of_one(model, batch_of(sequences, [i])) for i in range(TEXTS)]
    batch = batch_of(sequences, list(range(TEXTS)))
    compute_all_at_once(model, lambda: compute_record_losses(model, batch)[0], records=TEXTS)
    bounds = {"rtol": 1e-5, "atol": 1e-8} if name == "llama" else {"rtol": 1e-9, "atol": 1e-12}  # its norm is single
    for i, parameter in enumerate(get_trained_parameters(model)):
        torch.testing.assert_close(get_gradients(parameter), torch.stack([twin[i] for twin in twins]), **bounds)


def test_a_model_is_left_as_it_was():
    model, sequences = built("lstm")
    batch = batch_of(sequences, [0, 1])
    compute_all_at_once(model, lambda: compute_record_losses(model, batch)[0], records=2)
    assert "forward" not in vars(model.rnn)
    assert not any(module._forward_hooks for module in model.modules())
    assert all(parameter.requires_grad for parameter in model.parameters())


@pytest.mark.parametrize("name", MODELS)
def test_every_parameter_that_the_twin_trains_is_trained(name):
    """So that the test above does not compare nothing with nothing."""
    model, sequences = built(name)
    touched = gradients_of_one(model, batch_of(sequences, [3]))
    assert sum(bool(gradient.abs().max() > 0) for gradient in touched) >= len(touched) - 2  # BERT: a bias and the types


@pytest.mark.parametrize("name", ["lstm", "gpt2", "attention"])
def test_the_one_record_loop_gives_the_same(name):
    model, sequences = built(name)
    batch = batch_of(sequences, list(range(TEXTS)))
    gradients_one_by_one(model, (compute_record_losses(model, piece)[0].sum() for piece in batch.split(TEXTS)))
    loop = [get_gradients(parameter).clone() for parameter in get_trained_parameters(model)]
    compute_all_at_once(model, lambda: compute_record_losses(model, batch)[0], records=TEXTS)
    for parameter, expected in zip(get_trained_parameters(model), loop, strict=True):
        torch.testing.assert_close(get_gradients(parameter), expected, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("kind", [nn.LSTM, nn.GRU])
@pytest.mark.parametrize("bidirectional", [False, True])
@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("batch_first", [False, True])
def test_a_watched_recurrent_layer_computes_what_torch_computes(kind, bidirectional, packed, batch_first):
    layer = kind(3, 4, 2, bidirectional=bidirectional, batch_first=batch_first).double()
    inputs = torch.randn(3, 6, 3, dtype=torch.float64)
    inputs = inputs if batch_first else inputs.transpose(0, 1)
    first = torch.randn(4 if bidirectional else 2, 3, 4, dtype=torch.float64)
    state = (first, first + 1) if kind is nn.LSTM else first
    given = pack_padded_sequence(inputs, [2, 6, 4], batch_first=batch_first, enforce_sorted=False) if packed else inputs
    taken = {}

    def take(parameter, rows):
        taken[parameter] = rows

    expected, last = layer(given, state)
    out, end = build_recording_forward(layer, take)(given, state)
    total = _weighted(out, end, batch_first)
    for gradient, parameter in zip(
        torch.autograd.grad(total, list(layer.parameters())), layer.parameters(), strict=True
    ):
        torch.testing.assert_close(taken[parameter].sum(0), gradient)
    torch.testing.assert_close(_weighted(expected, last, batch_first), total)


def _weighted(out, last, batch_first):
    """One number that depends on every output and on the last states, differently."""
    padded = pad_packed_sequence(out, batch_first=batch_first)[0] if not isinstance(out, torch.Tensor) else out
    parts = [padded, *(last if isinstance(last, tuple) else (last,))]
    return sum((part * torch.linspace(-1, 2, part.numel(), dtype=part.dtype).view(part.shape)).sum() for part in parts)


def test_recurrent_layers_without_biases_and_frozen_ones_are_left_alone():
    layer = nn.LSTM(3, 4, bias=False, batch_first=True)
    model = nn.Sequential(nn.Linear(3, 3), layer)
    layer.weight_hh_l0.requires_grad_(False)
    inputs = torch.randn(2, 5, 3)
    compute_all_at_once(model, lambda: model(inputs)[0].sum((1, 2)), records=2)
    twin = torch.autograd.grad(model(inputs)[0].sum(), get_trained_parameters(model))
    for parameter, expected in zip(get_trained_parameters(model), twin, strict=True):
        torch.testing.assert_close(get_gradients(parameter).sum(0), expected)


def test_a_layer_that_is_used_twice_adds_up():
    layer, inputs = nn.Linear(3, 3), torch.randn(2, 4, 3)
    model = nn.Sequential(layer, nn.Tanh(), layer)
    compute_all_at_once(model, lambda: model(inputs).sum((1, 2)), records=2)
    for i in range(2):
        twin = torch.autograd.grad(model(inputs[i]).sum(), get_trained_parameters(model))
        for parameter, expected in zip(get_trained_parameters(model), twin, strict=True):
            torch.testing.assert_close(get_gradients(parameter)[i], expected)


def test_the_token_of_padding_is_not_trained():
    model, symbols = nn.Sequential(nn.Embedding(5, 3, padding_idx=1), nn.Linear(3, 2)), torch.tensor([[1, 2], [4, 4]])
    compute_all_at_once(model, lambda: model(symbols).square().sum((1, 2)), records=2)
    twin = torch.autograd.grad(model(symbols).square().sum(), get_trained_parameters(model))
    for parameter, expected in zip(get_trained_parameters(model), twin, strict=True):
        torch.testing.assert_close(get_gradients(parameter).sum(0), expected)


def test_a_record_that_predicts_nothing_has_no_gradient():
    model, _ = built("lstm")
    batch = batch_of(RUNNING, [1, 2])
    batch.targets[0] = -100
    compute_all_at_once(model, lambda: compute_record_losses(model, batch)[0], records=2)
    for parameter in get_trained_parameters(model):
        assert get_gradients(parameter)[0].abs().max() == 0
        assert get_gradients(parameter)[1].isfinite().all()


class Meeting(nn.Module):
    """A model in which each record sees the mean of all."""

    def __init__(self):
        super().__init__()
        self.body = nn.Linear(12, 3)

    def forward(self, pixel_values):
        flat = pixel_values.flatten(1)
        return transformers.modeling_outputs.ImageClassifierOutput(logits=self.body(flat - flat.mean(0)))


def test_a_model_in_which_records_meet_unnoticed_is_refused_by_the_parameter_they_change():
    model = Meeting()
    check_layers(model, "record")
    with refused("records_meet") as refusal:
        RecordUnitGradients(model=model, sequences=arrays(3, 4), seed=0).check()
    assert "'body.weight'" in refusal.error.found


@pytest.mark.parametrize("name", MODELS)
def test_every_supported_model_passes_the_check_before_training_in_single_precision(name):
    model, sequences = MODELS[name][0](), MODELS[name][1]
    RecordUnitGradients(model=model, sequences=sequences, seed=0).check()
    assert model.training == MODELS[name][0]().training
    check_equal(
        model,
        lambda piece: compute_record_losses(model, piece)[0],
        sequences.build_batch(np.array([0]), lambda: np.random.default_rng(0)),
    )
