"""Content addresses: 128-bit digests of values and bytes, as 32 hexadecimal digits."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Protocol

_CHUNK_BYTES = 1 << 20
Json = None | bool | int | float | str | Sequence["Json"] | Mapping[str, "Json"]


class Hasher(Protocol):
    """What `hasher()` gives: feed it bytes, then request the digest."""

    def update(self, data: bytes | memoryview, /) -> None:
        """Take more bytes into account."""

    def hexdigest(self) -> str:
        """The digest of all bytes so far."""


def new_hasher() -> Hasher:
    """A fresh hasher of the kind used for every digest in this project."""
    return hashlib.blake2b(digest_size=16)


def digest(*values: Json) -> str:
    """The address of JSON-like values; mappings are compared by content, not by order.

    >>> digest({"a": 1, "b": 2}) == digest({"b": 2, "a": 1})
    True
    """
    text = json.dumps(values, sort_keys=True, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    return digest_bytes(text.encode("utf-8", "surrogatepass"))


def digest_bytes(*chunks: bytes | memoryview) -> str:
    """The address of a sequence of byte strings; where one ends and the next begins matters."""
    state = new_hasher()
    for chunk in chunks:
        state.update(len(chunk).to_bytes(8, "little"))
        state.update(chunk)
    return state.hexdigest()


def digest_file(path: Path) -> str:
    """The address of what a file holds, read piece by piece: it may be larger than the memory."""
    state = new_hasher()
    update_from_file(state, path)
    return state.hexdigest()


def update_from_file(state: Hasher, path: Path) -> None:
    """Add the content of a file to a digest, piece by piece."""
    with path.open("rb") as file:
        while piece := file.read(_CHUNK_BYTES):
            state.update(piece)


def frame(chunk: bytes) -> bytes:
    """A byte string after its length, so that a digest of several can tell them apart."""
    return len(chunk).to_bytes(8, "little") + chunk


def digest_framed(framed: bytes) -> str:
    """What `digest_bytes` says of the parts that were framed and joined.

    >>> digest_framed(frame(b"a") + frame(b"bc")) == digest_bytes(b"a", b"bc")
    True
    """
    return hashlib.blake2b(framed, digest_size=16).hexdigest()
