"""From a string to a model: every form of it, and what is said when it leads nowhere."""

from __future__ import annotations

import json
import pickle
import re
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
import transformers
from safetensors.torch import load_file, save_file
from transformers import AutoConfig, BertConfig, BertModel

from recollect import load_model
from recollect.corpora.corpus import Corpus
from recollect.corpora.record import Record
from recollect.models import Model, Question
from recollect.models.answer_store.scoring import score_corpus
from recollect.models.loading.pretrained import infer_kind
from recollect.testing.refusals import refused
from recollect.testing.tiny import TEXTS, build_tiny_tokenizer

RECORDS = [Record(id=str(i), text=text) for i, text in enumerate(TEXTS)]


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
    assert infer_kind(AutoConfig.for_model(family, architectures=[architecture]), "m") == kind


@pytest.mark.parametrize(
    ("family", "names"), [("bert", ["BertModel"]), ("bert", None), ("xlm", ["XLMWithLMHeadModel"])]
)
def test_a_kind_that_cannot_be_told_is_requested(family, names):
    with refused("unknown_kind"):
        infer_kind(AutoConfig.for_model(family, architectures=names), "m")


@pytest.mark.parametrize(("kind", "layer"), [("masked", "cls.predictions"), ("classifier", "classifier.weight")])
def test_an_output_layer_is_never_drawn_at_random(tmp_path, kind, layer):
    sizes = {"hidden_size": 8, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 8}
    tokenizer = build_tiny_tokenizer()
    BertModel(BertConfig(vocab_size=len(tokenizer), **sizes)).save_pretrained(tmp_path)
    tokenizer.save_pretrained(tmp_path)
    with refused("unknown_kind"):
        load_model(str(tmp_path))
    with refused("missing_weights") as refusal:
        load_model(str(tmp_path), kind=kind)
    assert layer in refusal.error.found


def test_a_kind_that_the_architecture_has_not_is_refused(folders):
    with refused("weights_unreadable"):
        load_model(str(folders / "gpt2"), kind="seq2seq")


def test_a_model_that_looks_ahead_is_refused_as_causal(folders, bert):
    with refused("looks_ahead"):
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
    ("damage", "code", "named"),
    [
        (damage_config, "config_unreadable", ""),
        (unknown_architecture, "config_unreadable", ""),
        (cut_weights, "weights_unreadable", ""),
        (widen_config, "weights_misfit", "config.json"),
        (drop_a_weight, "missing_weights", "bert.encoder.layer.1.output.dense.weight"),
        (damage_card, "settings_unreadable", "card.json"),
        (pickle_code, "weights_unreadable", ""),
        (drop_tokenizer, "no_tokenizer", ""),
        (other_tokenizer, "foreign_tokenizer", ""),
    ],
)
def test_a_damaged_folder_is_refused_with_one_clear_message(bert, damage, code, named):
    damage(bert)
    with refused(code) as refusal:
        load_model(str(bert))
    assert named in refusal.error.found
    assert str(bert) in refusal.error.found
    assert not (bert / "it-ran").exists()


def test_pickled_weights_are_read_as_tensors_and_give_the_same_model(folders, bert):
    torch.save(load_file(bert / "model.safetensors"), bert / "pytorch_model.bin")
    (bert / "model.safetensors").unlink()
    assert load_model(str(bert)).digest == load_model(str(folders / "bert")).digest


@pytest.mark.parametrize(
    ("ref", "code"),
    [
        ("http://example.org/v1#gpt", "http_to_another_machine"),
        ("https://user:secret@example.org/v1#gpt", "secret_in_address"),
        ("https://example.org/v1?key=secret#gpt", "secret_in_address"),
        ("http://127.0.0.1:99999/v1#gpt", "address_not_valid"),
        ("http://127.0.0.1:port/v1#gpt", "address_not_valid"),
        ("http://[::1/v1#gpt", "address_not_valid"),
        ("https://:8000/v1#gpt", "address_not_valid"),
    ],
)
def test_an_unsafe_address_is_refused_before_anything_is_sent_and_no_secret_is_repeated(ref, code):
    with refused(code) as refusal:
        load_model(ref)
    assert "secret" not in str(refusal.error)


def test_a_recorded_model_is_replayed(folders, tmp_path):
    model = load_model(str(folders / "bert"), question=Question(patterns=2))
    store = score_corpus(model, Corpus.of(RECORDS), tmp_path)
    again = load_model(f"recorded:{store.folder}")
    assert (again.digest, again.question) == (model.digest, model.question)
    np.testing.assert_allclose(again.answer(RECORDS).logprob, model.answer(RECORDS).logprob)
    with refused("other_kind"):
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
    ("target", "code", "named"),
    [
        ("own_models:half", "not_a_model", "kind, question, access, answer"),
        ("own_models:broken", "factory_failed", "ValueError: no such file"),
        ("own_models:maek", "no_such_factory", "'make'"),
        ("own_models:thing", "no_such_factory", "'thing'"),
        ("own_modles:make", "no_such_module", "'own_modles'"),
        ("own_models", "no_factory_named", "own_models"),
    ],
)
def test_own_code_that_makes_no_model_is_explained(target, code, named):
    with refused(code) as refusal:
        load_model(f"python:{target}")
    assert named in str(refusal.error)


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
