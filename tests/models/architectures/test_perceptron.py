"""The multi-layer perceptron for arrays."""

import torch
from transformers import AutoModelForImageClassification

import recollect.models.architectures  # noqa: F401 - registers the architectures
from recollect.models.architectures import PerceptronClassifier, PerceptronConfig


def model_of(**settings):
    torch.manual_seed(0)
    return PerceptronClassifier(
        PerceptronConfig(**{"inputs": 16, "hidden": [7, 5], "num_labels": 3, **settings})
    ).eval()


def test_logits_are_matrix_products_with_relu_between():
    model, images = model_of(), torch.randn(4, 1, 4, 4)
    weights = [p.detach() for p in model.parameters()]
    value = images.reshape(4, 16)
    for weight, bias in zip(weights[0:4:2], weights[1:4:2], strict=True):
        value = (value @ weight.T + bias).clamp(min=0)
    expected = value @ weights[4].T + weights[5]
    torch.testing.assert_close(model(images).logits, expected)
    torch.testing.assert_close(model(images.reshape(4, 16)).logits, expected)


def test_the_loss_is_the_mean_over_records():
    model, images, labels = model_of(), torch.randn(4, 16), torch.tensor([0, 2, 1, 1])
    logprobs = model(images).logits.log_softmax(-1)
    torch.testing.assert_close(model(images, labels=labels).loss, -logprobs[range(4), labels].mean())


def test_the_papers_perceptron_loads_with_its_labels(tmp_path):
    names = {i: f"digit {i}" for i in range(10)}
    model = PerceptronClassifier(PerceptronConfig(id2label=names, label2id={v: k for k, v in names.items()}))
    assert sum(p.numel() for p in model.parameters()) == 784 * 256 + 256 + 256 * 256 + 256 + 256 * 10 + 10
    model.save_pretrained(tmp_path)
    loaded = AutoModelForImageClassification.from_pretrained(tmp_path)
    assert loaded.config.label2id["digit 7"] == 7
    images = torch.randn(2, 1, 28, 28)
    assert torch.equal(loaded(images).logits, model.eval()(images).logits)


def test_without_hidden_layers_it_is_one_linear_layer():
    assert len(list(model_of(hidden=[]).parameters())) == 2
