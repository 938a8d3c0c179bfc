"""Where a model is: only what is marked as the hub's asks the network, and every refusal says what was tried."""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import huggingface_hub.constants
import pytest
import torch
from safetensors.torch import load_file

from recollect import load_model
from recollect.models import Access, limited
from recollect.session import Session
from recollect.testing.refusals import refused


def test_a_name_that_is_nearly_right_is_suggested(folders):
    with refused("no_such_model") as refusal:
        load_model(str(folders / "bret"))
    assert f"'{folders / 'bert'}'" in refusal.error.do


def test_a_file_in_place_of_its_folder_is_explained(folders):
    with refused("model_is_a_file") as refusal:
        load_model(str(folders / "bert" / "config.json"))
    assert f"'{folders / 'bert'}'" in refusal.error.do


def test_a_folder_of_checkpoints_names_the_last(tmp_path):
    for step in (900, 1000):
        (tmp_path / f"checkpoint-{step}").mkdir()
        (tmp_path / f"checkpoint-{step}" / "config.json").write_text("{}")
    with refused("no_model_in_folder") as refusal:
        load_model(str(tmp_path))
    assert f"'{tmp_path / 'checkpoint-1000'}'" in refusal.error.do


@pytest.mark.parametrize(
    ("files", "code", "named"),
    [
        ([], "no_model_in_folder", "save_pretrained"),
        (["manifest.json"], "no_model_in_folder", "recorded:"),
        (["config.json"], "no_weights", "model.safetensors"),
        (["config.json", "tf_model.h5"], "no_weights", "tf_model.h5"),
    ],
)
def test_a_folder_that_holds_something_else_is_explained(tmp_path, files, code, named):
    for name in files:
        (tmp_path / name).write_text("{}")
    with refused(code) as refusal:
        load_model(str(tmp_path))
    assert named in str(refusal.error)


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
    for path in (f"{folders.name}/brt", "./brt", "/nowhere/brt", "a/b/c", "gpt2", "somebody/some-model", ""):
        with refused("no_such_model"):
            load_model(path)


@pytest.fixture
def offline(monkeypatch, tmp_path):
    """No network, and an empty cache of the hub."""
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_OFFLINE", True)
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_CACHE", str(tmp_path / "hub"))
    return tmp_path / "hub"


def test_a_hub_id_without_a_network_says_what_was_tried_and_what_to_do(offline):
    with refused("hub_unreachable") as refusal:
        load_model("hf:somebody/some-model@v2")
    for named in ("HF_HUB_OFFLINE", str(offline), "hf download somebody/some-model --revision v2"):
        assert named in str(refusal.error)


COMMIT = "c0ffee" * 6 + "c0ff"


def cached(offline, folder, *, branch):
    """A folder as the hub's cache holds it, under a branch."""
    home = offline / f"models--somebody--{folder.name}"
    shutil.copytree(folder, home / "snapshots" / COMMIT)
    (home / "refs").mkdir()
    (home / "refs" / branch).write_text(COMMIT)


def test_a_hub_id_is_read_from_the_cache_and_its_commit_is_kept(offline, folders):
    cached(offline, folders / "bert", branch="main")
    here, there = load_model(str(folders / "bert")), load_model("hf:somebody/bert")
    assert there.digest == here.digest
    assert (there.name, there.revision, here.revision) == ("hf:somebody/bert", COMMIT, None)
    assert limited(there, Access.LABEL).revision == COMMIT


def test_the_commit_that_a_hub_id_was_resolved_to_is_in_the_result(offline, folders, tmp_path):
    cached(offline, folders / "gpt2", branch="v2")
    rows = [{"user": f"u{i}", "text": f"some words of person {i}"} for i in range(30)]
    found = Session(work=tmp_path / "work").membership(
        "hf:somebody/gpt2@v2", rows[:5], controls=rows[5:], signal="loss", by="user"
    )
    facts = found.result.provenance.models["target"]
    assert (facts.name, facts.revision) == ("hf:somebody/gpt2@v2", COMMIT)


def test_a_revision_is_pinned_by_branch_or_commit(offline, folders):
    cached(offline, folders / "gpt2", branch="v2")
    for revision in ("v2", COMMIT):
        assert load_model(f"hf:somebody/gpt2@{revision}").revision == COMMIT
    with refused("hub_unreachable"):
        load_model("hf:somebody/gpt2")


class Hub(BaseHTTPRequestHandler):
    """As much of the hub as a download needs: facts of a repository, the list of its files, the files."""

    def do_GET(self):
        path, _, _ = self.path.partition("?")
        files = {file.relative_to(self.server.folder).as_posix(): file for file in self.server.folder.rglob("*.*")}
        if "/tree/" in path:
            held = [
                {"type": "file", "path": name, "size": file.stat().st_size, "oid": name} for name, file in files.items()
            ]
            body = json.dumps(held).encode()
        elif path.startswith("/api/"):
            body = json.dumps({"id": "somebody/model", "sha": COMMIT}).encode()
        else:
            body = files[path.partition(f"/resolve/{COMMIT}/")[2]].read_bytes()
        self.send_response(200)
        for name, value in (("Content-Length", len(body)), ("ETag", f'"{path}"'), ("X-Repo-Commit", COMMIT)):
            self.send_header(name, str(value))
        self.end_headers()
        if self.command == "GET":
            self.wfile.write(body)

    do_HEAD = do_GET  # noqa: N815 - the library's name

    def log_message(self, *_args):
        """Nothing: the test's output is its own."""


@pytest.mark.slow
@pytest.mark.loopback
@pytest.mark.parametrize("pickled", [False, True], ids=["safetensors", "pickled"])
def test_a_hub_id_is_fetched_without_what_is_not_needed(bert, folders, tmp_path, pickled):
    (bert / "onnx").mkdir()
    for name in ("onnx/config.json", "tf_model.h5", "training_args.bin"):
        (bert / name).write_text("{}")
    torch.save(load_file(bert / "model.safetensors"), bert / "pytorch_model.bin")
    if pickled:
        (bert / "model.safetensors").unlink()
    server = ThreadingHTTPServer(("127.0.0.1", 0), Hub)
    server.folder = bert
    threading.Thread(target=server.serve_forever, daemon=True).start()
    home = {
        "HF_ENDPOINT": f"http://127.0.0.1:{server.server_port}",
        "HF_HUB_CACHE": str(tmp_path),
        "HF_HUB_OFFLINE": "0",
    }
    script = "import recollect; print(recollect.load_model('hf:somebody/model').digest)"
    command = [sys.executable, "-c", script]
    done = subprocess.run(command, env=os.environ | home, capture_output=True, text=True, check=False)  # noqa: S603
    server.shutdown()
    assert done.stdout.strip() == load_model(str(folders / "bert")).digest, done.stderr
    fetched = {path.name for path in (tmp_path / "models--somebody--model" / "snapshots" / COMMIT).iterdir()}
    weights = "pytorch_model.bin" if pickled else "model.safetensors"
    assert fetched == {"config.json", "tokenizer.json", "tokenizer_config.json", weights}
