"""BASE+ADAPTER, with adapters that peft itself saved."""

from __future__ import annotations

import json
import shutil
import sys

import numpy as np
import pytest
import torch
import transformers
from transformers import AutoConfig, AutoModelForMaskedLM

from recollect import load_model
from recollect.corpora.record import Record
from recollect.models import Question, natural_reference
from recollect.models.loading.shared_bases import release_bases
from recollect.testing.refusals import refused

peft = pytest.importorskip("peft")


@pytest.fixture
def adapter(folders, tmp_path):
    config = peft.LoraConfig(r=4, lora_alpha=8, target_modules=["query", "value"], init_lora_weights=False)
    torch.manual_seed(3)
    whole = peft.get_peft_model(AutoModelForMaskedLM.from_pretrained(folders / "bert"), config)
    whole.save_pretrained(tmp_path / "lora")
    return tmp_path / "lora"


def test_an_adapted_model_answers_as_peft_has_it(folders, adapter):
    base = folders / "bert"
    model = load_model(f"{base}+{adapter}", question=Question(one_by_one=True))
    record = Record(id="r", text="The quick fox")
    answers = model.answer([record])
    whole = peft.PeftModel.from_pretrained(AutoModelForMaskedLM.from_pretrained(base), adapter).eval()
    tokenizer = transformers.AutoTokenizer.from_pretrained(base)
    ids = tokenizer(record.text, return_tensors="pt")["input_ids"]
    for place in range(ids.shape[1] - 2):
        masked = ids.clone()
        masked[0, place + 1] = tokenizer.mask_token_id
        with torch.no_grad():
            logprob = whole(input_ids=masked).logits[0, place + 1].log_softmax(-1)
        assert answers.logprob[place] == pytest.approx(float(logprob[ids[0, place + 1]]), abs=1e-4)
    plain = load_model(natural_reference(model.name), question=model.question)
    assert abs(plain.answer([record]).logprob - answers.logprob).max() > 1e-2


def test_its_digest_is_of_base_and_adapter(folders, adapter, tmp_path):
    base = folders / "bert"
    copied = shutil.copytree(adapter, tmp_path / "elsewhere")
    settings = json.loads((copied / "adapter_config.json").read_text())
    digests = [load_model(str(base)).digest, load_model(f"{base}+{adapter}").digest]
    for changes in ({"base_model_name_or_path": "x", "target_modules": ["value", "query"]}, {"lora_alpha": 9}):
        (copied / "adapter_config.json").write_text(json.dumps(settings | changes))
        digests.append(load_model(f"{base}+{copied}").digest)
    plain, adapted, moved, stronger = digests
    assert adapted == moved
    assert len({plain, adapted, stronger}) == 3


def test_its_base_is_its_natural_reference(folders, adapter):
    assert natural_reference(f"{folders / 'bert'}+{adapter}") == str(folders / "bert")
    assert natural_reference(str(folders / "bert")) is None


def test_a_plus_in_a_folders_name_is_no_adapter(folders, tmp_path):
    shutil.copytree(folders / "bert", tmp_path / "c++")
    assert load_model(str(tmp_path / "c++")).kind == "masked"


def test_an_adapter_alone_is_loaded_on_the_base_that_it_names(adapter, folders):
    alone, named = load_model(str(adapter)), load_model(f"{folders / 'bert'}+{adapter}")
    assert alone.digest == named.digest
    assert alone.name == str(adapter)
    assert natural_reference(str(adapter)) == str(folders / "bert")


@pytest.mark.parametrize(
    ("stated", "advice"),
    [("/nowhere/base", "'BASE+{}'"), ("owner/base", "'hf:owner/base+{}'"), (None, "'BASE+{}'")],
)
def test_an_adapter_whose_base_is_not_here_is_refused_with_the_way_out(adapter, stated, advice):
    settings = json.loads((adapter / "adapter_config.json").read_text())
    (adapter / "adapter_config.json").write_text(json.dumps(settings | {"base_model_name_or_path": stated}))
    with refused("adapter_without_base") as refusal:
        load_model(str(adapter))
    assert advice.format(adapter) in refusal.error.do
    assert natural_reference(str(adapter)) is None


def test_adapters_and_their_base_share_one_base_in_memory(folders, adapter, tmp_path):
    again = shutil.copytree(adapter, tmp_path / "again")
    bases = [load_model(str(each))._network.bert.embeddings.word_embeddings.weight for each in (adapter, again)]
    whole = load_model(str(folders / "bert"))
    assert len({each.data_ptr() for each in (*bases, whole._network.bert.embeddings.word_embeddings.weight)}) == 1
    release_bases()
    apart = load_model(str(folders / "bert"))
    assert apart.digest == whole.digest
    assert apart._network.bert.embeddings.word_embeddings.weight.data_ptr() != bases[0].data_ptr()


def test_an_adapter_has_the_same_digest_in_every_precision(folders, adapter):
    digests = {load_model(str(adapter), question=Question(precision=each)).digest for each in ("float32", "float64")}
    assert len(digests) == 1


def test_a_base_that_was_saved_anew_is_read_anew(folders, adapter, tmp_path):
    base = shutil.copytree(folders / "bert", tmp_path / "base")
    before = load_model(f"{base}+{adapter}").digest
    network = AutoModelForMaskedLM.from_pretrained(base)
    with torch.no_grad():
        network.bert.embeddings.word_embeddings.weight += 1.0
    network.save_pretrained(base)
    assert load_model(f"{base}+{adapter}").digest != before


def test_a_base_of_another_depth_is_refused(folders, adapter, tmp_path):
    config = AutoConfig.from_pretrained(folders / "bert", num_hidden_layers=1)
    AutoModelForMaskedLM.from_config(config).save_pretrained(tmp_path / "shallow")
    with refused("adapter_of_another_base"):
        load_model(f"{tmp_path / 'shallow'}+{adapter}")
    config = AutoConfig.from_pretrained(folders / "bert", num_hidden_layers=3)
    AutoModelForMaskedLM.from_config(config).save_pretrained(tmp_path / "deep")
    with refused("adapter_lacks_weights"):
        load_model(f"{tmp_path / 'deep'}+{adapter}")


def test_a_base_of_another_family_is_refused(folders, adapter):
    with refused("adapter_misfit"):
        load_model(f"{folders / 'gpt2'}+{adapter}")


def test_an_adapter_that_lengthens_the_text_is_refused(folders, tmp_path):
    config = peft.PromptTuningConfig(task_type="CAUSAL_LM", num_virtual_tokens=3)
    network = transformers.AutoModelForCausalLM.from_pretrained(folders / "gpt2")
    peft.get_peft_model(network, config).save_pretrained(tmp_path / "prompt")
    with refused("prompt_learning_adapter"):
        load_model(f"{folders / 'gpt2'}+{tmp_path / 'prompt'}")


def test_a_classifier_whose_output_layers_are_in_the_adapter_is_loaded(folders, tmp_path):
    network = transformers.AutoModelForSequenceClassification.from_pretrained(folders / "bert")
    settings = {"task_type": "SEQ_CLS", "r": 2, "target_modules": ["query"]}
    config = peft.LoraConfig(**settings, modules_to_save=["pooler"])
    peft.get_peft_model(network, config).save_pretrained(tmp_path / "head")
    model = load_model(f"{folders / 'bert'}+{tmp_path / 'head'}")
    assert model.kind == "classifier"
    ids = transformers.AutoTokenizer.from_pretrained(folders / "bert")("hello", return_tensors="pt")["input_ids"]
    answers = model.answer([Record(id="r", text="hello", label=1)])
    np.testing.assert_allclose(answers.logits[0], network.eval()(input_ids=ids).logits[0].detach(), atol=1e-5)


def test_a_classifier_of_which_a_layer_was_saved_nowhere_is_refused(folders, tmp_path):
    network = transformers.AutoModelForSequenceClassification.from_pretrained(folders / "bert")
    config = peft.LoraConfig(task_type="SEQ_CLS", r=2, target_modules=["query"])
    peft.get_peft_model(network, config).save_pretrained(tmp_path / "head")
    with refused("missing_weights") as refusal:
        load_model(f"{folders / 'bert'}+{tmp_path / 'head'}")
    assert "bert.pooler.dense" in refusal.error.found


def test_without_peft_the_command_to_add_it_is_given(folders, adapter, monkeypatch):
    monkeypatch.setitem(sys.modules, "peft", None)
    with refused("peft_missing") as refusal:
        load_model(f"{folders / 'bert'}+{adapter}")
    assert "pip install 'recollect[peft]'" in refusal.error.do


@pytest.fixture
def whole(folders, adapter):
    """The adapted model as a user of peft has it."""
    network = AutoModelForMaskedLM.from_pretrained(folders / "bert")
    return peft.PeftModel.from_pretrained(network, adapter, is_trainable=True)


def facts(whole):
    """All of an adapted model that must not change."""
    tensors = [(name, id(each), each.requires_grad, each._version) for name, each in whole.named_parameters()]
    return tensors, [module.training for module in whole.modules()], sorted(whole.peft_config), whole.active_adapter


def test_an_adapted_model_in_memory_is_the_one_of_base_and_adapter(folders, adapter, whole):
    base, records = folders / "bert", [Record(id="r", text="The quick fox")]
    tokenizer = transformers.AutoTokenizer.from_pretrained(base)
    whole.train()
    before = facts(whole)
    pairs = [
        (load_model(whole, tokenizer), load_model(f"{base}+{adapter}")),
        (natural_reference(whole, tokenizer), load_model(str(base))),
    ]
    for here, there in pairs:
        assert here.digest == there.digest
        np.testing.assert_allclose(here.answer(records).logprob, there.answer(records).logprob, atol=1e-5)
    assert facts(whole) == before


def test_the_name_of_the_adapter_and_others_beside_it_do_not_matter(folders, adapter):
    network = AutoModelForMaskedLM.from_pretrained(folders / "bert")
    whole = peft.PeftModel.from_pretrained(network, adapter, adapter_name="mine")
    whole.add_adapter("other", peft.LoraConfig(r=2, target_modules=["value"], init_lora_weights=False))
    tokenizer = transformers.AutoTokenizer.from_pretrained(folders / "bert")
    assert load_model(whole, tokenizer).digest == load_model(f"{folders / 'bert'}+{adapter}").digest
    assert sorted(whole.peft_config) == ["mine", "other"]


def test_an_output_layer_of_the_adapters_own_stays_with_it(folders, tmp_path):
    network = transformers.AutoModelForSequenceClassification.from_pretrained(folders / "bert")
    config = peft.LoraConfig(task_type="SEQ_CLS", r=2, target_modules=["query"], modules_to_save=["pooler"])
    whole = peft.get_peft_model(network, config)
    whole.save_pretrained(tmp_path / "head")
    tokenizer = transformers.AutoTokenizer.from_pretrained(folders / "bert")
    assert load_model(whole, tokenizer).digest == load_model(f"{folders / 'bert'}+{tmp_path / 'head'}").digest


def test_an_adapter_that_does_not_compute_is_refused(folders, whole):
    tokenizer = transformers.AutoTokenizer.from_pretrained(folders / "bert")
    with whole.disable_adapter(), refused("adapter_not_active"):
        load_model(whole, tokenizer)
    whole.merge_adapter()
    with refused("adapter_not_active"):
        load_model(whole, tokenizer)
    whole.unmerge_adapter()
    assert load_model(whole, tokenizer).kind == "masked"


def test_a_prompt_learnt_in_memory_is_refused(folders):
    config = peft.PromptTuningConfig(task_type="CAUSAL_LM", num_virtual_tokens=3)
    whole = peft.get_peft_model(transformers.AutoModelForCausalLM.from_pretrained(folders / "gpt2"), config)
    tokenizer = transformers.AutoTokenizer.from_pretrained(folders / "gpt2")
    for ask in (load_model, natural_reference):
        with refused("prompt_learning_adapter"):
            ask(whole, tokenizer)
