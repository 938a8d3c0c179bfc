"""What must not leave this machine: texts over plain http, and the key anywhere but in the request itself."""

from __future__ import annotations

import ipaddress
import os
import re
from urllib.parse import SplitResult, urlsplit

from recollect.errors import ModelError

OPENAI_HOST = "api.openai.com"
DEFAULT_VARIABLES = {OPENAI_HOST: "OPENAI_API_KEY"}
"""Where the key of a known host is by default; other hosts never get it."""
OWN_VARIABLE = "RECOLLECT_API_KEY"
"""Where the key of any other host is by default."""
HIDDEN = "[key]"
_VARIABLE = re.compile(r"[A-Z_][A-Z0-9_]{0,63}")
_SHOWN = 300
"""Characters of a server's message that are shown."""


def refuse_unsafe_address(url: str, *, allow_http: bool) -> None:
    """For safety: refuse an address that is none, that holds a password, or that sends texts unencrypted elsewhere.

    Raises:
        ModelError: It is such an address.
    """
    parts = _split_address(url)
    if parts.username or parts.password or parts.query:
        raise ModelError(
            "The address of the server holds a user, a password or a query, which would be written into results.",
            do="Leave it out of the address. A key is read from the environment (--key-variable).",
            code="secret_in_address",
        )
    if parts.scheme == "http" and not allow_http and not is_loopback(parts.hostname or ""):
        raise ModelError(
            f"The audited texts would be sent to {parts.hostname} unencrypted.",
            do="Give its https address, or allow it with --allow-http (allow_http=True).",
            code="http_to_another_machine",
        )


def _split_address(url: str) -> SplitResult:
    """An address in its parts, which it is safe to connect to."""
    try:
        parts = urlsplit(url)
        usable = bool(parts.hostname) and parts.port != 0
    except ValueError:
        usable = False
    if not usable:
        raise ModelError(
            "The address of the server is not a valid one.",
            do="Write it as http://host:port/v1#NAME, with a port from 1 to 65535.",
            code="address_not_valid",
        )
    return parts


def is_loopback(host: str) -> bool:
    """Whether texts can safely be sent unencrypted to a host: it is this machine.

    >>> is_loopback("127.0.0.1"), is_loopback("localhost"), is_loopback("192.0.2.1"), is_loopback("example.org")
    (True, True, False, False)
    """
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def read_key(url: str, variable: str | None) -> str | None:
    """The key for a server, safely from the environment; None if there is none.

    Args:
        url: The server.
        variable: Where the key is; by default OPENAI_API_KEY for OpenAI itself, and RECOLLECT_API_KEY for any other.

    Raises:
        ModelError: The variable was named, or the host is known to want a key, and it is none or is not set. The
            message never repeats what was given.
    """
    if variable is not None and not _VARIABLE.fullmatch(variable):
        raise ModelError(
            "What was given as the name of an environment variable is none.",
            do="Put the key into a variable such as RECOLLECT_API_KEY, and give that name (--key-variable).",
            code="invalid_key_variable",
        )
    known = DEFAULT_VARIABLES.get(urlsplit(url).hostname or "")
    name = variable or known or OWN_VARIABLE
    key = os.environ.get(name, "").strip()
    if not key and (variable or known):
        raise ModelError(
            f"The environment variable {name} is not set.", do=f"Set {name} to the key.", code="key_variable_not_set"
        )
    return key or None


def clean_message(text: str, key: str | None) -> str:
    """A server's error message, safe to show: one short line, without the key or parts of it.

    >>> clean_message("Incorrect key: sk-verysecret1, or sk-ve***ret1", "sk-verysecret1")
    'Incorrect key: [key], or [key]'
    """
    if key:
        masked = rf"{re.escape(key[:3])}\S*[*.•…]{{2,}}\S*"
        text = re.sub(masked, HIDDEN, text.replace(key, HIDDEN))
    line = " ".join(text.split())
    return line if len(line) <= _SHOWN else f"{line[:_SHOWN]} …"
