"""One grammar for model strings; whatever breaks it is refused before anything is loaded or requested."""

from __future__ import annotations

import subprocess
import sys
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recollect import load_model
from recollect.errors import ModelError
from recollect.models.loading.adapter_bases import get_natural_reference
from recollect.models.model_strings import (
    AdapterRef,
    CodeRef,
    EndpointRef,
    FolderRef,
    GgufRef,
    HubRef,
    RecordingRef,
    parse_checkpoint,
    parse_model,
)
from recollect.testing.refusals import refused


@pytest.fixture
def here(tmp_path, monkeypatch):
    """A working folder with some models in it."""
    for name in ("base", "lora", "c++", "runs/a+b"):
        (tmp_path / name).mkdir(parents=True)
    (tmp_path / "small.gguf").touch()
    (tmp_path / "weights.bin").touch()
    monkeypatch.chdir(tmp_path)
    return tmp_path


HUB = HubRef("owner/name.v2")
GRAMMAR = {
    "base": FolderRef("base"),
    "./base": FolderRef("./base"),
    "c++": FolderRef("c++"),
    "runs/a+b": FolderRef("runs/a+b"),
    "hf:gpt2": HubRef("gpt2"),
    "hf:owner/name.v2": HUB,
    "hf:gpt2@refs/pr/1": HubRef("gpt2", "refs/pr/1"),
    "base+lora": AdapterRef(FolderRef("base"), FolderRef("lora")),
    "c+++lora": AdapterRef(FolderRef("c++"), FolderRef("lora")),
    "base+runs/a+b": AdapterRef(FolderRef("base"), FolderRef("runs/a+b")),
    "hf:owner/name.v2@main+lora": AdapterRef(HubRef("owner/name.v2", "main"), FolderRef("lora")),
    "base+hf:owner/name.v2": AdapterRef(FolderRef("base"), HUB),
    "hf:gpt2+hf:owner/name.v2@abc": AdapterRef(HubRef("gpt2"), HubRef("owner/name.v2", "abc")),
    "small.gguf": GgufRef("small.gguf"),
    "recorded:some/where+else": RecordingRef("some/where+else"),
    "python:package.module:factory": CodeRef("package.module", "factory"),
    "http://localhost:8000/v1#my/model": EndpointRef("http://localhost:8000/v1", "my/model"),
    "https://example.org/v1#gpt": EndpointRef("https://example.org/v1", "gpt"),
}


@pytest.mark.usefixtures("here")
@pytest.mark.parametrize("text", GRAMMAR)
def test_every_form_is_distinguished_and_written_as_it_came(text):
    assert parse_model(text) == GRAMMAR[text]
    assert str(parse_model(text)) == text


def test_a_home_folder_may_be_meant(here, monkeypatch):
    monkeypatch.setenv("HOME", str(here))
    assert parse_model("~/base").path == here / "base"


@pytest.mark.usefixtures("here")
@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("", "no_such_model"),
        ("gpt2", "no_such_model"),
        ("owner/name", "no_such_model"),
        ("base+lroa", "no_such_model"),
        ("bsae+lora", "no_such_model"),
        ("gpt2+lora", "no_such_model"),
        ("no+no", "no_such_model"),
        ("missing.gguf", "no_such_model"),
        ("openai:", "no_such_model"),
        ("http://user:secret@localhost:8000/v1", "invalid_endpoint"),
        ("~nobody-of-that-name/x", "no_such_model"),
        ("x" * 5000, "no_such_model"),
        ("a\0b", "no_such_model"),
        ("weights.bin", "model_is_a_file"),
        ("base+weights.bin", "model_is_a_file"),
        ("hf:", "invalid_hub_name"),
        ("hf:a/b/c", "invalid_hub_name"),
        ("hf:../etc", "invalid_hub_name"),
        ("hf:gpt2@", "invalid_hub_name"),
        ("hf:gpt2@main@x", "invalid_hub_name"),
        ("hf:+lora", "invalid_hub_name"),
        ("python:module", "no_factory_named"),
        ("python::factory", "no_factory_named"),
        ("http://localhost:8000/v1", "invalid_endpoint"),
        ("https://#gpt", "invalid_endpoint"),
    ],
)
def test_what_names_nothing_is_refused_at_once(text, code):
    with refused(code, ModelError):
        parse_model(text)


@pytest.mark.usefixtures("here")
def test_a_bare_name_is_reported_the_hubs_and_what_is_here():
    with refused("no_such_model") as refusal:
        parse_model("owner/name")
    assert "hf:owner/name" in refusal.error.do
    with refused("no_such_model") as refusal:
        parse_model("basse")
    assert "'base'" in refusal.error.do
    for name in ("base", "lora", "runs"):
        assert name in refusal.error.found


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("openai:gpt", "https://api.openai.com/v1#gpt"),
        ("vllm:org/bot", "http://localhost:8000/v1#org/bot"),
        ("llamacpp:small.gguf", "http://localhost:8080/v1#small.gguf"),
    ],
)
def test_a_server_that_has_a_name_stands_for_its_usual_address(text, address):
    assert parse_model(text) == parse_model(address)
    assert str(parse_model(text)) == address
    assert get_natural_reference(text) is None


@pytest.mark.usefixtures("here")
def test_a_gguf_file_that_holds_no_model_is_refused():
    with refused("gguf_unreadable"):
        load_model("small.gguf")


def test_the_base_is_the_natural_reference(here):
    assert get_natural_reference(f"{here / 'base'}+{here / 'lora'}") == str(here / "base")
    assert get_natural_reference("hf:gpt2@v1+lora") == "hf:gpt2@v1"
    for text in ("base", "c++", "hf:gpt2", "recorded:a+b", "python:a:b", "http://h/v1#a+b", "no+no"):
        assert get_natural_reference(text) is None


@pytest.mark.usefixtures("here")
def test_a_training_starts_from_a_folder_or_the_hub_only():
    assert parse_checkpoint("base") == FolderRef("base")
    assert parse_checkpoint("hf:gpt2") == HubRef("gpt2")
    for text in ("base+lora", "small.gguf", "recorded:base", "python:a:b", "http://h/v1#m"):
        with refused("not_a_checkpoint"):
            parse_checkpoint(text)


@given(st.text(max_size=40))
def test_any_text_is_parsed_or_refused(text):
    with suppress(ModelError):
        assert str(parse_model(text)) == text


def test_a_refusal_does_not_wait_for_torch(tmp_path):
    (tmp_path / "empty").mkdir()
    script = (
        "import sys, recollect\n"
        "from recollect.errors import ModelError\n"
        "for ref in ('gpt2', 'empty', 'http://h/v1#m', 'python:nowhere:f', 'recorded:empty'):\n"
        "    try: recollect.load_model(ref)\n"
        "    except recollect.errors.RecollectError: pass\n"
        "    else: raise AssertionError(ref)\n"
        "assert 'torch' not in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", script], check=True, cwd=tmp_path)  # noqa: S603
