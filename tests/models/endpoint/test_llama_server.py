"""llama.cpp's own server: its log-probabilities are those of transformers, for a model made here and for a real one."""

from __future__ import annotations

import json
import os
from pathlib import Path

import numpy as np
import pytest

import recollect as rc
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
SMOLLM2 = os.environ.get("RECOLLECT_SMOLLM2")
needs_smollm2 = pytest.mark.skipif(SMOLLM2 is None, reason="RECOLLECT_SMOLLM2 names no folder of SmolLM2-135M")
PROSE = [
    "The committee met in the old town hall on Tuesday and agreed, after two hours of debate, to repair the bridge.",
    "I bought this kettle last spring. It worked well for a month, then the handle broke and the shop gave no refund.",
    "Photosynthesis turns light, water and carbon dioxide into sugar and oxygen; most of it takes place in the leaves.",
    "def area(width, height):\n    return width * height\n\nprint(area(3, 4))",
    "Dear Ms Okafor, thank you for your letter of 12 March. Your appointment was moved to Friday at half past ten.",
]


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


def test_check_tells_that_a_search_sends_requests_besides(tiny, address, tmp_path, monkeypatch):
    from typer.testing import CliRunner

    from recollect.cli.app import app

    monkeypatch.chdir(tmp_path)
    tiny.tokenizer.save_pretrained(tmp_path / "tokenizer")
    target = {"model": address, "server_tokenizer": "tokenizer"}
    plan = {"models": {"target": target}, "audits": {"extraction": {"format": "again {digits:3}"}}}
    (tmp_path / "plan.yaml").write_text(json.dumps(plan))
    (forecast,) = rc.check(tmp_path / "plan.yaml")
    assert forecast.servers["target"].search_steps == 2000
    told = CliRunner().invoke(app, ["check", "plan.yaml"])
    assert told.exit_code == 0
    assert "in at most 2,000 steps" in " ".join(told.output.split())


def test_another_tokenizer_than_the_servers_is_refused(tiny, address, tmp_path):
    from recollect.testing.refusals import refused

    other = build_tiny_model("gpt2").tokenizer
    other.add_tokens(["library"])
    other.save_pretrained(tmp_path / "other")
    with refused("other_tokenizer"):
        load_model(address, endpoint=EndpointSettings(work=tmp_path, tokenizer=str(tmp_path / "other")))


@pytest.mark.slow
@needs_smollm2
def test_scores_of_a_real_quantised_model_differ_by_the_servers_arithmetic_alone(tmp_path):
    folder, records = Path(SMOLLM2), [Record(id=str(i), text=text) for i, text in enumerate(PROSE)]
    with run_llama_server(folder.parent / "model.gguf") as url:
        model = load_model(url, endpoint=EndpointSettings(work=tmp_path, tokenizer=str(folder)))
        served = model.answer(records)
    local = load_model(str(folder)).answer(records)
    assert np.array_equal(served.position, local.position)
    gaps = np.abs(served.logprob - local.logprob)
    assert np.median(gaps) < 0.08
    assert np.quantile(gaps, 0.99) < 0.5


def test_a_file_takes_its_tokenizer_from_another_one_key_by_key(tiny, tmp_path):
    import gguf

    first = write_llama_file(tiny.network, tiny.tokenizer, tmp_path / "first.gguf", splits="smollm")
    half = write_llama_file(tiny.network, first, tmp_path / "half.gguf", precision="F16")
    fields = [gguf.GGUFReader(path).fields for path in (first, half)]
    names = {name for name in fields[0] if name.startswith("tokenizer.")}
    assert names == {name for name in fields[1] if name.startswith("tokenizer.")}
    assert {"tokenizer.ggml.tokens", "tokenizer.ggml.merges", "tokenizer.ggml.pre"} <= names
    for name in names:
        assert fields[0][name].contents() == fields[1][name].contents()
        assert fields[0][name].types == fields[1][name].types
    kinds = {each.name: each.tensor_type.name for each in gguf.GGUFReader(half).tensors}
    assert (kinds["token_embd.weight"], kinds["output_norm.weight"]) == ("F16", "F32")
