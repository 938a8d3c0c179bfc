"""How models are brought into memory: precision, bits, devices, attention, and GGUF files."""

from __future__ import annotations

import multiprocessing
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

import recollect
from recollect import load_model
from recollect.corpora.record import Record
from recollect.errors import RecollectWarning
from recollect.models.loading import devices
from recollect.models.loading.pretrained import settle_network
from recollect.models.loading.stored_weights import read_stored_weights
from recollect.models.model import Question
from recollect.models.model_options import Loading
from recollect.pipeline.plans.refs import ModelRef
from recollect.testing.refusals import refused
from recollect.testing.tiny import build_tiny_model, save_tiny

RECORDS = [Record(id="r", text="the quick brown fox jumps over it")]


@pytest.fixture
def half(tmp_path):
    """A tiny GPT-2 whose weights are stored in bfloat16."""
    folder = save_tiny(build_tiny_model("gpt2"), tmp_path / "half")
    AutoModelForCausalLM.from_pretrained(folder).to(torch.bfloat16).save_pretrained(folder)
    return folder


@pytest.mark.parametrize("native", [True, False])
def test_the_stored_precision_is_kept_where_the_device_computes_in_it(half, monkeypatch, native, recwarn):
    monkeypatch.setattr("recollect.models.loading.local_models.computes_in", lambda device, dtype: native)
    model = load_model(str(half))
    assert model.question.precision == ("bfloat16" if native else "float32")
    told = [str(each.message) for each in recwarn if issubclass(each.category, RecollectWarning)]
    assert bool(told) is not native
    if not native:
        assert "stored in bfloat16 and computed in float32" in told[0]
        assert "GB of memory" in told[0]


def test_what_was_chosen_is_what_it_computes_in_and_part_of_its_address(half):
    refs = [ModelRef(model=str(half), precision=each) for each in ("float32", "bfloat16")]
    with pytest.warns(RecollectWarning, match="computed in float32"):
        models = [ref.load() for ref in refs]
    assert [model._network.dtype for model in models] == [torch.float32, torch.bfloat16]
    assert models[0].digest == models[1].digest
    assert len({recollect.models.model.compute_address(model) for model in models}) == 2
    exact, rounded = (model.answer(RECORDS).logprob for model in models)
    assert abs(exact - rounded).max() < 0.1


def test_half_precision_is_scored_in_single_precision_from_the_output_layer_on(half):
    model = load_model(str(half), question=Question(precision="bfloat16"))
    network, tokenizer = AutoModelForCausalLM.from_pretrained(half), AutoTokenizer.from_pretrained(half)
    ids = tokenizer(RECORDS[0].text, return_tensors="pt")["input_ids"]
    with torch.no_grad():
        states = network.to(torch.bfloat16).transformer(ids)[0][0].float()
    logits = states @ network.lm_head.weight.detach().float().T
    expected = logits.log_softmax(-1)[torch.arange(ids.shape[1] - 1), ids[0, 1:]]
    np.testing.assert_allclose(model.answer(RECORDS).logprob, expected, atol=2e-3)


def test_headers_tell_precision_and_size_without_torch(half):
    stored = read_stored_weights(half)
    assert stored.precision == "bfloat16"
    assert stored.compute_bytes("float32") == 2 * stored.compute_bytes("bfloat16")
    assert read_stored_weights(half.parent) is None
    (half / "model.safetensors").write_bytes(b"short")
    assert read_stored_weights(half) is None


def test_a_reference_computes_in_the_precision_of_the_target_or_is_refused(half, tmp_path):
    base = save_tiny(build_tiny_model("gpt2"), tmp_path / "base")
    people = [{"user": f"u{i}", "text": f"the cat number {i} sat on mat {j}"} for i in range(4) for j in range(2)]
    session = recollect.Session(work=tmp_path / "work")
    given = {"controls": people, "precision": "bfloat16"}
    references = [{"model": str(base), "precision": each} for each in ("stored", "float32")]
    plan = session.plan("membership", str(half), people, reference=references[0], **given)
    assert plan.load_evidence().models["reference"].question.precision == "bfloat16"
    plan = session.plan(
        "membership", str(half), people, reference={"model": str(base), "precision": "float32"}, **given
    )
    with refused("other_precision"):
        plan.load_evidence()


@pytest.mark.parametrize("bits", ["4bit", "8bit"])
def test_without_bitsandbytes_bits_are_refused_with_the_command_that_adds_it(half, monkeypatch, bits):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with refused("bitsandbytes_missing") as refusal:
        load_model(str(half), loading=Loading(bits=bits))
    assert "pip install bitsandbytes" in refusal.error.do


def test_weights_of_eight_bits_are_a_model_of_its_own(tmp_path):
    pytest.importorskip("bitsandbytes")
    folder = save_tiny(build_tiny_model("llama"), tmp_path / "llama")
    whole, rounded = load_model(str(folder)), load_model(str(folder), loading=Loading(bits="8bit", device="cpu"))
    assert whole.digest != rounded.digest
    assert abs(whole.answer(RECORDS).logprob - rounded.answer(RECORDS).logprob).max() > 0
    assert load_model(str(folder), loading=Loading(bits="8bit", device="cpu")).digest == rounded.digest


def test_attention_is_chosen_by_the_user_and_never_by_the_configuration(tmp_path):
    folder = save_tiny(build_tiny_model("llama"), tmp_path / "llama")
    text = (folder / "config.json").read_text()
    (folder / "config.json").write_text(text.replace("{", '{"_attn_implementation": "hub/evil", ', 1))
    plain, eager = load_model(str(folder)), load_model(str(folder), loading=Loading(attention="eager"))
    assert plain._network.config._attn_implementation == "sdpa"
    assert eager._network.config._attn_implementation == "eager"
    assert plain.digest == eager.digest
    np.testing.assert_allclose(plain.answer(RECORDS).logprob, eager.answer(RECORDS).logprob, atol=1e-4)


def test_a_model_that_is_spread_stays_where_it_is_and_gets_its_precision():
    network = build_tiny_model("gpt2").network
    network.hf_device_map = {"transformer": 0, "lm_head": 1}
    network.to = None  # moving it would undo the map
    assert settle_network(network, "bfloat16", torch.device("cpu")).dtype == torch.bfloat16


def test_a_model_spread_by_accelerate_answers_as_on_one_device(half):
    pytest.importorskip("accelerate")
    question = Question(precision="float32")
    with pytest.warns(RecollectWarning):
        spread, whole = (
            load_model(str(half), question=question, loading=Loading(device=each)) for each in ("auto", "cpu")
        )
    assert spread.digest == whole.digest
    np.testing.assert_allclose(spread.answer(RECORDS).logprob, whole.answer(RECORDS).logprob, atol=1e-5)


def test_workers_take_devices_in_turn(monkeypatch):
    monkeypatch.setattr(torch.accelerator, "current_accelerator", lambda check_available: torch.device("cuda"))
    monkeypatch.setattr(torch.accelerator, "device_count", lambda: 2)
    assert devices.pick_device() == torch.device("cuda")
    monkeypatch.setattr(devices, "parent_process", multiprocessing.current_process)
    taken = []
    for number in (1, 2, 3):
        monkeypatch.setattr(devices, "current_process", lambda number=number: SimpleNamespace(_identity=(number,)))
        taken.append(devices.pick_device().index)
    assert taken == [0, 1, 0]


def write_gguf(path, folder):
    """A tiny llama with its words as a GGUF file."""
    gguf = pytest.importorskip("gguf")
    network = AutoModelForCausalLM.from_pretrained(folder)
    config, writer = network.config, gguf.GGUFWriter(str(path), "llama")
    writer.add_block_count(config.num_hidden_layers)
    writer.add_context_length(64)
    writer.add_embedding_length(config.hidden_size)
    writer.add_feed_forward_length(config.intermediate_size)
    writer.add_head_count(config.num_attention_heads)
    writer.add_head_count_kv(config.num_key_value_heads)
    writer.add_layer_norm_rms_eps(config.rms_norm_eps)
    writer.add_vocab_size(config.vocab_size)
    tokens = [*(chr(33 + i) for i in range(config.vocab_size - 1)), "th"]
    writer.add_tokenizer_model("gpt2")
    writer.add_token_list(tokens)
    writer.add_token_merges(["t h"])
    writer.add_bos_token_id(0)
    writer.add_eos_token_id(1)
    names = {
        "model.embed_tokens.weight": "token_embd.weight",
        "model.norm.weight": "output_norm.weight",
        "lm_head.weight": "output.weight",
    }
    parts = {
        "self_attn.q_proj": "attn_q",
        "self_attn.k_proj": "attn_k",
        "self_attn.v_proj": "attn_v",
        "self_attn.o_proj": "attn_output",
        "mlp.gate_proj": "ffn_gate",
        "mlp.up_proj": "ffn_up",
        "mlp.down_proj": "ffn_down",
        "input_layernorm": "attn_norm",
        "post_attention_layernorm": "ffn_norm",
    }
    for name, weights in network.state_dict().items():
        found = names.get(name) or next(
            f"blk.{name.split('.')[2]}.{short}.weight" for long, short in parts.items() if f".{long}.weight" in name
        )
        writer.add_tensor(found, weights.numpy())
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def test_a_gguf_file_is_a_causal_model(tmp_path):
    folder = save_tiny(build_tiny_model("llama"), tmp_path / "llama")
    write_gguf(tmp_path / "model.gguf", folder)
    with pytest.warns(RecollectWarning, match="stored quantised and computed in float32"):
        model = load_model(str(tmp_path / "model.gguf"))
    assert (model.kind, model.question.precision) == ("causal", "float32")
    answers = model.answer([Record(id="r", text="the hat")])
    assert np.isfinite(answers.logprob).all()
    assert answers.rows > 2


def test_a_damaged_gguf_file_is_refused(tmp_path):
    pytest.importorskip("gguf")
    (tmp_path / "model.gguf").write_bytes(b"GGUF" + b"\0" * 40)
    with refused("gguf_unreadable"):
        load_model(str(tmp_path / "model.gguf"))


def test_without_gguf_the_command_that_adds_it_is_given(tmp_path, monkeypatch):
    (tmp_path / "model.gguf").write_bytes(b"GGUF")
    monkeypatch.setitem(__import__("sys").modules, "gguf", None)
    with refused("gguf_missing") as refusal:
        load_model(str(tmp_path / "model.gguf"))
    assert "recollect[gguf]" in refusal.error.do
