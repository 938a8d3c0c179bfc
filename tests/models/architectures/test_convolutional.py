"""Causal convolutional language models against a sum written out step by step."""

import pytest
import torch
from transformers import AutoModelForCausalLM

import recollect.models.architectures  # noqa: F401 - registers the architectures
from recollect.models.architectures import ConvolutionalConfig, ConvolutionalLM

SIZES = {"vocab_size": 23, "units": 8, "embedding": 6, "width": 3, "pad_token_id": 0, "eos_token_id": 2}
FORMS = {
    "one": {"form": "cnn", "layers": 1},
    "cnn": {"form": "cnn", "layers": 3},
    "wavenet": {"form": "wavenet", "layers": 3},
    "dilated": {"form": "cnn", "layers": 2, "dilations": [3, 1]},
    "narrow": {"form": "wavenet", "layers": 2, "width": 1},
}
every_form = pytest.mark.parametrize("form", FORMS)


def model_of(form="wavenet", seed=0, **settings):
    torch.manual_seed(seed)
    return ConvolutionalLM(ConvolutionalConfig(**{**SIZES, **FORMS[form], **settings})).eval()


def tokens(*shape, seed=0):
    return torch.randint(3, SIZES["vocab_size"], shape, generator=torch.Generator().manual_seed(seed))


def written_out(model, sequence):
    """The logits of one sequence, every convolution as the sum over its taps."""
    config = model.config
    values = [model.embed_tokens.weight[token] for token in sequence]
    for layer, dilation in zip(model.layers, config.dilations, strict=True):
        weight, bias, outputs = layer.convolution.weight, layer.convolution.bias, []
        for t in range(len(values)):
            total = bias.clone()
            for tap in range(config.width):
                at = t - (config.width - 1 - tap) * dilation
                if at >= 0:
                    total = total + weight[:, :, tap] @ values[at]
            if config.form == "cnn":
                outputs.append(total.clamp(min=0))
                continue
            added = torch.tanh(total[: config.units]) / (1 + torch.exp(-total[config.units :]))
            outputs.append(added + values[t] if len(values[t]) == config.units else added)
        values = outputs
    return torch.stack([model.lm_head(value) for value in values])


@every_form
def test_logits_are_the_sums_over_the_past(form):
    model, ids = model_of(form), tokens(2, 11)
    for row in range(2):
        torch.testing.assert_close(model(ids).logits[row], written_out(model, ids[row]))


@every_form
def test_a_text_read_token_by_token_is_the_text_read_at_once(form):
    model, ids, state, logits = model_of(form), tokens(3, 9), None, []
    for t in range(9):
        answer = model(ids[:, t : t + 1], past_key_values=state, use_cache=True)
        state = answer.past_key_values
        logits.append(answer.logits)
    torch.testing.assert_close(torch.cat(logits, 1), model(ids).logits)
    assert all(len(part) == 3 for part in state)


@every_form
@pytest.mark.parametrize("side", ["left", "right"])
def test_padding_changes_no_number_of_a_real_token(form, side):
    model, ids, lengths = model_of(form), tokens(4, 9), [9, 4, 1, 6]
    padded, mask = torch.zeros_like(ids), torch.zeros_like(ids)
    spans = [slice(0, n) if side == "right" else slice(9 - n, 9) for n in lengths]
    for row, (span, n) in enumerate(zip(spans, lengths, strict=True)):
        padded[row, span], mask[row, span] = ids[row, :n], 1
    answer = model(padded, attention_mask=mask, use_cache=True)
    for row, (span, n) in enumerate(zip(spans, lengths, strict=True)):
        alone = model(ids[row : row + 1, :n], use_cache=True)
        torch.testing.assert_close(answer.logits[row, span], alone.logits[0])
        if side == "left":
            for together, single in zip(answer.past_key_values, alone.past_key_values, strict=True):
                torch.testing.assert_close(together[row], single[0])


def test_the_loss_is_the_mean_over_all_labels_that_count():
    model, ids = model_of(), tokens(2, 6)
    labels = torch.where(torch.arange(6) < 3, ids, -100)
    answer = model(ids, labels=labels)
    logprobs = answer.logits.log_softmax(-1)
    expected = -torch.stack([logprobs[row, t - 1, ids[row, t]] for row in range(2) for t in (1, 2)]).mean()
    torch.testing.assert_close(answer.loss, expected)
    torch.testing.assert_close(model(ids, logits_to_keep=2).logits, answer.logits[:, -2:])


@every_form
def test_a_saved_model_loads_with_the_plain_auto_class(form, tmp_path):
    model, ids = model_of(form), tokens(2, 6)
    model.save_pretrained(tmp_path)
    loaded = AutoModelForCausalLM.from_pretrained(tmp_path)
    assert type(loaded) is ConvolutionalLM
    assert torch.equal(loaded(ids).logits, model(ids).logits)


@every_form
@pytest.mark.parametrize("how", [{}, {"do_sample": True}, {"num_beams": 4}])
def test_generating_with_the_state_carried_along_equals_reading_all_again(form, how):
    model, ids = model_of(form, seed=3), tokens(3, 5)
    texts = []
    for use_cache in (True, False):
        torch.manual_seed(0)
        texts.append(model.generate(ids, max_new_tokens=12, use_cache=use_cache, **how))
    assert torch.equal(*texts)


@pytest.mark.parametrize(
    ("form", "layers", "units", "width", "embedding"),
    [
        ("cnn", 1, 436, 10, 136),
        ("cnn", 2, 188, 10, 133),
        ("cnn", 4, 122, 10, 131),
        ("wavenet", 2, 188, 5, 133),
        ("wavenet", 4, 122, 5, 131),
    ],
)
def test_the_papers_sizes_have_620_thousand_parameters(form, layers, units, width, embedding):
    config = ConvolutionalConfig(form=form, layers=layers, units=units, width=width, embedding=embedding, vocab_size=50)
    assert sum(p.numel() for p in ConvolutionalLM(config).parameters()) == pytest.approx(620_000, abs=5_000)


def test_a_layer_without_dilation_is_refused():
    with pytest.raises(ValueError, match="2 dilations were given for 3 layers"):
        ConvolutionalConfig(layers=3, dilations=[1, 2])
