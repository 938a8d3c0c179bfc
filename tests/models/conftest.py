"""What the tests of models share: ragged texts in several scripts, and the slow, obvious way to score them."""

import copy
import shutil
from pathlib import Path

import numpy as np
import pytest
import torch
from transformers import AutoConfig, AutoModelForImageClassification

from recollect.corpora.record import Record
from recollect.testing.tiny import build_tiny_model, save_tiny

RAGGED = [
    "The quick brown fox jumps over the lazy dog.",
    "Съешь же ещё этих мягких французских булок, да выпей чаю",
    "春眠不覚暁、処処聞啼鳥。",
    "🙂",
    "👩‍👩‍👧‍👦 and 🏳️‍🌈",
    "e\u0301te\u0301 n\u0303andu\u0301 \u202eabc\u202c",
    "",
    "a",
    " ",
    "a </s> b <s><pad> c <|endoftext|> [CLS][SEP]<mask>",
    "the lazy dog, again and again; " * 8,
]


@pytest.fixture(scope="session")
def ragged():
    """Texts of many lengths: empty, one token, longer than the window of the tiny models."""
    return [Record(id=f"r{i}", text=text) for i, text in enumerate(RAGGED)]


@pytest.fixture
def logits_alone():
    """A function: the logits of one unpadded input [length, vocabulary], in double precision, whole."""

    twins = {}

    def logits(network, **inputs):
        twin = twins.get(network) or twins.setdefault(network, copy.deepcopy(network).double())
        with torch.no_grad():
            return (
                twin(**{name: torch.tensor([[int(i) for i in ids]]) for name, ids in inputs.items()}).logits[0].numpy()
            )

    return logits


def numbers_of(logits, symbol):
    """Rank, log-probability, entropy and logprob_std of one token, by their definitions."""
    shifted = logits - logits.max()
    logprobs = shifted - np.log(np.exp(shifted).sum())
    probabilities = np.exp(logprobs)
    possible = probabilities > 0
    mean = (probabilities[possible] * logprobs[possible]).sum()
    variance = (probabilities[possible] * (logprobs[possible] - mean) ** 2).sum()
    return int((logits >= logits[symbol]).sum()), logprobs[symbol], -mean, np.sqrt(variance)


@pytest.fixture
def assert_numbers():
    """A function: compares rows of numbers (anything with the four columns) with (logits, token) pairs.

    In single precision a rank may be off by competitors within 1e-5 of the true logit only.
    """

    def check(found, rows, expected, *, exact_ranks=False, within=1e-4):
        assert len(rows) == len(expected)
        for row, (logits, symbol) in zip(rows, expected, strict=True):
            rank, *numbers = numbers_of(np.asarray(logits, dtype=np.float64), symbol)
            assert [found.logprob[row], found.entropy[row], found.logprob_std[row]] == pytest.approx(
                numbers, abs=within
            )
            near = int((np.abs(logits - logits[symbol]) <= 1e-5).sum()) - 1
            assert abs(int(found.rank[row]) - rank) <= (0 if exact_ranks else near)

    return check


@pytest.fixture(scope="session")
def folders(tmp_path_factory):
    """Tiny models of every kind, saved as anyone would."""
    home = tmp_path_factory.mktemp("models")
    for family in ("gpt2", "bert", "t5"):
        save_tiny(build_tiny_model(family), home / family)
    config = AutoConfig.for_model("recollect-perceptron", inputs=64, hidden=[8], num_labels=3)
    AutoModelForImageClassification.from_config(config).save_pretrained(home / "mlp")
    return home


@pytest.fixture
def bert(folders, tmp_path):
    """A copy of one of them that a test may damage."""
    return Path(shutil.copytree(folders / "bert", tmp_path / "bert"))
