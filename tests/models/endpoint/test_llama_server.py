"""llama.cpp's own server: its log-probabilities are those of transformers, for a model made here and for a real one."""

from __future__ import annotations

import numpy as np
import pytest

from recollect.corpora.record import Record
from recollect.models.access import Access
from recollect.models.endpoint.settings import EndpointSettings
from recollect.models.hugging_face.causal import Causal
from recollect.models.loading.loader import load_model
from recollect.models.model import Question
from recollect.testing.llama_files import write_llama_file
from recollect.testing.llama_server import run_llama_server
from recollect.testing.tiny import TEXTS, build_tiny_model

pytestmark = [pytest.mark.loopback]
pytest.importorskip("xllamacpp")
RECORDS = [Record(id=str(i), text=text) for i, text in enumerate(TEXTS)]


@pytest.fixture(scope="module")
def tiny():
    """A tiny Llama with a start token before every text."""
    return build_tiny_model("llama", window=256)


@pytest.fixture(scope="module")
def address(tiny, tmp_path_factory):
    """The address of a server that serves it."""
    path = write_llama_file(tiny.network, tiny.tokenizer, tmp_path_factory.mktemp("gguf") / "tiny.gguf")
    with run_llama_server(path, context=256) as url:
        yield url


def test_scores_of_a_tiny_model_equal_those_of_transformers(tiny, address, tmp_path):
    model = load_model(address, endpoint=EndpointSettings(work=tmp_path))
    assert model.access == Access(k=20, logprob="any", distribution=False, steps=False)
    assert model.endpoint.server == "llamacpp"
    served, local = model.answer(RECORDS), Causal(tiny, Question()).answer(RECORDS)
    assert np.abs(served.logprob - local.logprob).max() < 1e-3
    assert np.array_equal(served.rank, np.where(local.rank > 20, 0, local.rank))
    for column in ("offsets", "position", "start", "end", "known"):
        assert np.array_equal(getattr(served, column), getattr(local, column))


def test_the_whole_vocabulary_gives_every_rank_and_the_distribution(tiny, address, tmp_path):
    model = load_model(address, endpoint=EndpointSettings(work=tmp_path, top_logprobs=400))
    assert model.access == Access.PROBABILITIES
    served, local = model.answer(RECORDS[:1]), Causal(tiny, Question()).answer(RECORDS[:1])
    assert np.array_equal(served.rank, local.rank)
    assert np.abs(served.entropy - local.entropy).max() < 1e-3
    assert np.abs(served.logprob_std - local.logprob_std).max() < 1e-3


def test_a_named_tokenizer_reads_as_the_servers_and_lets_tokens_be_stepped_through(tiny, address, tmp_path):
    tiny.tokenizer.save_pretrained(tmp_path / "tokenizer")
    settings = EndpointSettings(work=tmp_path, tokenizer=str(tmp_path / "tokenizer"))
    model = load_model(address, endpoint=settings)
    assert model.access.steps
    stepper, own = model.stepper(), Causal(tiny, Question()).stepper()
    among = [70, 5, 300, 120]
    for walk in ("The quick", "e"):
        assert stepper.encode(walk) == own.encode(walk)
        first, mine = stepper.start(walk), own.start(walk)
        assert np.abs(stepper.score_next(first, among=among) - own.score_next(mine, among=among)).max() < 1e-3
        _, served = stepper.step(first, [0, 0], [80, 90], among=among)
        _, local = own.step(mine, [0, 0], [80, 90], among=among)
        assert np.abs(served - local).max() < 1e-3


def test_another_tokenizer_than_the_servers_is_refused(tiny, address, tmp_path):
    from recollect.testing.refusals import refused

    other = build_tiny_model("gpt2").tokenizer
    other.add_tokens(["library"])
    other.save_pretrained(tmp_path / "other")
    with refused("other_tokenizer"):
        load_model(address, endpoint=EndpointSettings(work=tmp_path, tokenizer=str(tmp_path / "other")))
