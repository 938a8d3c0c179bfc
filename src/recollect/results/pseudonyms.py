"""Pseudonyms: what people and records are called wherever a result is shown to people.

Result files, tables in Parquet and `--json` keep real ids, because programs join by them. A terminal, a page, a pull
request and a notebook are read by more people than may know who is who.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import secrets
from collections.abc import Collection
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Final

from recollect.files import write_text

if TYPE_CHECKING:
    from recollect.results.result import Mention

KEY_FILE: Final = ".pseudonyms.key"
"""The key of a run folder, readable by its owner only: with it and a list of ids, pseudonyms can be resolved."""
_CHARACTERS: Final = 8


@dataclass(frozen=True, kw_only=True)
class Pseudonyms:
    """Names a person or a record by a keyed digest of its id: the same in all views of a run folder, unlike elsewhere.

    >>> from recollect.results.result import Mention
    >>> names = Pseudonyms(key=b"k", named=frozenset({"ann"}))
    >>> names(Mention(kind="user", id="ann")), names(Mention(kind="user", id="bob"))
    ('ann', 'user-2lvvbc2e')
    """

    key: bytes = field(repr=False)
    named: frozenset[str] = frozenset()
    """Those who are called by their own ids, because the reader named them."""

    def __call__(self, mention: Mention) -> str:
        """What the person or record is called."""
        if mention.id in self.named:
            return mention.id
        content = f"{mention.kind}\0{mention.id}".encode("utf-8", "surrogatepass")
        spelt = base64.b32encode(hmac.digest(self.key, content, hashlib.sha256)).decode().lower()
        return f"{mention.kind}-{spelt[:_CHARACTERS]}"


def load_pseudonyms(folder: Path | None, *, named: Collection[str] = (), keep: bool = True) -> Pseudonyms:
    """The pseudonyms of a run folder.

    Args:
        folder: The run folder; None for a result that is in memory only, whose pseudonyms hold as long as the process.
        named: Who is called by their own ids.
        keep: Whether the folder gets a key if it has none.
    """
    return Pseudonyms(key=_load_pseudonym_key(folder, keep=keep), named=frozenset(named))


def _load_pseudonym_key(folder: Path | None, *, keep: bool) -> bytes:
    """The key of a folder's pseudonyms, drawn once."""
    if folder is None:
        return _get_process_key()
    with suppress(OSError, ValueError):
        found = bytes.fromhex((folder / KEY_FILE).read_text(encoding="ascii"))
        if found:
            return found
    drawn = secrets.token_bytes(32)
    if keep and folder.is_dir():
        write_text(folder / KEY_FILE, drawn.hex() + "\n")
    return drawn


@cache
def _get_process_key() -> bytes:
    """The key of pseudonyms in results that are in memory only."""
    return secrets.token_bytes(32)
