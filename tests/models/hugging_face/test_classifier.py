"""Classifiers against a twin that reads one record at a time."""

from __future__ import annotations

import copy
from dataclasses import replace

import numpy as np
import pytest
import torch
from transformers import AutoConfig, AutoModelForImageClassification, AutoModelForSequenceClassification

from recollect.corpora.corpus import Corpus
from recollect.corpora.record import Record
from recollect.execution.local import LocalBackend
from recollect.models.access import Access
from recollect.models.answer_store.scoring import score_corpus
from recollect.models.answer_store.soundness import refuse_unsound_answers
from recollect.models.hugging_face.array_inputs import ArrayReader, ArrayScaling
from recollect.models.hugging_face.classifier import Classifier
from recollect.models.loading.pretrained import Pretrained
from recollect.models.model import Model, Question
from recollect.testing.refusals import refused
from recollect.testing.tiny import TEXTS, build_tiny_tokenizer

NAMES = ["cat", "dog", "eel"]
LABELS = {"num_labels": 3, "id2label": dict(enumerate(NAMES)), "label2id": {name: i for i, name in enumerate(NAMES)}}
SMALL = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 64}


def made(auto, family: str, tokenizer=None, *, card=None, preprocessing=None, **sizes) -> Pretrained:
    torch.manual_seed(0)
    network = auto.from_config(AutoConfig.for_model(family, **LABELS | sizes)).eval()
    for weights in network.parameters():
        torch.nn.init.normal_(weights, std=0.2)
    return Pretrained(
        name=family,
        network=network,
        tokenizer=tokenizer,
        digest="0" * 32,
        card=card or {},
        preprocessing=preprocessing or {},
    )


def text_classifier(family: str, **sizes) -> Pretrained:
    tokenizer = build_tiny_tokenizer(before="[CLS]", after="[SEP]") if family == "bert" else build_tiny_tokenizer()
    marks = {"vocab_size": len(tokenizer), "bos_token_id": 1, "eos_token_id": 2, "max_position_embeddings": 64}
    return made(AutoModelForSequenceClassification, family, tokenizer, **{"pad_token_id": 0} | marks | SMALL | sizes)


def array_classifier(family: str = "recollect-perceptron", **settings) -> Pretrained:
    return made(AutoModelForImageClassification, family, **settings)


TEXT_MODELS = {
    "bert": lambda: text_classifier("bert"),
    "llama": lambda: text_classifier("llama"),
    "gpt2-without-padding": lambda: text_classifier(
        "gpt2", pad_token_id=None, n_embd=32, n_layer=2, n_head=4, n_positions=64
    ),
}
ARRAY_MODELS = {
    "perceptron": lambda: array_classifier(inputs=64, hidden=[16]),
    "resnet": lambda: array_classifier(
        "resnet", num_channels=1, embedding_size=8, hidden_sizes=[8, 16], depths=[1, 1], layer_type="basic"
    ),
    "vit": lambda: array_classifier("vit", num_channels=1, image_size=8, patch_size=4, **SMALL),
}
SENTENCES = [*TEXTS, "a", "[SEP] <pad> </s>", "x y z " * 5]


def images(count: int, *shape: int) -> list[Record]:
    values = np.random.default_rng(0).integers(0, 256, (count, *shape), dtype=np.uint8)
    return [Record(id=str(i), array=value, label=i % 3) for i, value in enumerate(values)]


def check_against_twin(model: Classifier, records, logits_of):
    answers = model.answer(records)
    refuse_unsound_answers(answers, model.access, model=model.name)
    assert answers.records == tuple(record.digest for record in records)
    assert answers.offsets.tolist() == list(range(len(records) + 1))
    assert answers.known.all()
    assert not np.concatenate([answers.position, answers.pattern, answers.start, answers.end]).any()
    for row, record in enumerate(records):
        logits = logits_of(record)
        np.testing.assert_allclose(answers.logits[row], logits, atol=1e-4)
        own = answers.logits[row].astype(np.float64)
        true = NAMES.index(record.label) if isinstance(record.label, str) else record.label
        logprob = own - np.logaddexp.reduce(own)
        entropy = -(np.exp(logprob) * logprob).sum()
        assert answers.rank[row] == (own >= own[true]).sum()
        assert answers.logprob[row] == pytest.approx(logprob[true], abs=1e-6)
        assert answers.entropy[row] == pytest.approx(entropy, abs=1e-6)
        assert answers.logprob_std[row] == pytest.approx(
            np.sqrt((np.exp(logprob) * (logprob + entropy) ** 2).sum()), abs=1e-6
        )
    return answers


@pytest.mark.parametrize("name", TEXT_MODELS)
@pytest.mark.parametrize("budget", [1, 50, 8192])
def test_texts_get_the_twins_numbers_whatever_their_company(name, budget):
    pretrained = TEXT_MODELS[name]()
    double = copy.deepcopy(pretrained.network).double()
    records = [Record(id=str(i), text=text, label=NAMES[i % 3]) for i, text in enumerate(SENTENCES)]

    def logits_of(record):
        ids = pretrained.tokenizer(record.text, split_special_tokens=True, return_tensors="pt")["input_ids"]
        return double(input_ids=ids).logits[0].detach().numpy()

    model = Classifier(pretrained, Question())
    model.budget = budget
    check_against_twin(model, records, logits_of)


@pytest.mark.parametrize("name", ARRAY_MODELS)
@pytest.mark.parametrize("budget", [1, 200, 2**20])
def test_arrays_get_the_twins_numbers_whatever_their_company(name, budget):
    pretrained = ARRAY_MODELS[name]()
    double = copy.deepcopy(pretrained.network).double()

    def logits_of(record):
        pixels = torch.from_numpy(record.array.astype(np.float64) / 255)[None, None]
        return double(pixel_values=pixels).logits[0].detach().numpy()

    model = Classifier(pretrained, Question())
    model.budget = budget
    check_against_twin(model, images(7, 8, 8), logits_of)


def test_arrays_of_several_shapes_come_back_in_order():
    pretrained = ARRAY_MODELS["resnet"]()
    records = [*images(2, 8, 8), *images(2, 16, 8), *images(3, 12, 12)]
    model = Classifier(pretrained, Question())
    alone = np.concatenate([model.answer([record]).logits for record in records])
    np.testing.assert_allclose(model.answer(records).logits, alone, atol=1e-5)


def test_numbers_are_double_only_if_the_model_is():
    pretrained = ARRAY_MODELS["perceptron"]()
    assert Classifier(pretrained, Question()).answer(images(2, 8, 8)).logits.dtype == np.float32
    double = replace(pretrained, network=pretrained.network.double())
    answers = Classifier(double, Question(precision="float64")).answer(images(2, 8, 8))
    assert {answers.logits.dtype, answers.logprob.dtype} == {np.dtype(np.float64)}


def test_labels_are_known_by_name_and_by_number():
    model = Classifier(ARRAY_MODELS["perceptron"](), Question())
    array = images(1, 8, 8)[0].array
    ranks = [
        model.answer([Record(id="r", array=array, label=label)]).logprob[0] for label in ("eel", 2, "2", np.int64(2))
    ]
    assert len(set(ranks)) == 1


def test_where_labels_are_numbers_they_are_names_and_not_places():
    pretrained = ARRAY_MODELS["perceptron"]()
    pretrained.network.config.label2id = {"2": 0, "5": 1, "1": 2}
    model = Classifier(pretrained, Question())
    array = images(1, 8, 8)[0].array
    answers = {label: model.answer([Record(id="r", array=array, label=label)]) for label in (1, "1", 5)}
    for label, place in ((1, 2), ("1", 2), (5, 1)):
        own = answers[label].logits[0]
        assert answers[label].rank[0] == (own >= own[place]).sum()
    with refused("unknown_label") as refusal:
        model.answer([Record(id="r", array=array, label=0)])
    assert "2, 5, 1" in refusal.error.do


@pytest.mark.parametrize(
    ("label", "named"),
    [("dgo", "'dog'"), (3, "from 0 to 2"), (-1, "from 0 to 2"), (None, "dog"), ("7", "cat, dog, eel")],
)
def test_a_label_that_the_model_does_not_know_is_refused_with_its_record(label, named):
    record = Record(id="r17", array=np.zeros((8, 8), np.uint8), label=label)
    with refused("unknown_label") as refusal:
        Classifier(ARRAY_MODELS["perceptron"](), Question()).answer([record])
    assert "'r17'" in refusal.error.found
    assert named in refusal.error.do


@pytest.mark.parametrize(
    ("array", "code"),
    [
        (np.full((8, 8), np.nan, np.float32), "array_not_finite"),
        (np.full((8, 8), np.inf), "array_not_finite"),
        (np.zeros((8, 8), np.int64), "array_type"),
        (np.zeros((8, 8, 3), np.uint8), "array_shape"),
        (np.zeros((9, 8), np.uint8), "array_shape"),
        (np.zeros((1, 8, 8, 1), np.uint8), "array_dimensions"),
        (np.zeros(5, np.uint8), "array_unreadable"),
    ],
    ids=["nan", "inf", "integers", "channels", "size", "dimensions", "vector"],
)
def test_an_array_that_the_model_cannot_read_is_refused_with_its_record(array, code):
    with refused(code) as refusal:
        Classifier(ARRAY_MODELS["vit"](), Question()).answer([Record(id="bad", array=array, label=0)])
    assert "'bad'" in refusal.error.found


def test_an_array_of_the_wrong_size_for_a_perceptron_is_refused():
    with refused("array_unreadable") as refusal:
        Classifier(ARRAY_MODELS["perceptron"](), Question()).answer(images(2, 9, 9))
    assert "'0'" in refusal.error.found


def test_text_for_a_model_of_arrays_and_the_reverse_are_refused():
    with refused("record_without_array"):
        Classifier(ARRAY_MODELS["vit"](), Question()).answer([Record(id="t", text="hello", label=0)])
    with refused("record_without_text"):
        Classifier(TEXT_MODELS["bert"](), Question()).answer(images(1, 8, 8))


def test_a_text_that_is_too_long_is_refused_and_not_cut():
    records = [Record(id="short", text="a", label=0), Record(id="long", text="a b " * 60, label=0)]
    with refused("text_too_long") as refusal:
        Classifier(TEXT_MODELS["bert"](), Question()).answer(records)
    assert "'long'" in refusal.error.found
    assert "64" in refusal.error.found


def test_an_empty_text_is_refused_where_nothing_would_be_read():
    with refused("empty_text"):
        Classifier(TEXT_MODELS["llama"](), Question()).answer([Record(id="e", text="", label=0)])


@pytest.mark.parametrize("settings", [{"num_labels": 1}, {"problem_type": "multi_label_classification"}])
def test_a_model_that_does_not_choose_one_label_is_refused(settings):
    pretrained = ARRAY_MODELS["perceptron"]()
    for name, value in settings.items():
        setattr(pretrained.network.config, name, value)
    with refused("not_a_classifier"):
        Classifier(pretrained, Question())


def test_a_model_whose_weights_are_not_numbers_is_refused():
    pretrained = ARRAY_MODELS["perceptron"]()
    torch.nn.init.constant_(pretrained.network.classifier.weight, float("nan"))
    with refused("logits_not_finite"):
        Classifier(pretrained, Question()).answer(images(1, 8, 8))


@pytest.mark.parametrize(
    ("card", "preprocessing", "mean", "std"),
    [
        ({"input_mean": 0.5, "input_std": [0.25]}, {"image_mean": [9.0], "image_std": [9.0]}, (0.5,), (0.25,)),
        ({}, {"image_mean": [0.1, 0.2, 0.3], "image_std": [0.5, 0.5, 0.5]}, (0.1, 0.2, 0.3), (0.5, 0.5, 0.5)),
        ({}, {"image_mean": [0.1], "image_std": [0.5], "do_normalize": False}, (0.0,), (1.0,)),
        ({}, {}, (0.0,), (1.0,)),
    ],
    ids=["card", "processor", "switched-off", "none"],
)
def test_inputs_are_scaled_as_the_card_says_or_else_the_processor(card, preprocessing, mean, std):
    scaling = ArrayScaling.of(card, preprocessing, "m")
    assert (scaling.mean, scaling.std) == (mean, std)


@pytest.mark.parametrize("std", [0.0, float("nan"), [1.0, -1.0], "wide", {}])
def test_a_scaling_that_makes_no_sense_is_refused(std):
    with refused("invalid_scaling"):
        ArrayScaling.of({"input_std": std}, {}, "m")


def test_bytes_are_divided_by_255_and_channels_come_first():
    picture = np.arange(4 * 2 * 3, dtype=np.uint8).reshape(4, 2, 3)
    reader = ArrayReader(scaling=ArrayScaling(mean=(0.1, 0.2, 0.3), std=(0.5, 1.0, 2.0)))
    found = reader(Record(id="r", array=picture, label=0))
    assert found.shape == (3, 4, 2)
    assert found.dtype == np.float32
    for channel in range(3):
        expected = (picture[..., channel] / 255 - reader.scaling.mean[channel]) / reader.scaling.std[channel]
        np.testing.assert_allclose(found[channel], expected, rtol=1e-5)
    grey = reader.__class__(scaling=ArrayScaling())(Record(id="r", array=np.float64([[0.25, 1.0]]), label=0))
    assert grey.tolist() == [[[0.25, 1.0]]]


def test_scaling_for_another_number_of_channels_is_refused():
    reader = ArrayReader(scaling=ArrayScaling(mean=(0.1, 0.2), std=(1.0,)))
    with refused("scaling_of_other_channels"):
        reader(Record(id="r", array=np.zeros((4, 4), np.uint8), label=0))


def test_it_is_a_model_that_shows_probabilities():
    model = Classifier(ARRAY_MODELS["perceptron"](), Question())
    assert isinstance(model, Model)
    assert (model.kind, model.access) == ("classifier", Access.PROBABILITIES)


def test_a_killed_classifier_of_texts_repeats_no_finished_batch_and_ends_with_the_same_bytes(tmp_path, monkeypatch):
    corpus = Corpus.of(Record(id=str(i), text=f"{TEXTS[0][:20]} {i}", label=NAMES[i % 3]) for i in range(24))
    pretrained, computed = text_classifier("bert"), []
    forward = Classifier(pretrained, Question())._inputs._forward

    def build(*, until: int) -> Classifier:
        """One that is killed after so many batches."""
        model = Classifier(pretrained, Question())
        model.budget = 64

        def count(ids, mask):
            if len(computed) == until:
                raise KeyboardInterrupt
            computed.append(len(ids))
            return forward(ids, mask)

        monkeypatch.setattr(model._inputs, "_forward", count)
        return model

    whole = score_corpus(build(until=1000), corpus, tmp_path / "whole", backend=LocalBackend(threads=1))
    everything = list(computed)
    assert len(everything) > 5
    computed.clear()
    with pytest.raises(KeyboardInterrupt):
        score_corpus(build(until=4), corpus, tmp_path / "killed", backend=LocalBackend(threads=1))
    found = score_corpus(build(until=1000), corpus, tmp_path / "killed", backend=LocalBackend(threads=1))
    assert computed == everything
    for path in whole.folder.iterdir():
        assert (found.folder / path.name).read_bytes() == path.read_bytes()
