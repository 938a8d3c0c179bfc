"""Models and data in memory become what files of the same content become, with all that the files would tell."""

from __future__ import annotations

import pytest
import transformers
from transformers import AutoModelForCausalLM, AutoTokenizer

import recollect
from recollect.corpora import synthetic
from recollect.models import load_model
from recollect.pipeline.plans.refs import ModelRef
from recollect.signals.evidence import REFERENCE, TARGET
from recollect.testing.tiny import build_tiny_model, save_tiny

TEXTS = [record.text for record in synthetic.make_texts(people=2, per_person=2)]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A tiny model, trained with the privacy that its card states."""
    card = {"privacy": {"epsilon": 3.9, "delta": 1e-4, "unit": "user"}}
    return save_tiny(build_tiny_model("gpt2", card=card), tmp_path_factory.mktemp("model"))


def plan(model, tokenizer=None):
    """The plan of a membership audit of this model."""
    return recollect.Session().plan("membership", model, TEXTS, controls=TEXTS, tokenizer=tokenizer)


def test_a_model_in_memory_claims_what_the_card_of_its_folder_states(folder):
    named = plan(str(folder))
    network, tokenizer = AutoModelForCausalLM.from_pretrained(folder), AutoTokenizer.from_pretrained(folder)
    pipeline = transformers.pipeline("text-generation", model=network, tokenizer=tokenizer)
    for held in (plan(network, tokenizer), plan(pipeline)):
        assert held.audit == named.audit
        assert held.audit.claimed_epsilon == 3.9
        assert held.models[TARGET].digest == load_model(str(folder)).digest
    assert list(named.models) == list(held.models) == [TARGET]


def test_the_base_of_an_adapted_model_in_memory_is_its_reference(folder, tmp_path):
    peft = pytest.importorskip("peft")
    network, tokenizer = AutoModelForCausalLM.from_pretrained(folder), AutoTokenizer.from_pretrained(folder)
    config = peft.LoraConfig(r=2, target_modules=["c_attn"], init_lora_weights=False, fan_in_fan_out=True)
    adapted = peft.get_peft_model(network, config)
    adapted.save_pretrained(tmp_path)
    named = plan(f"{folder}+{tmp_path}")
    assert named.models[REFERENCE] == ModelRef(model=str(folder))
    held = plan(adapted, tokenizer)
    assert held.models[REFERENCE].digest == load_model(str(folder)).digest
    assert held.models[TARGET].digest == named.models[TARGET].load().digest


def test_a_model_string_of_a_mapping_is_scored_as_it_says(folder):
    described = plan({"model": str(folder), "window": 16})
    assert described.models[TARGET] == ModelRef(model=str(folder), window=16)
