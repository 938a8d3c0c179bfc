"""Four numbers per token equal their definitions, whatever a model does around its output layer."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

from recollect.models.hugging_face import token_scores
from recollect.models.hugging_face.token_scores import TokenScorer, score_tokens
from recollect.models.model import Sampling
from recollect.testing.refusals import refused
from recollect.testing.tiny import build_tiny_model

LOGIT = st.floats(-1e4, 1e4, width=32) | st.sampled_from([0.0, 1.0, -float("inf")])
IDS = torch.tensor([[7, 8, 9, 10, 11, 12, 13], [20, 21, 22, 23, 24, 25, 26]])


@settings(deadline=None)
@given(st.lists(LOGIT, min_size=1, max_size=30), st.data())
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_the_numbers_are_what_their_definitions_say(dtype, logits, data):
    if max(logits) == -float("inf"):
        logits = [*logits, 0.0]
    symbol = data.draw(st.integers(0, len(logits) - 1))
    found = score_tokens(torch.tensor([logits], dtype=dtype), torch.tensor([symbol]))
    shifted = np.array(logits) - max(logits)
    logprobs = shifted - np.log(np.exp(shifted).sum())
    kept = [(p, lp) for p, lp in zip(np.exp(logprobs), logprobs, strict=True) if p > 0]
    entropy = -sum(p * lp for p, lp in kept)
    # what is further away than the smallest normal number has no weight, but its own log-probability is exact
    assert found.rank[0] == sum(other >= logits[symbol] for other in logits)
    assert found.logprob[0] == pytest.approx(logprobs[symbol], rel=1e-6, abs=1e-5)
    assert found.entropy[0] == pytest.approx(entropy, abs=1e-5)
    assert found.logprob_std[0] == pytest.approx(np.sqrt(sum(p * (lp + entropy) ** 2 for p, lp in kept)), abs=1e-4)


@pytest.mark.parametrize("scale", [0.0, 0.01, 0.3, 1.0, 3.0, 10.0, 100.0])
def test_single_precision_is_enough_for_a_large_vocabulary(scale, assert_numbers):
    rng = np.random.default_rng(0)
    logits = (scale * rng.standard_normal((12, 60_000)) + 50).astype(np.float32)
    logits[:3, 17] += 12  # one token far above all others, which together still outweigh it
    true = rng.integers(0, 60_000, 12)
    found = score_tokens(torch.from_numpy(logits), torch.from_numpy(true))
    assert_numbers(found, range(12), list(zip(logits.astype(np.float64), true, strict=True)), exact_ranks=True)


def test_ties_count_against_the_token():
    found = score_tokens(torch.tensor([[3.0, 3.0, 3.0, 1.0]]), torch.tensor([1]))
    assert found.rank.tolist() == [3]


@pytest.mark.parametrize("bad", [float("nan"), float("inf")])
def test_logits_that_are_no_numbers_are_an_error(bad):
    with refused("logits_not_finite"):
        score_tokens(torch.tensor([[0.0, bad, 1.0]]), torch.tensor([0]))


def everything(network, **inputs):
    """The reader, and what it reads at every place, with the true tokens."""
    inputs = inputs or {"input_ids": IDS}
    reader = TokenScorer(network, {name: ids[:1, :2] for name, ids in inputs.items()})
    true = torch.arange(IDS.numel()) * 5
    return reader, reader.score(inputs, torch.arange(IDS.numel()), true), true


FAMILIES = ["gpt2", "llama", "gemma2", "opt", "mamba", "bert", "roberta", "t5", "bart"]


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("rows", [3, 512])
def test_every_family_is_read_without_full_logits(family, rows, logits_alone, assert_numbers, monkeypatch):
    monkeypatch.setattr(token_scores, "MAX_ROWS", rows)
    network = build_tiny_model(family, precision="float64").network
    pair = {"input_ids": IDS, "decoder_input_ids": IDS} if network.config.is_encoder_decoder else {"input_ids": IDS}
    reader, found, true = everything(network, **pair)
    assert reader.skips_full_logits
    alone = [logits_alone(network, **dict.fromkeys(pair, ids)) for ids in IDS]
    expected = list(zip(np.concatenate(alone), true, strict=True))
    # Mamba rounds its logits to single precision, so that the twin has ties that the states do not have
    assert_numbers(found, range(len(true)), expected, exact_ranks=family != "mamba")


class Squared(nn.Module):
    """An output layer of another kind, which is not linear."""

    def __init__(self, inner):
        super().__init__()
        self.inner = inner

    def forward(self, states):
        return self.inner(states) ** 2


def test_an_output_layer_of_another_kind_is_called_as_it_is(assert_numbers):
    network = build_tiny_model("gpt2").network
    network.lm_head = Squared(network.lm_head)
    reader, found, true = everything(network)
    assert reader.skips_full_logits
    logits = network(input_ids=IDS).logits.detach().double().flatten(0, 1).numpy()
    assert_numbers(found, range(len(true)), list(zip(logits, true, strict=True)))


def after(network, change):
    """The network with something done to its logits that no configuration speaks of."""
    forward = network.forward

    def changed(**inputs):
        output = forward(**inputs)
        output.logits = change(output.logits)
        return output

    network.forward = changed
    return network


@pytest.mark.parametrize(
    "change",
    [
        lambda logits: torch.tanh(logits / 500) * 500,  # so wide a cap that small logits hardly show it
        lambda logits: logits + torch.arange(logits.shape[-1]) / 100,
        lambda logits: torch.cat([logits, logits[..., :3]], dim=-1),
        lambda logits: logits - logits.mean(dim=1, keepdim=True),  # depends on all rows
    ],
)
def test_logits_that_are_changed_in_an_unknown_way_are_read_whole(change, assert_numbers):
    network = after(build_tiny_model("gpt2").network, change)
    reader, found, true = everything(network)
    assert not reader.skips_full_logits
    logits = network(input_ids=IDS).logits.detach().double().flatten(0, 1).numpy()
    assert_numbers(found, range(len(true)), list(zip(logits, true, strict=True)))


@pytest.mark.parametrize(
    ("name", "change"),
    [("logit_scale", lambda logits: logits * 0.25), ("logits_scaling", lambda logits: logits / 0.25)],
)
def test_scaled_logits_are_recognised(name, change, assert_numbers):
    network = after(build_tiny_model("gpt2").network, change)
    setattr(network.config, name, 0.25)
    reader, found, true = everything(network)
    assert reader.skips_full_logits
    logits = network(input_ids=IDS).logits.detach().double().flatten(0, 1).numpy()
    assert_numbers(found, range(len(true)), list(zip(logits, true, strict=True)))


def test_a_bias_after_the_output_layer_is_recognised(assert_numbers):
    network = build_tiny_model("bart").network
    network.final_logits_bias.copy_(torch.linspace(-1, 1, network.final_logits_bias.shape[1]))
    reader, found, true = everything(network, input_ids=IDS, decoder_input_ids=IDS)
    assert reader.skips_full_logits
    logits = network(input_ids=IDS, decoder_input_ids=IDS).logits.detach().double().flatten(0, 1).numpy()
    assert_numbers(found, range(len(true)), list(zip(logits, true, strict=True)))


def test_half_precision_gives_the_numbers_of_the_model_s_own_logits(assert_numbers):
    network = build_tiny_model("gpt2", precision="bfloat16").network
    reader, found, true = everything(network)
    assert reader.skips_full_logits
    assert found.logprob.dtype == np.float32
    logits = network(input_ids=IDS).logits.detach().double().flatten(0, 1).numpy()
    assert_numbers(found, range(len(true)), list(zip(logits, true, strict=True)), within=0.05)


def test_nothing_of_the_reader_stays_in_the_model():
    network = build_tiny_model("gpt2").network
    whole = network(input_ids=IDS).logits
    everything(network)
    assert torch.equal(network(input_ids=IDS).logits, whole)
    assert not network.lm_head._forward_pre_hooks


@pytest.mark.parametrize("width", [3, 40, 41, 5_120, 5_121, 49_152, 60_001])
@pytest.mark.parametrize(("top_k", "temperature"), [(40, 1.0), (1, 1.0), (40, 0.7), (5, 2.0)])
def test_the_kept_mass_is_that_of_the_top_tokens(width, top_k, temperature):
    rng = np.random.default_rng(width)
    logits = rng.standard_normal((4, width)).astype(np.float32) * 3
    logits[0] = np.round(logits[0])  # many ties
    sampling = Sampling(top_k=top_k, temperature=temperature)
    found = score_tokens(torch.from_numpy(logits), torch.zeros(4, dtype=torch.int64), sampling)
    for row, kept in zip(logits.astype(np.float64), found.kept_mass, strict=True):
        probabilities = np.exp(row - row.max()) / np.exp(row - row.max()).sum()
        assert kept == pytest.approx(np.sort(probabilities ** (1 / temperature))[::-1][:top_k].sum(), rel=1e-5)


def test_a_token_among_the_top_is_drawn_with_its_share_of_the_kept_mass():
    logits = torch.tensor([[2.0, 1.0, 0.0, -1.0]])
    found = score_tokens(logits, torch.tensor([1]), Sampling(top_k=2, temperature=0.5))
    share = float(np.exp(found.logprob[0] / 0.5) / found.kept_mass[0])
    assert share == pytest.approx(float(torch.softmax(logits[0, :2] / 0.5, 0)[1]), rel=1e-5)
