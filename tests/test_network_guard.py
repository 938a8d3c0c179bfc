"""The guard over the whole test suite: no internet socket is opened unless a test is marked for it."""

from __future__ import annotations

import os
import socket
import subprocess
import sys

import pytest

import network_guard

CONNECT = "import socket; socket.create_connection(({host!r}, {port}), timeout=5)"


@pytest.fixture
def log(tmp_path, monkeypatch):
    """A list of refusals of its own, so that those that are wished do not fail the test."""
    path = tmp_path / "network.log"
    monkeypatch.setenv(network_guard.LOG, str(path))
    return path


@pytest.mark.parametrize("host", ["192.0.2.1", "example.invalid", "127.0.0.1", "localhost", "::1"])
def test_a_connection_is_refused_and_noted(host, log):
    with pytest.raises(network_guard.NetworkRefused):
        socket.create_connection((host, 9), timeout=5)
    assert host in log.read_text()


def test_a_process_that_a_test_starts_is_guarded_too(log):
    words = [sys.executable, "-c", CONNECT.format(host="192.0.2.1", port=9)]
    done = subprocess.run(words, check=False, capture_output=True, text=True)  # noqa: S603 - our own code
    assert "NetworkRefused" in done.stderr
    assert "192.0.2.1" in log.read_text()


def test_a_datagram_is_refused(log):
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as one, pytest.raises(network_guard.NetworkRefused):
        one.sendto(b"x", ("192.0.2.1", 9))
    assert "sendto" in log.read_text()


@pytest.mark.loopback
def test_a_marked_test_may_talk_to_this_machine_and_to_no_other(log):
    with socket.create_server(("127.0.0.1", 0)) as server:
        socket.create_connection(server.getsockname(), timeout=5).close()
        with pytest.raises(network_guard.NetworkRefused):
            socket.create_connection(("192.0.2.1", 9), timeout=5)
    assert os.environ[network_guard.ALLOWED] == "loopback"
    assert "127.0.0.1" not in log.read_text()


def test_pipes_and_local_sockets_are_no_network():
    one, other = socket.socketpair()
    one.close()
    other.close()
