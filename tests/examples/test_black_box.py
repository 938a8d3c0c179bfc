"""The example of a black box runs as its README says: a server is started, audited through HTTP alone, and stopped."""

from __future__ import annotations

import json
import re
import runpy
import shlex
import socket
import sys
from pathlib import Path
from urllib.parse import urlsplit

import pytest

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "black-box"
pytestmark = pytest.mark.loopback


def test_a_server_is_started_audited_and_stopped(tmp_path, monkeypatch, capsys):
    pytest.importorskip("xllamacpp")
    (command,) = re.findall(r"^python .*$", (EXAMPLE / "README.md").read_text(), re.MULTILINE)
    _, script, folder = shlex.split(command)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", [script, folder])
    runpy.run_path(str(EXAMPLE / script), run_name="__main__")
    (written,) = (tmp_path / folder / "run" / "results").glob("*.json")
    result = json.loads(written.read_text())
    assert result["outcome"] == "found"
    server = result["provenance"]["models"]["target"]["endpoint"]
    address = urlsplit(server["url"])
    assert (server["server"], address.hostname) == ("llamacpp", "127.0.0.1")
    assert address.netloc in (tmp_path / folder / "run" / "report.html").read_text()
    assert f"sent to {address.netloc}" in capsys.readouterr().out
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection((address.hostname, address.port), timeout=5)
