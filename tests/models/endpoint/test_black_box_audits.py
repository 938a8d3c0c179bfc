"""Audits through a real server give the verdicts of the same model on this machine, and the key is nowhere."""

from __future__ import annotations

import json
import os
import runpy
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

import recollect as rc
from recollect.testing.scripted_server import Behaviour, ScriptedServer

pytestmark = [pytest.mark.loopback]
EXAMPLE = Path(__file__).resolve().parents[3] / "examples" / "black-box" / "audit.py"
KEY = "sk-neverwrittenanywhere0123456789"


@pytest.fixture(scope="module")
def service(tmp_path_factory):
    """The example's service, its files, and its address."""
    pytest.importorskip("xllamacpp")
    from recollect.testing.llama_server import run_llama_server

    folder, example = tmp_path_factory.mktemp("service"), runpy.run_path(str(EXAMPLE))
    texts = example["write_people"](folder / "audited.jsonl", 0, 24)
    example["write_people"](folder / "controls.jsonl", 1000, 60)
    with run_llama_server(example["build_service"](folder, texts), context=256) as address:
        yield folder, address


@pytest.mark.slow
@pytest.mark.parametrize(("audit", "settings"), [("membership", {"signal": "loss"}), ("leakage", {"top_k": 3})])
def test_verdicts_are_those_of_the_local_run(service, tmp_path, audit, settings):
    folder, address = service
    given = {"controls": str(folder / "controls.jsonl"), **settings}
    local, served = (
        getattr(rc, audit)(model, str(folder / "audited.jsonl"), work=tmp_path / "work", **given)
        for model in (str(folder / "model"), address)
    )
    assert served.outcome == local.outcome == "found"
    assert served.verdict == local.verdict
    ours, theirs = ({f.name: f.value for f in each.findings} for each in (served, local))
    assert ours.keys() == theirs.keys()
    assert all(np.isclose(ours[name], theirs[name], rtol=0.02, atol=1e-3) for name in ours)
    assert "texts_sent_to_server" in served.result.note_codes
    assert all("noise floor" in finding.method for finding in served.findings)
    facts = served.provenance.models["target"].endpoint
    assert (facts.server, facts.generation) == ("llamacpp", 0)
    assert served.provenance.torch is None


@pytest.mark.slow
def test_a_planted_secret_is_extracted_through_the_server(service, tmp_path):
    folder, address = service
    texts = [json.loads(line)["text"] for line in (folder / "audited.jsonl").read_text().splitlines()]
    prefix = texts[0].partition("key ")[0] + "key "
    planted = {text[: len(prefix) + 4] for text in texts if text.startswith(prefix)}
    served, local = (
        rc.extract(
            model,
            format=prefix + "{digits:4}",
            server_tokenizer=str(folder / "model"),
            work=tmp_path / "work",
            show_text=True,
        )
        for model in (address, str(folder / "model"))
    )
    found, expected = (each.table("secrets").to_pylist() for each in (served, local))
    assert found[0]["secret"] in planted
    assert found[0]["proven"]
    assert found[0]["secret"] == expected[0]["secret"]
    assert abs(found[0]["log_perplexity_bits"] - expected[0]["log_perplexity_bits"]) < 0.01


@pytest.mark.slow
def test_the_key_is_in_no_file_message_or_process_list(tmp_path):
    texts = tmp_path / "texts.jsonl"
    texts.write_text("\n".join(json.dumps({"text": f"the cat and {i} dogs"}) for i in range(30)))
    behaviour = Behaviour(shows="prompt_logprobs", key=KEY, slow=0.05, error_rate=0.05)
    with ScriptedServer(behaviour=behaviour).run() as server:
        words = [sys.executable, "-m", "recollect", "score", server.url, str(texts), "--work", str(tmp_path / "work")]
        words += ["--key-variable", "SERVICE_KEY", "--json"]
        settings = {**os.environ, "SERVICE_KEY": KEY}
        client = subprocess.Popen(words, env=settings, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)  # noqa: S603
        listed = ""
        while client.poll() is None:
            listed += Path(f"/proc/{client.pid}/cmdline").read_text()
            time.sleep(0.1)
        said = "".join(client.communicate())
        assert client.returncode == 0, said
        server.behaviour.key = "another"
        refused = subprocess.run(words, env=settings, capture_output=True, text=True, check=False)  # noqa: S603
    assert refused.returncode == 2
    assert "Incorrect API key" in refused.stderr
    written = b"".join(path.read_bytes() for path in tmp_path.rglob("*") if path.is_file())
    for place in (listed, said, refused.stdout + refused.stderr, written.decode("latin-1")):
        assert KEY not in place
        assert KEY[3:20] not in place
