"""The recurrent language model against cells stepped one by one."""

import pytest
import torch
from torch import nn
from transformers import AutoModelForCausalLM

import recollect.models.architectures  # noqa: F401 - registers the architectures
from recollect.models.architectures import RecurrentConfig, RecurrentLM

SIZES = {"vocab_size": 23, "units": 12, "embedding": 8, "pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2}
every_cell = pytest.mark.parametrize("cell", ["lstm", "gru"])


def model_of(cell="lstm", seed=0, **settings):
    torch.manual_seed(seed)
    return RecurrentLM(RecurrentConfig(cell=cell, **{**SIZES, "layers": 2, **settings})).eval()


def symbols(*shape, seed=0):
    return torch.randint(3, SIZES["vocab_size"], shape, generator=torch.Generator().manual_seed(seed))


def stepped(model, ids):
    """The same logits from nn.LSTMCell or nn.GRUCell, one sequence and one token at a time."""
    kind = nn.LSTMCell if model.config.cell == "lstm" else nn.GRUCell
    cells = []
    for layer in range(model.config.layers):
        weights = {n: getattr(model.rnn, f"{n}_l{layer}") for n in ("weight_ih", "weight_hh", "bias_ih", "bias_hh")}
        cells.append(kind(weights["weight_ih"].shape[1], model.config.units))
        cells[-1].load_state_dict(weights)
    rows = []
    for sequence in ids:
        states, logits = [None] * len(cells), []
        for symbol in sequence:
            value = model.embed_tokens.weight[symbol][None]
            for i, cell in enumerate(cells):
                states[i] = cell(value, states[i])
                value = states[i][0] if model.config.cell == "lstm" else states[i]
            logits.append(model.lm_head(value)[0])
        rows.append(torch.stack(logits))
    return torch.stack(rows)


@every_cell
def test_logits_are_those_of_the_cells_stepped_one_by_one(cell):
    model, ids = model_of(cell), symbols(3, 9)
    torch.testing.assert_close(model(ids).logits, stepped(model, ids))


@every_cell
def test_a_text_read_in_two_parts_is_the_text_read_at_once(cell):
    model, ids = model_of(cell), symbols(3, 9)
    first = model(ids[:, :4], use_cache=True)
    second = model(ids[:, 4:], past_key_values=first.past_key_values, use_cache=True)
    whole = model(ids, use_cache=True)
    torch.testing.assert_close(torch.cat([first.logits, second.logits], 1), whole.logits)
    for after, expected in zip(second.past_key_values, whole.past_key_values, strict=True):
        assert after.shape == (3, 2, SIZES["units"])
        torch.testing.assert_close(after, expected)


@every_cell
@pytest.mark.parametrize("side", ["left", "right"])
@pytest.mark.parametrize("use_cache", [True, False])
def test_padding_changes_no_number_of_a_real_token(cell, side, use_cache):
    model, ids, lengths = model_of(cell), symbols(4, 9), [9, 4, 1, 6]
    padded, mask = torch.zeros_like(ids), torch.zeros_like(ids)
    spans = [slice(0, n) if side == "right" else slice(9 - n, 9) for n in lengths]
    for row, (span, n) in enumerate(zip(spans, lengths, strict=True)):
        padded[row, span], mask[row, span] = ids[row, :n], 1
    answer = model(padded, attention_mask=mask, use_cache=use_cache)
    for row, (span, n) in enumerate(zip(spans, lengths, strict=True)):
        alone = model(ids[row : row + 1, :n], use_cache=use_cache)
        torch.testing.assert_close(answer.logits[row, span], alone.logits[0])
        if use_cache:
            for together, single in zip(answer.past_key_values, alone.past_key_values, strict=True):
                torch.testing.assert_close(together[row], single[0])


def test_the_loss_is_the_mean_over_all_labels_that_count():
    model, ids = model_of(), symbols(2, 6)
    labels = ids.clone()
    labels[0, 3:] = -100
    answer = model(ids, labels=labels)
    logprobs = answer.logits.log_softmax(-1)
    counted = [(0, 1), (0, 2), *((1, t) for t in range(1, 6))]
    expected = -sum(logprobs[row, t - 1, ids[row, t]] for row, t in counted) / len(counted)
    torch.testing.assert_close(answer.loss, expected)


def test_only_the_logits_that_are_wanted_are_computed():
    model, ids = model_of(), symbols(2, 6)
    whole = model(ids).logits
    torch.testing.assert_close(model(ids, logits_to_keep=2).logits, whole[:, -2:])
    torch.testing.assert_close(model(ids, logits_to_keep=torch.tensor([0, 3])).logits, whole[:, [0, 3]])


@every_cell
@pytest.mark.parametrize("tied", [True, False])
def test_a_saved_model_loads_with_the_plain_auto_class(cell, tied, tmp_path):
    model, ids = model_of(cell, embedding=12, tie_word_embeddings=tied), symbols(2, 6)
    model.save_pretrained(tmp_path)
    assert (tmp_path / "model.safetensors").exists()
    loaded = AutoModelForCausalLM.from_pretrained(tmp_path)
    assert type(loaded) is RecurrentLM
    assert (loaded.lm_head.weight is loaded.embed_tokens.weight) == tied
    assert torch.equal(loaded(ids).logits, model(ids).logits)


@every_cell
@pytest.mark.parametrize(
    "how", [{}, {"do_sample": True}, {"num_beams": 4}, {"num_beams": 3, "num_return_sequences": 3}, {"top_k": 3}]
)
def test_generating_with_the_state_carried_along_equals_reading_all_again(cell, how):
    model, ids = model_of(cell, seed=3), symbols(3, 5)
    texts = []
    for use_cache in (True, False):
        torch.manual_seed(0)
        texts.append(model.generate(ids, max_new_tokens=12, use_cache=use_cache, **how))
    assert torch.equal(*texts)
    assert texts[0].shape[1] > 5


@every_cell
def test_prompts_of_different_length_are_continued_as_if_alone(cell):
    model, ids = model_of(cell, seed=3), symbols(2, 5)
    padded, mask = torch.cat([ids, torch.zeros(2, 3, dtype=torch.long)], 1), torch.ones(2, 8, dtype=torch.long)
    padded[1] = torch.cat([torch.zeros(3, dtype=torch.long), ids[1]])
    padded[0, 5:] = symbols(3, seed=5)
    mask[1, :3] = 0
    together = model.generate(padded, attention_mask=mask, max_new_tokens=6, do_sample=False)
    alone = model.generate(ids[1:], max_new_tokens=6, do_sample=False)
    assert torch.equal(together[1, 8:][: alone.shape[1] - 5], alone[0, 5:])


@pytest.mark.parametrize(
    ("cell", "layers", "units", "embedding"),
    [("lstm", 2, 200, 149), ("lstm", 1, 320, 144), ("gru", 1, 370, 162), ("gru", 2, 235, 143)],
)
def test_the_papers_sizes_have_620_thousand_parameters(cell, layers, units, embedding):
    model = model_of(cell, layers=layers, units=units, embedding=embedding, vocab_size=50)
    assert sum(p.numel() for p in model.parameters()) == pytest.approx(620_000, abs=1_000)


def test_dropout_is_off_when_the_model_is_scored_and_on_when_it_learns():
    model, ids = model_of(dropout=0.5), symbols(2, 6)
    assert torch.equal(model(ids).logits, model(ids).logits)
    model.train()
    assert not torch.equal(model(ids).logits, model(ids).logits)


def test_a_tied_embedding_of_another_size_is_refused():
    with pytest.raises(ValueError, match="tied embedding"):
        RecurrentConfig(**SIZES, tie_word_embeddings=True)


@every_cell
def test_opacus_layers_take_the_weights_under_the_same_names(cell):
    from opacus.layers import DPGRU, DPLSTM

    model, ids = model_of(cell), symbols(3, 7)
    expected = model(ids).logits
    twin = {"lstm": DPLSTM, "gru": DPGRU}[cell](SIZES["embedding"], SIZES["units"], num_layers=2, batch_first=True)
    twin.load_state_dict(model.rnn.state_dict())
    model.rnn = twin
    torch.testing.assert_close(model(ids).logits, expected)
