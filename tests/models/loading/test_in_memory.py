"""Models in memory: the digest and the answers of the same weights in a folder, and the user's object left alone."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
import torch
import transformers
from transformers import AutoModelForCausalLM, AutoTokenizer

from recollect import load_model
from recollect.corpora.record import Record
from recollect.models import Access, Question, natural_reference
from recollect.models.architectures import PerceptronClassifier, PerceptronConfig, RecurrentConfig, RecurrentLM
from recollect.testing.fakes import Uniform
from recollect.testing.refusals import refused
from recollect.testing.tiny import build_tiny_model, build_tiny_tokenizer, save_tiny

RECORDS = [Record(id="a", text="The quick brown fox"), Record(id="b", text="jumps")]
PAIRS = [Record(id="a", source="The quick", target="brown fox"), Record(id="b", source="x", target="jumps over")]


def facts(network):
    """All of a network that must not change, and by which it would be noticed."""
    tensors = [*network.parameters(), *network.buffers()]
    state = [(id(each), each.dtype, each.device, each.requires_grad, each._version) for each in tensors]
    hooks = [len(module._forward_pre_hooks) + len(module._forward_hooks) for module in network.modules()]
    return state, hooks, [module.training for module in network.modules()], network.config.to_dict()


def assert_same(one, other, records):
    """The same model as far as anybody can tell."""
    assert one.digest == other.digest
    assert (one.kind, one.question, one.access) == (other.kind, other.question, other.access)
    here, there = one.answer(records), other.answer(records)
    for column in ("rank", "start", "end", "known"):
        np.testing.assert_array_equal(getattr(here, column), getattr(there, column))
    for column in ("logprob", "entropy", "logprob_std"):  # where a weight begins in memory moves the last digits
        np.testing.assert_allclose(getattr(here, column), getattr(there, column), atol=1e-5)


@pytest.mark.parametrize("family", ["gpt2", "llama", "bert", "roberta", "t5", "bart"])
def test_a_model_in_memory_is_the_one_in_its_folder(family, tmp_path):
    made = build_tiny_model(family)
    network, tokenizer = made.network.train().requires_grad_(True), made.tokenizer
    save_tiny(made, tmp_path)
    before = facts(network)
    model = load_model(network, tokenizer)
    assert_same(model, load_model(str(tmp_path)), PAIRS if model.kind == "seq2seq" else RECORDS)
    assert facts(network) == before


def test_tied_weights_stay_tied_and_are_stored_once(tmp_path):
    torch.manual_seed(0)
    config = RecurrentConfig(vocab_size=400, embedding=8, units=8, tie_word_embeddings=True)
    network, tokenizer = RecurrentLM(config), build_tiny_tokenizer()
    network.save_pretrained(tmp_path)
    tokenizer.save_pretrained(tmp_path)
    model = load_model(network, tokenizer, question=Question(precision="float64"))
    assert_same(model, load_model(str(tmp_path), question=Question(precision="float64")), RECORDS)
    copied = model._network
    assert copied.lm_head.weight is copied.embed_tokens.weight
    assert copied.lm_head.weight.dtype == torch.float64


@pytest.mark.parametrize("stored", [torch.bfloat16, torch.float64])
def test_another_precision_is_computed_in_by_a_copy_and_the_digest_is_of_what_is_stored(tmp_path, stored):
    made = build_tiny_model("gpt2")
    network = made.network.to(stored)
    save_tiny(made, tmp_path)
    before = facts(network)
    model = load_model(network, made.tokenizer)
    assert_same(model, load_model(str(tmp_path)), RECORDS)
    assert facts(network) == before
    assert model.digest != load_model(build_tiny_model("gpt2").network, made.tokenizer).digest


def test_weights_that_fit_are_shared_and_not_copied():
    network = build_tiny_model("gpt2").network
    model = load_model(network, build_tiny_model("gpt2").tokenizer)
    assert model._network is not network
    assert all(a is b for a, b in zip(model._network.parameters(), network.parameters(), strict=True))


def test_a_model_that_is_trained_further_must_be_loaded_again():
    made = build_tiny_model("gpt2")
    network = made.network.requires_grad_(True)
    model = load_model(network, made.tokenizer)
    before = model.answer(RECORDS).logprob
    optimiser = torch.optim.SGD(network.parameters(), lr=0.1)
    ids = torch.tensor([[1, 2, 3]])
    network(input_ids=ids, labels=ids).loss.backward()
    optimiser.step()
    with refused("model_changed"):
        model.answer(RECORDS)
    again = load_model(network, made.tokenizer)
    assert again.digest != model.digest
    assert not np.allclose(again.answer(RECORDS).logprob, before)


@pytest.mark.parametrize("family", ["gemma2", "bert", "bart"])
def test_it_travels_to_another_process(family):
    made = build_tiny_model(family)
    model = load_model(made.network, made.tokenizer)
    records = PAIRS if model.kind == "seq2seq" else RECORDS
    sent = pickle.dumps(model)
    assert len(sent) < 2e6, "no buffers"
    again = pickle.loads(sent)  # noqa: S301 - what workers are sent
    np.testing.assert_allclose(again.answer(records).logprob, model.answer(records).logprob, atol=1e-5)


def test_steps_are_those_of_the_folder(tmp_path):
    made = build_tiny_model("gpt2")
    save_tiny(made, tmp_path)
    found = []
    for model in (load_model(made.network.train(), made.tokenizer), load_model(str(tmp_path))):
        stepper = model.stepper()
        found.append(stepper.score_next(stepper.start("The")))
    np.testing.assert_allclose(*found, atol=1e-5)


def test_a_pipeline_brings_its_tokenizer(folders):
    network = AutoModelForCausalLM.from_pretrained(folders / "gpt2")
    tokenizer = AutoTokenizer.from_pretrained(folders / "gpt2")
    pipeline = transformers.pipeline("text-generation", model=network, tokenizer=tokenizer, device="cpu")
    assert_same(load_model(pipeline), load_model(str(folders / "gpt2")), RECORDS)


def test_the_card_of_the_folder_that_it_was_loaded_from_counts(tmp_path):
    save_tiny(build_tiny_model("gpt2", card={"start_symbol": "</s>"}), tmp_path)
    network, tokenizer = AutoModelForCausalLM.from_pretrained(tmp_path), AutoTokenizer.from_pretrained(tmp_path)
    assert_same(load_model(network, tokenizer), load_model(str(tmp_path)), RECORDS)


def test_a_classifier_of_arrays_needs_no_tokenizer(tmp_path):
    network = PerceptronClassifier(PerceptronConfig(inputs=16, hidden=[4], num_labels=3))
    network.save_pretrained(tmp_path)
    records = [Record(id=str(i), array=np.full((4, 4), 0.1 * i), label=i) for i in range(3)]
    assert_same(load_model(network), load_model(str(tmp_path)), records)
    (tmp_path / "card.json").write_text('{"input_mean": 0.5, "input_std": 0.25}')
    loaded = transformers.AutoModelForImageClassification.from_pretrained(tmp_path)
    assert_same(load_model(loaded), load_model(str(tmp_path)), records)


def test_what_keeps_the_protocol_is_returned_as_it_is():
    model = Uniform()
    assert load_model(model) is model
    assert load_model(model, kind=model.kind) is model
    with refused("other_kind"):
        load_model(model, kind="masked")
    assert natural_reference(model) is None


def test_a_path_may_be_given_for_a_string(folders):
    assert load_model(folders / "gpt2").digest == load_model(str(folders / "gpt2")).digest


def test_what_is_no_model_is_refused_with_the_way_out(folders):
    made = build_tiny_model("gpt2")
    bare = transformers.GPT2Model(made.network.config)
    narrow = RecurrentLM(RecurrentConfig(vocab_size=100, embedding=4, units=4))
    for source, tokenizer, code in [
        (made.network, None, "no_tokenizer"),
        (made.network, str(folders / "gpt2"), "not_a_tokenizer"),
        (narrow, made.tokenizer, "foreign_tokenizer"),
        (bare, made.tokenizer, "unknown_kind"),
        (torch.nn.Linear(2, 2), made.tokenizer, "bare_module"),
        (torch.nn.DataParallel(made.network), made.tokenizer, "bare_module"),
        (3, None, "not_a_model"),
        (None, None, "not_a_model"),
        (str(folders / "gpt2"), made.tokenizer, "tokenizer_not_wanted"),
    ]:
        with refused(code) as refusal:
            load_model(source, tokenizer)
        assert refusal.error.do


def test_weights_that_are_not_in_memory_are_refused():
    made = build_tiny_model("gpt2")
    with refused("weights_not_in_memory"):
        load_model(made.network.to("meta"), made.tokenizer)


def test_there_is_no_such_device():
    made = build_tiny_model("gpt2")
    assert load_model(made.network, made.tokenizer, device="cpu").access == Access.FULL
    with refused("no_such_device"):
        load_model(made.network, made.tokenizer, device="cuda:7")
