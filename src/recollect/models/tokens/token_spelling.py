"""What each token of a tokenizer writes: what it takes to walk a text token by token without decoding it."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

_BYTE = re.compile(r"<0x([0-9A-F]{2})>")


@dataclass(frozen=True)
class Spelling:
    """How a tokenizer's tokens are spelled.

    Strings stand for bytes: the character of number b is byte b. So a token may end in the middle of a character.
    """

    tokens: tuple[tuple[str, ...], ...]
    """The ways in which each token may be written; none for those that write nothing, such as the end of a text."""
    normalise: Callable[[str], str]

    def encode(self, text: str) -> str:
        """The bytes of a text as the tokenizer reads it (in lowercase, say).

        >>> Spelling((), str.lower).encode("Ä") == "Ã¤"
        True
        """
        return self.normalise(text).encode("utf-8").decode("latin-1")


def get_spelling(tokenizer: Any) -> Spelling:
    """How the tokens of a fast Hugging Face tokenizer are spelled.

    Tokenizers that drop white space (words) write each token with or without a space before it.
    """
    backend = tokenizer.backend_tokenizer
    described = json.loads(backend.to_str())
    spell = _build_speller(described["model"]["type"], json.dumps(described["decoder"]))
    silent = {*tokenizer.all_special_ids, *(token["id"] for token in described["added_tokens"] if token["special"])}
    vocabulary = tokenizer.get_vocab()
    spellings: list[tuple[str, ...]] = [()] * (max(vocabulary.values(), default=-1) + 1)
    for token, number in vocabulary.items():
        if number not in silent:
            spellings[number] = spell(token)
    normaliser = backend.normalizer
    return Spelling(tuple(spellings), str if normaliser is None else normaliser.normalize_str)


def _build_speller(model: str, decoder: str) -> Callable[[str], tuple[str, ...]]:
    """How a token of such a tokenizer is spelled."""
    if "ByteLevel" in decoder:
        byte_of = build_byte_alphabet()
        return lambda token: ("".join(byte_of[c] for c in token),) if all(c in byte_of for c in token) else ()
    if "▁" in decoder:
        return _spell_sentencepiece
    if model == "WordLevel":
        return lambda token: (_encode_bytes(token), " " + _encode_bytes(token))
    if model == "WordPiece":
        return lambda token: (
            (_encode_bytes(token[2:]),)
            if token.startswith("##")
            else (_encode_bytes(token), " " + _encode_bytes(token))
        )
    return lambda token: (_encode_bytes(token),)


def _spell_sentencepiece(token: str) -> tuple[str, ...]:
    """SentencePiece writes a space as ▁, and a byte without a token of its own as <0x0A>."""
    byte = _BYTE.fullmatch(token)
    return (chr(int(byte[1], 16)) if byte else _encode_bytes(token.replace("▁", " ")),)


def _encode_bytes(text: str) -> str:
    """The bytes of a text for the spelling of tokens, one character each."""
    return text.encode("utf-8").decode("latin-1")


def build_byte_alphabet() -> dict[str, str]:
    """Which byte each character stands for in the spelling of byte-level BPE.

    >>> build_byte_alphabet()["Ġ"], build_byte_alphabet()["a"]
    (' ', 'a')
    """
    printable = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = [byte for byte in range(256) if byte not in set(printable)]
    return {chr(byte): chr(byte) for byte in printable} | {chr(256 + i): chr(b) for i, b in enumerate(others)}
