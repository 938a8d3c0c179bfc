"""From a string to a model: every form of it, and what is said when it leads nowhere."""

from __future__ import annotations

import json
import pickle
import re
import shutil
import socket
import subprocess
import sys
from pathlib import Path

import huggingface_hub.constants
import numpy as np
import pytest
import torch
import transformers
from safetensors.torch import load_file, save_file
from transformers import AutoConfig, AutoModelForImageClassification, AutoModelForMaskedLM, BertConfig, BertModel

from recollect import load_model
from recollect.corpora.corpus import Corpus
from recollect.corpora.record import Record
from recollect.errors import MissingDependency, ModelError
from recollect.models import Model, Question, natural_reference
from recollect.models.asking import ask
from recollect.models.pretrained import kind_of
from recollect.testing.tiny import TEXTS, save_tiny, tiny_model, tiny_tokenizer

RECORDS = [Record(id=str(i), text=text) for i, text in enumerate(TEXTS)]


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    """Tiny models of every kind, saved as anyone would."""
    home = tmp_path_factory.mktemp("models")
    for family in ("gpt2", "bert", "t5"):
        save_tiny(tiny_model(family), home / family)
    config = AutoConfig.for_model("recollect-perceptron", inputs=64, hidden=[8], num_labels=3)
    AutoModelForImageClassification.from_config(config).save_pretrained(home / "mlp")
    return home


@pytest.fixture
def bert(folders, tmp_path):
    """A copy of one of them that a test may damage."""
    return Path(shutil.copytree(folders / "bert", tmp_path / "bert"))


@pytest.mark.parametrize(
    ("name", "kind"), [("gpt2", "causal"), ("bert", "masked"), ("t5", "seq2seq"), ("mlp", "classifier")]
)
def test_a_folder_becomes_a_model_of_its_kind(folders, name, kind):
    model = load_model(str(folders / name))
    assert isinstance(model, Model)
    assert (model.kind, model.name, model.question) == (kind, str(folders / name), Question())
    assert re.fullmatch("[0-9a-f]{32}", model.digest)


def test_loading_is_silent_and_leaves_the_libraries_as_they_were(folders, capfd):
    transformers.logging.set_verbosity_warning()
    transformers.logging.enable_progress_bar()
    load_model(str(folders / "bert"))
    assert capfd.readouterr() == ("", "")
    assert transformers.logging.get_verbosity() == transformers.logging.WARNING
    assert transformers.logging.is_progress_bar_enabled()


def test_no_precision_changes_the_digest_and_the_model_computes_in_it(folders):
    single, double = (
        load_model(str(folders / "bert"), question=Question(patterns=2, precision=precision))
        for precision in ("float32", "float64")
    )
    assert single.digest == double.digest
    first, second = single.answer(RECORDS), double.answer(RECORDS)
    assert (first.logprob.dtype, second.logprob.dtype) == (np.float32, np.float64)
    np.testing.assert_allclose(first.logprob, second.logprob, atol=1e-4)


def test_the_card_counts_where_numbers_depend_on_it(folders, tmp_path):
    seen = set()
    for card in ({}, {"input_mean": 0.5}, {"input_mean": 0.5, "recipe": "mlp"}):
        folder = Path(shutil.copytree(folders / "mlp", tmp_path / str(len(card))))
        (folder / "card.json").write_text(json.dumps(card))
        seen.add(load_model(str(folder)).digest)
    assert len(seen) == 2


@pytest.mark.parametrize(
    ("family", "architecture", "kind"),
    [
        ("gpt2", "GPT2LMHeadModel", "causal"),
        ("llama", "LlamaForCausalLM", "causal"),
        ("bert", "BertForMaskedLM", "masked"),
        ("bert", "BertLMHeadModel", "causal"),
        ("bert", "BertForSequenceClassification", "classifier"),
        ("vit", "ViTForImageClassification", "classifier"),
        ("bart", "BartForConditionalGeneration", "seq2seq"),
        ("marian", "MarianMTModel", "seq2seq"),
        ("recollect-recurrent", "RecurrentLM", "causal"),
        ("recollect-perceptron", "PerceptronClassifier", "classifier"),
    ],
)
def test_the_kind_comes_from_the_architecture(family, architecture, kind):
    assert kind_of(AutoConfig.for_model(family, architectures=[architecture]), "m") == kind


@pytest.mark.parametrize(
    ("family", "names"), [("bert", ["BertModel"]), ("bert", None), ("xlm", ["XLMWithLMHeadModel"])]
)
def test_a_kind_that_cannot_be_told_is_asked_for(family, names):
    with pytest.raises(ModelError, match="--as"):
        kind_of(AutoConfig.for_model(family, architectures=names), "m")


@pytest.mark.parametrize(("kind", "layer"), [("masked", "cls.predictions"), ("classifier", "classifier.weight")])
def test_an_output_layer_is_never_drawn_at_random(tmp_path, kind, layer):
    sizes = {"hidden_size": 8, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 8}
    tokenizer = tiny_tokenizer()
    BertModel(BertConfig(vocab_size=len(tokenizer), **sizes)).save_pretrained(tmp_path)
    tokenizer.save_pretrained(tmp_path)
    with pytest.raises(ModelError, match="BertModel"):
        load_model(str(tmp_path))
    with pytest.raises(ModelError, match=layer):
        load_model(str(tmp_path), kind=kind)


def test_a_kind_that_the_architecture_has_not_is_refused(folders):
    with pytest.raises(ModelError, match="as a seq2seq model"):
        load_model(str(folders / "gpt2"), kind="seq2seq")


def test_a_model_that_looks_ahead_is_refused_as_causal(folders, bert):
    with pytest.raises(ModelError, match="looks at the symbols"):
        load_model(str(folders / "bert"), kind="causal")
    settings = json.loads((bert / "config.json").read_text())
    (bert / "config.json").write_text(json.dumps(settings | {"is_decoder": True}))
    assert load_model(str(bert), kind="causal").kind == "causal"


def damage_config(folder):
    (folder / "config.json").write_text('{"model_type": "bert", ')


def unknown_architecture(folder):
    settings = json.loads((folder / "config.json").read_text())
    settings |= {"model_type": "quux", "auto_map": {"AutoConfig": "code.Quux", "AutoModelForMaskedLM": "code.Quux"}}
    (folder / "config.json").write_text(json.dumps(settings))
    (folder / "code.py").write_text("raise SystemExit('this must never run')")


def cut_weights(folder):
    weights = folder / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:5000])


def widen_config(folder):
    settings = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps(settings | {"intermediate_size": 65}))


def drop_a_weight(folder):
    weights = load_file(folder / "model.safetensors")
    del weights["bert.encoder.layer.1.output.dense.weight"]
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})


def damage_card(folder):
    (folder / "card.json").write_text("[1, 2")


def pickle_code(folder):
    class Payload:
        def __reduce__(self):
            return (Path.touch, (folder / "it-ran",))

    (folder / "model.safetensors").unlink()
    (folder / "pytorch_model.bin").write_bytes(pickle.dumps({"bert": Payload()}, protocol=2))


def drop_tokenizer(folder):
    for name in ("tokenizer.json", "tokenizer_config.json"):
        (folder / name).unlink()


def other_tokenizer(folder):
    tiny = json.loads((folder / "tokenizer.json").read_text())
    tiny["model"]["vocab"]["zzz"] = 4000
    tiny["model"]["vocab"] |= {f"zz{i}": 400 + i for i in range(50)}
    (folder / "tokenizer.json").write_text(json.dumps(tiny))


@pytest.mark.parametrize(
    ("damage", "said"),
    [
        (damage_config, "configuration cannot be read"),
        (unknown_architecture, "never run"),
        (cut_weights, "could not be loaded"),
        (widen_config, "do not fit its config.json"),
        (drop_a_weight, "lacks weights .*: bert.encoder.layer.1.output.dense.weight"),
        (damage_card, "Its card.json cannot be read"),
        (pickle_code, "could not be loaded"),
        (drop_tokenizer, "has no tokenizer"),
        (other_tokenizer, "do not belong together"),
    ],
)
def test_a_damaged_folder_is_refused_with_one_clear_message(bert, damage, said):
    damage(bert)
    with pytest.raises(ModelError) as caught:
        load_model(str(bert))
    assert re.search(said, str(caught.value))
    assert str(bert) in str(caught.value)
    assert not (bert / "it-ran").exists()


def test_pickled_weights_are_read_as_tensors_and_give_the_same_model(folders, bert):
    torch.save(load_file(bert / "model.safetensors"), bert / "pytorch_model.bin")
    (bert / "model.safetensors").unlink()
    assert load_model(str(bert)).digest == load_model(str(folders / "bert")).digest


def test_a_name_that_is_nearly_right_is_suggested(folders):
    with pytest.raises(ModelError, match=f"Did you mean '{folders / 'bert'}'"):
        load_model(str(folders / "bret"))


def test_a_file_in_place_of_its_folder_is_explained(folders):
    with pytest.raises(ModelError, match=f"Give its folder: '{folders / 'bert'}'"):
        load_model(str(folders / "bert" / "config.json"))


def test_a_folder_of_checkpoints_names_the_last(tmp_path):
    for step in (900, 1000):
        (tmp_path / f"checkpoint-{step}").mkdir()
        (tmp_path / f"checkpoint-{step}" / "config.json").write_text("{}")
    with pytest.raises(ModelError, match=f"no config.json.\n  Did you mean '{tmp_path / 'checkpoint-1000'}'"):
        load_model(str(tmp_path))


@pytest.mark.parametrize(
    ("files", "said"),
    [
        ([], "what save_pretrained writes"),
        (["manifest.json"], "recorded:"),
        (["config.json"], "has no weights: it holds none"),
        (["config.json", "tf_model.h5"], "it holds tf_model.h5, which cannot be read"),
    ],
)
def test_a_folder_that_holds_something_else_is_explained(tmp_path, files, said):
    for name in files:
        (tmp_path / name).write_text("{}")
    with pytest.raises(ModelError) as caught:
        load_model(str(tmp_path))
    assert said in str(caught.value)


@pytest.fixture
def no_network(monkeypatch):
    """Whoever asks the network fails the test, although nothing says that we are offline."""

    def refuse(*_args, **_kwargs):
        pytest.fail("the network was asked")

    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_OFFLINE", False)
    monkeypatch.setattr(socket, "getaddrinfo", refuse)
    monkeypatch.setattr(socket.socket, "connect", refuse)


@pytest.mark.usefixtures("no_network")
def test_a_path_never_asks_the_network(folders, monkeypatch):
    load_model(str(folders / "bert"))
    monkeypatch.chdir(folders.parent)
    for path in (f"{folders.name}/brt", "./brt", "/nowhere/brt", "a/b/c"):
        with pytest.raises(ModelError, match="There is no folder"):
            load_model(path)


@pytest.fixture
def offline(monkeypatch, tmp_path):
    """No network, and an empty cache of the hub."""
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_OFFLINE", True)
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_CACHE", str(tmp_path / "hub"))
    return tmp_path / "hub"


def test_a_hub_id_without_a_network_says_what_was_tried_and_what_to_do(offline):
    with pytest.raises(ModelError) as caught:
        load_model("somebody/some-model")
    for said in ("HF_HUB_OFFLINE is set", str(offline), "hf download somebody/some-model"):
        assert said in str(caught.value)


def test_a_hub_id_is_read_from_the_cache(offline, folders):
    home = offline / "models--somebody--bert"
    shutil.copytree(folders / "bert", home / "snapshots" / "c0ffee")
    (home / "refs").mkdir()
    (home / "refs" / "main").write_text("c0ffee")
    assert load_model("somebody/bert").digest == load_model(str(folders / "bert")).digest


@pytest.mark.parametrize("ref", ["http://localhost:8000/v1#gpt", "https://example.org/v1#gpt"])
def test_an_endpoint_is_refused_for_now(ref):
    with pytest.raises(ModelError, match="next release"):
        load_model(ref)


def test_a_recorded_model_is_replayed(folders, tmp_path):
    model = load_model(str(folders / "bert"), question=Question(patterns=2))
    store = ask(model, Corpus.of(RECORDS), tmp_path)
    again = load_model(f"recorded:{store.folder}")
    assert (again.digest, again.question) == (model.digest, model.question)
    np.testing.assert_allclose(again.answer(RECORDS).logprob, model.answer(RECORDS).logprob)
    with pytest.raises(ModelError, match="is a masked model"):
        load_model(f"recorded:{store.folder}", kind="causal")


@pytest.fixture
def own_module(tmp_path, monkeypatch):
    (tmp_path / "own_models.py").write_text(
        "from recollect.testing.fakes import Uniform\n"
        "class Half:\n    name = 'half'\n    digest = ''\n"
        "def make(): return Uniform()\n"
        "def half(): return Half()\n"
        "def broken(): raise ValueError('no such file')\n"
        "thing = 3\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))


@pytest.mark.usefixtures("own_module")
def test_the_users_own_code_makes_a_model():
    assert isinstance(load_model("python:own_models:make"), Model)


@pytest.mark.usefixtures("own_module")
@pytest.mark.parametrize(
    ("target", "said"),
    [
        ("own_models:half", "returned a Half, which is no model: it has no kind, question, access, answer"),
        ("own_models:broken", "failed with ValueError: no such file"),
        ("own_models:maek", "Did you mean 'make'"),
        ("own_models:thing", "no function 'thing'"),
        ("own_modles:make", "there is no module 'own_modles'"),
        ("own_models", "names no factory"),
    ],
)
def test_own_code_that_makes_no_model_is_explained(target, said):
    with pytest.raises(ModelError) as caught:
        load_model(f"python:{target}")
    assert said in str(caught.value)


class TestAdapters:
    """BASE+ADAPTER, with adapters that peft itself saved."""

    peft = pytest.importorskip("peft")

    @pytest.fixture
    def adapter(self, folders, tmp_path):
        config = self.peft.LoraConfig(r=4, lora_alpha=8, target_modules=["query", "value"], init_lora_weights=False)
        torch.manual_seed(3)
        whole = self.peft.get_peft_model(AutoModelForMaskedLM.from_pretrained(folders / "bert"), config)
        whole.save_pretrained(tmp_path / "lora")
        return tmp_path / "lora"

    def test_an_adapted_model_answers_as_peft_has_it(self, folders, adapter):
        base = folders / "bert"
        model = load_model(f"{base}+{adapter}", question=Question(one_by_one=True))
        record = Record(id="r", text="The quick fox")
        answers = model.answer([record])
        whole = self.peft.PeftModel.from_pretrained(AutoModelForMaskedLM.from_pretrained(base), adapter).eval()
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

    def test_its_digest_is_of_base_and_adapter(self, folders, adapter, tmp_path):
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

    def test_its_base_is_its_natural_reference(self, folders, adapter):
        assert natural_reference(f"{folders / 'bert'}+{adapter}") == str(folders / "bert")
        assert natural_reference(str(folders / "bert")) is None

    def test_a_plus_in_a_folders_name_is_no_adapter(self, folders, tmp_path):
        shutil.copytree(folders / "bert", tmp_path / "c++")
        assert load_model(str(tmp_path / "c++")).kind == "masked"

    def test_an_adapter_alone_is_told_its_base(self, adapter, folders):
        with pytest.raises(ModelError, match=re.escape(f"'{folders / 'bert'}+{adapter}'")):
            load_model(str(adapter))

    def test_a_base_of_another_depth_is_refused(self, folders, adapter, tmp_path):
        config = AutoConfig.from_pretrained(folders / "bert", num_hidden_layers=1)
        AutoModelForMaskedLM.from_config(config).save_pretrained(tmp_path / "shallow")
        with pytest.raises(ModelError, match="has no place for weights"):
            load_model(f"{tmp_path / 'shallow'}+{adapter}")
        config = AutoConfig.from_pretrained(folders / "bert", num_hidden_layers=3)
        AutoModelForMaskedLM.from_config(config).save_pretrained(tmp_path / "deep")
        with pytest.raises(ModelError, match="lacks weights"):
            load_model(f"{tmp_path / 'deep'}+{adapter}")

    def test_a_base_of_another_family_is_refused(self, folders, adapter):
        with pytest.raises(ModelError, match="does not fit its base"):
            load_model(f"{folders / 'gpt2'}+{adapter}")

    def test_an_adapter_that_lengthens_the_text_is_refused(self, folders, tmp_path):
        config = self.peft.PromptTuningConfig(task_type="CAUSAL_LM", num_virtual_tokens=3)
        network = transformers.AutoModelForCausalLM.from_pretrained(folders / "gpt2")
        self.peft.get_peft_model(network, config).save_pretrained(tmp_path / "prompt")
        with pytest.raises(ModelError, match="before the text"):
            load_model(f"{folders / 'gpt2'}+{tmp_path / 'prompt'}")

    def test_a_classifier_whose_output_layers_are_in_the_adapter_is_loaded(self, folders, tmp_path):
        network = transformers.AutoModelForSequenceClassification.from_pretrained(folders / "bert")
        settings = {"task_type": "SEQ_CLS", "r": 2, "target_modules": ["query"]}
        config = self.peft.LoraConfig(**settings, modules_to_save=["pooler"])
        self.peft.get_peft_model(network, config).save_pretrained(tmp_path / "head")
        model = load_model(f"{folders / 'bert'}+{tmp_path / 'head'}")
        assert model.kind == "classifier"
        ids = transformers.AutoTokenizer.from_pretrained(folders / "bert")("hello", return_tensors="pt")["input_ids"]
        answers = model.answer([Record(id="r", text="hello", label=1)])
        np.testing.assert_allclose(answers.logits[0], network.eval()(input_ids=ids).logits[0].detach(), atol=1e-5)

    def test_a_classifier_of_which_a_layer_was_saved_nowhere_is_refused(self, folders, tmp_path):
        network = transformers.AutoModelForSequenceClassification.from_pretrained(folders / "bert")
        config = self.peft.LoraConfig(task_type="SEQ_CLS", r=2, target_modules=["query"])
        self.peft.get_peft_model(network, config).save_pretrained(tmp_path / "head")
        with pytest.raises(ModelError, match=r"bert\.pooler\.dense"):
            load_model(f"{folders / 'bert'}+{tmp_path / 'head'}")

    def test_without_peft_the_command_to_add_it_is_given(self, folders, adapter, monkeypatch):
        monkeypatch.setitem(sys.modules, "peft", None)
        with pytest.raises(MissingDependency, match=re.escape("pip install 'recollect[peft]'")):
            load_model(f"{folders / 'bert'}+{adapter}")


def test_the_package_offers_two_functions_without_loading_torch_before_they_are_used():
    script = (
        "import sys, recollect\n"
        "assert 'torch' not in sys.modules and set(dir(recollect)) >= {'load_model', 'read_corpus'}\n"
        "recollect.read_corpus\n"
        "assert 'torch' not in sys.modules\n"
        "try: recollect.load_modle\n"
        "except AttributeError as error: assert 'load_modle' in str(error)\n"
        "else: raise AssertionError\n"
    )
    subprocess.run([sys.executable, "-c", script], check=True)  # noqa: S603
