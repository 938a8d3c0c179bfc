"""Corpora in object storage, read from a real S3-compatible server in an environment of its own.

The server is moto's (`python -m venv .venv-moto && .venv-moto/bin/pip install "moto[server]"`); else it is skipped.
"""

from __future__ import annotations

import gzip
import os
import pickle
import shutil
import socket
import subprocess
import time
from pathlib import Path

import pytest

from recollect.corpora import read_corpus
from recollect.testing.refusals import refused

pytestmark = [pytest.mark.loopback]
SERVER = os.environ.get("RECOLLECT_MOTO") or shutil.which(
    "moto_server", path=os.pathsep.join([".venv-moto/bin", os.environ.get("PATH", "")])
)
ROWS = "".join(f'{{"id": "{i}", "user": "u{i % 3}", "text": "record number {i}"}}\n' for i in range(50))


@pytest.fixture(scope="module")
def bucket(tmp_path_factory):
    """A server with a bucket; gives what makes the name of an object."""
    if SERVER is None:
        pytest.skip("no moto_server on this machine (RECOLLECT_MOTO): object storage cannot be tested")
    os.environ["RECOLLECT_TESTS_NETWORK"] = "loopback"
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    server = subprocess.Popen(  # noqa: S603 - the server of this test
        [SERVER, "-H", "127.0.0.1", "-p", str(port)],
        env=environment,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("AWS_ACCESS_KEY_ID", "test")
        patch.setenv("AWS_SECRET_ACCESS_KEY", "test")
        patch.setenv("AWS_EC2_METADATA_DISABLED", "true")
        try:
            _wait(port)
            yield _fill(port)
        finally:
            server.kill()
            server.wait()


def _wait(port: int) -> None:
    deadline = time.monotonic() + 60
    while True:
        try:
            return socket.create_connection(("127.0.0.1", port), timeout=1).close()
        except OSError:
            assert time.monotonic() < deadline, "the server never answered"
            time.sleep(0.1)


def _fill(port: int):
    """A bucket with the same rows in several forms."""
    from pyarrow.fs import S3FileSystem

    options = f"endpoint_override=127.0.0.1:{port}&scheme=http&region=us-east-1&allow_delayed_open=true"
    files = S3FileSystem(
        endpoint_override=f"127.0.0.1:{port}",
        scheme="http",
        region="us-east-1",
        allow_bucket_creation=True,
        allow_delayed_open=True,  # small objects in one request: older servers of moto know no other way
    )
    files.create_dir("corpora")
    half = ROWS.splitlines(keepends=True)
    contents = {
        "train.jsonl": ROWS.encode(),
        "train.jsonl.gz": gzip.compress(ROWS.encode()),
        "shards/a.jsonl": "".join(half[:25]).encode(),
        "shards/b.jsonl": "".join(half[25:]).encode(),
        "empty.jsonl": b"",
    }
    for name, data in contents.items():
        with files.open_output_stream(f"corpora/{name}", compression=None) as stream:
            stream.write(data)
    return lambda name: f"s3://corpora/{name}?{options}"


@pytest.mark.parametrize("name", ["train.jsonl", "train.jsonl.gz"])
def test_an_object_is_the_same_corpus_as_a_file(bucket, tmp_path, name):
    local = tmp_path / "train.jsonl"
    local.write_text(ROWS)
    remote = read_corpus(bucket(name))
    assert remote.digest == read_corpus(local).digest
    assert list(pickle.loads(pickle.dumps(remote))) == list(read_corpus(local)), "a worker reads it, too"  # noqa: S301


def test_all_objects_below_a_name_are_one_corpus(bucket):
    corpus = read_corpus(bucket("shards"))
    assert [record.text for record in corpus] == [f"record number {i}" for i in range(50)]


def test_a_parquet_object_is_read_by_jumping_about(bucket, tmp_path):
    import pyarrow.json as json_tables
    import pyarrow.parquet as pq
    from pyarrow.fs import FileSystem

    local = tmp_path / "train.jsonl"
    local.write_text(ROWS)
    files, path = FileSystem.from_uri(bucket("train.parquet"))
    pq.write_table(json_tables.read_json(local), path, filesystem=files)
    assert read_corpus(bucket("train.parquet")).digest == read_corpus(local).digest


def test_what_is_not_there_is_said_with_what_is_nearby(bucket):
    with refused("missing_file") as refusal:
        read_corpus(bucket("trian.jsonl"))
    assert "train.jsonl" in str(refusal.error)
    with refused("empty_file"):
        read_corpus(bucket("empty.jsonl"))


def test_an_object_that_changed_since_it_was_named_is_refused(bucket):
    from pyarrow.fs import FileSystem

    files, path = FileSystem.from_uri(bucket("changing.jsonl"))
    for text in (ROWS, ROWS + ROWS.splitlines(keepends=True)[0].replace('"0"', '"x"')):
        with files.open_output_stream(path) as stream:
            stream.write(text.encode())
        if text is ROWS:
            corpus = read_corpus(bucket("changing.jsonl"))
    with refused("file_changed"):
        list(corpus)


def test_credentials_in_an_address_are_refused():
    with refused("credentials_in_address"):
        read_corpus("s3://key:secret@bucket/train.jsonl")


def test_a_server_that_does_not_answer_is_one_message(monkeypatch):
    for name, value in {"AWS_ACCESS_KEY_ID": "a", "AWS_SECRET_ACCESS_KEY": "b", "AWS_MAX_ATTEMPTS": "1"}.items():
        monkeypatch.setenv(name, value)
    with refused("unreadable_object"):
        read_corpus("s3://bucket/train.jsonl?endpoint_override=127.0.0.1:9&scheme=http&region=us-east-1")


def test_paths_of_a_plan_leave_addresses_alone():
    from recollect.pipeline.plans.refs import resolve_ref_name

    assert resolve_ref_name("s3://bucket/a.jsonl?region=x", Path.cwd()) == "s3://bucket/a.jsonl?region=x"
