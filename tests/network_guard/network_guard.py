"""Refuses every connection that a test was not marked for, in this process and in the processes that it starts.

Installed by `conftest.py` and, in processes that tests start, by `sitecustomize.py` beside it. What is refused is also
written to a file, so that code which swallows the refusal does not hide it.
"""

from __future__ import annotations

import ipaddress
import os
import socket
import sys
from pathlib import Path

ALLOWED = "RECOLLECT_TESTS_NETWORK"
"""The variable that says what is allowed: nothing, "loopback" or "any"."""
LOG = "RECOLLECT_TESTS_NETWORK_LOG"
"""The variable that says where refusals are written."""
_ADDRESSED = {"socket.connect", "socket.sendto", "socket.sendmsg", "socket.bind"}
_RESOLVED = {"socket.getaddrinfo", "socket.gethostbyname", "socket.gethostbyaddr"}


class NetworkRefused(RuntimeError):  # noqa: N818 - it is a refusal
    """A test that was not marked for it asked the network."""


def install() -> None:
    """Look at every connection from now on; this cannot be undone."""
    sys.addaudithook(_look)


def _look(event: str, arguments: tuple[object, ...]) -> None:
    """Refuse what is not allowed at this moment."""
    if event in _ADDRESSED:
        one, address = arguments[0], arguments[-1]
        if getattr(one, "family", None) not in (socket.AF_INET, socket.AF_INET6) or not isinstance(address, tuple):
            return
        host = address[0]
    elif event in _RESOLVED:
        host = arguments[0]
    else:
        return
    if event == "socket.bind" and _is_loopback(host):
        return  # urllib3 finds out in this way whether there is IPv6
    allowed = os.environ.get(ALLOWED, "")
    if allowed == "any" or (allowed == "loopback" and _is_loopback(host)):
        return
    if log := os.environ.get(LOG):
        with Path(log).open("a", encoding="utf-8") as file:
            file.write(f"{event} {host!r} {sys.argv[:3]}\n")
    raise NetworkRefused(f"{event} of {host!r}: no test may use the network unless it is marked for it")


def _is_loopback(host: object) -> bool:
    """Whether a host is this machine."""
    if isinstance(host, bytes):
        host = host.decode()
    if host in (None, "", "localhost"):
        return host == "localhost"
    try:
        return ipaddress.ip_address(str(host).partition("%")[0]).is_loopback
    except ValueError:
        return False
