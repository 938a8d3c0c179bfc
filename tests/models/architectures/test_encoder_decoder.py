"""The recurrent encoder–decoder against one sequence and one token at a time."""

import pytest
import torch
from torch import nn
from transformers import AutoModelForSeq2SeqLM

import recollect.models.architectures  # noqa: F401 - registers the architectures
from recollect.models.architectures import TranslatingConfig, TranslatingLM

SIZES = {"vocab_size": 23, "units": 12, "embedding": 8}
IDS = {"pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2, "decoder_start_token_id": 1}
every_form = pytest.mark.parametrize(("cell", "attention"), [(c, a) for c in ("lstm", "gru") for a in (False, True)])


def model_of(cell="lstm", attention=True, seed=0, **settings):
    torch.manual_seed(seed)
    config = TranslatingConfig(cell=cell, attention=attention, **{**SIZES, **IDS, "layers": 2, **settings})
    return TranslatingLM(config).eval()


def symbols(*shape, seed=0):
    return torch.randint(3, SIZES["vocab_size"], shape, generator=torch.Generator().manual_seed(seed))


def cells_of(rnn, kind):
    cells = []
    for layer in range(rnn.num_layers):
        weights = {n: getattr(rnn, f"{n}_l{layer}") for n in ("weight_ih", "weight_hh", "bias_ih", "bias_hh")}
        cells.append(kind(weights["weight_ih"].shape[1], rnn.hidden_size))
        cells[-1].load_state_dict(weights)
    return cells


def through(cells, states, value):
    """One token through all layers, whose states are changed."""
    for i, cell in enumerate(cells):
        states[i] = cell(value, states[i])
        value = states[i][0] if isinstance(cell, nn.LSTMCell) else states[i]
    return value


def stepped(model, source, target):
    """The same logits for one pair, from cells and from attention as Luong et al. print it."""
    kind = nn.LSTMCell if model.config.cell == "lstm" else nn.GRUCell
    states = [None] * model.config.layers
    cells = cells_of(model.encoder.rnn, kind)
    seen = [through(cells, states, model.encoder.embed_tokens.weight[symbol][None]) for symbol in source]
    cells, logits = cells_of(model.rnn, kind), []
    for symbol in target:
        h = through(cells, states, model.embed_tokens.weight[symbol][None])
        if model.attention is not None:
            scores = torch.stack([(h @ model.attention.score.weight.T @ s.T).squeeze() for s in seen])
            weights = torch.exp(scores) / torch.exp(scores).sum()
            context = sum(w * s for w, s in zip(weights, seen, strict=True))
            h = torch.tanh(torch.cat([context, h], 1) @ model.attention.combine.weight.T)
        logits.append(model.lm_head(h)[0])
    return torch.stack(logits)


def ragged(lengths, side="right"):
    """Padded sources, their mask, and the sources themselves."""
    sources = [symbols(n, seed=n) for n in lengths]
    padded, mask = torch.zeros(len(lengths), max(lengths), dtype=torch.long), torch.zeros(len(lengths), max(lengths))
    for row, source in enumerate(sources):
        span = slice(0, len(source)) if side == "right" else slice(max(lengths) - len(source), None)
        padded[row, span], mask[row, span] = source, 1
    return padded, mask.long(), sources


@every_form
@pytest.mark.parametrize("side", ["left", "right"])
def test_logits_are_those_of_each_pair_alone_stepped_one_by_one(cell, attention, side):
    model, targets = model_of(cell, attention), symbols(3, 5)
    padded, mask, sources = ragged([7, 1, 4], side)
    logits = model(padded, attention_mask=mask, decoder_input_ids=targets).logits
    for row in range(3):
        torch.testing.assert_close(logits[row], stepped(model, sources[row], targets[row]))


@every_form
def test_padded_targets_change_no_number_of_a_real_token(cell, attention):
    model, targets = model_of(cell, attention), symbols(3, 5)
    padded, mask, sources = ragged([7, 1, 4])
    shown = torch.ones(3, 5, dtype=torch.long)
    shown[1, 2:] = 0
    for use_cache in (False, True):
        answer = model(
            padded,
            attention_mask=mask,
            decoder_input_ids=targets * shown,
            decoder_attention_mask=shown,
            use_cache=use_cache,
        )
        torch.testing.assert_close(answer.logits[1, :2], stepped(model, sources[1], targets[1, :2]))
    alone = model(sources[1][None], decoder_input_ids=targets[1:2, :2], use_cache=True)
    for together, single in zip(answer.past_key_values, alone.past_key_values, strict=True):
        torch.testing.assert_close(together[1], single[0])


@every_form
def test_the_encoder_need_not_run_twice(cell, attention):
    model, targets = model_of(cell, attention), symbols(3, 5)
    padded, mask, _ = ragged([7, 2, 4])
    encoded = model.get_encoder()(padded, attention_mask=mask)
    whole = model(padded, attention_mask=mask, decoder_input_ids=targets).logits
    first = model(attention_mask=mask, encoder_outputs=encoded, decoder_input_ids=targets[:, :3], use_cache=True)
    second = model(
        attention_mask=mask,
        encoder_outputs=encoded,
        decoder_input_ids=targets[:, 3:],
        past_key_values=first.past_key_values,
    )
    torch.testing.assert_close(torch.cat([first.logits, second.logits], 1), whole)


def test_labels_are_predicted_from_those_before_them_and_the_start_token():
    model, labels = model_of(), symbols(2, 5)
    labels[0, 3:] = -100
    padded, mask, _ = ragged([3, 6])
    answer = model(padded, attention_mask=mask, labels=labels)
    shown = torch.cat([torch.ones(2, 1, dtype=torch.long), labels[:, :-1].clamp(min=0)], 1)
    logprobs = model(padded, attention_mask=mask, decoder_input_ids=shown).logits.log_softmax(-1)
    counted = [(row, t) for row in range(2) for t in range(5) if labels[row, t] != -100]
    expected = -torch.stack([logprobs[row, t, labels[row, t]] for row, t in counted]).mean()
    torch.testing.assert_close(answer.loss, expected)


@every_form
def test_a_saved_model_loads_with_the_plain_auto_class(cell, attention, tmp_path):
    model = model_of(cell, attention)
    model.save_pretrained(tmp_path)
    loaded = AutoModelForSeq2SeqLM.from_pretrained(tmp_path)
    assert type(loaded) is TranslatingLM
    given = {"input_ids": symbols(2, 6), "decoder_input_ids": symbols(2, 4)}
    assert torch.equal(loaded(**given).logits, model(**given).logits)


@every_form
@pytest.mark.parametrize("how", [{}, {"do_sample": True}, {"num_beams": 4, "num_return_sequences": 2}])
def test_generating_with_the_state_carried_along_equals_reading_all_again(cell, attention, how):
    model = model_of(cell, attention, seed=4)
    padded, mask, _ = ragged([7, 2, 4])
    texts = []
    for use_cache in (True, False):
        torch.manual_seed(0)
        texts.append(model.generate(padded, attention_mask=mask, max_new_tokens=9, use_cache=use_cache, **how))
    assert torch.equal(*texts)
    assert (texts[0][:, 0] == 1).all()


def test_greedy_generation_takes_the_most_likely_token_each_time():
    model = model_of(seed=4)
    padded, mask, sources = ragged([7, 2, 4])
    texts = model.generate(padded, attention_mask=mask, max_new_tokens=6, eos_token_id=None)
    for source, text in zip(sources, texts, strict=True):
        assert torch.equal(stepped(model, source, text[:-1]).argmax(-1), text[1:])


def test_a_target_must_come_from_somewhere():
    with pytest.raises(ValueError, match="Neither decoder_input_ids nor labels"):
        model_of()(symbols(1, 3))
