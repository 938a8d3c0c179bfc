"""From texts to the tokens of a model behind a server: the server's own tokenizer, or one that the user names."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any, Literal, Protocol

import numpy as np

from recollect import labels
from recollect.corpora.record import Record
from recollect.digests import digest
from recollect.errors import ModelError
from recollect.models.endpoint.client import Request
from recollect.models.endpoint.doubts import build_doubt
from recollect.models.tokens.token_spelling import Spelling, build_byte_alphabet, get_spelling
from recollect.models.tokens.tokenization import EncodedText, TextEncoder, get_tokenised_text

Ask = Callable[[Sequence[Request]], list[Any]]
"""Gets the answers to requests, those that are kept included."""
Dialect = Literal["llama.cpp", "vllm"]


@dataclass(frozen=True, kw_only=True)
class TokenPlan:
    """One record as tokens, and which of them are scored."""

    ids: list[int]
    """All that is read, with what is before every text."""
    pieces: list[str]
    """What each of them writes; empty where it does not matter."""
    places: list[int]
    """Those that are scored."""
    text: EncodedText
    """The scored ones, located in the record's text."""


class Tokens(Protocol):
    """What turns texts into tokens."""

    @property
    def identity(self) -> str:
        """What numbers depend on: which tokenizer it is."""

    @property
    def before(self) -> list[int]:
        """Special tokens that are before every text."""

    @property
    def size(self) -> int | None:
        """How many tokens there are, if that is known."""

    @property
    def requests_per_text(self) -> int:
        """Requests that it takes to encode a text."""

    @property
    def spelling(self) -> Spelling | None:
        """How every token is spelled, if that is known."""

    def encode(self, texts: Sequence[str]) -> list[EncodedText]:
        """The ordinary tokens of each text."""

    def plan(self, records: Sequence[Record], template: str | None) -> list[TokenPlan]:
        """The records as tokens; conversations as the chat template renders them."""

    def find_template(self, given: str | None) -> str | None:
        """The chat template: the one that is given, or the tokenizer's own."""


class LocalTokens:
    """A tokenizer on this machine."""

    requests_per_text = 0

    def __init__(self, tokenizer: Any) -> None:
        self.tokenizer = tokenizer
        self._encode = TextEncoder(tokenizer)
        self.before = list(self._encode.prefix_ids)
        self.size: int | None = len(tokenizer)

    @property
    def identity(self) -> str:
        """The digest of all that the tokenizer is made of."""
        return digest(labels.DIGEST_LOCAL_TOKENIZER, self.tokenizer.backend_tokenizer.to_str())

    @cached_property
    def spelling(self) -> Spelling:
        """How every token is spelled."""
        return get_spelling(self.tokenizer)

    def encode(self, texts: Sequence[str]) -> list[EncodedText]:
        """The ordinary tokens of each text."""
        return self._encode(texts)

    def plan(self, records: Sequence[Record], template: str | None) -> list[TokenPlan]:
        """The records as a model on this machine would read them."""
        from recollect.models.tokens.record_encoder import RecordEncoder

        encode = RecordEncoder(self.tokenizer, name=self.tokenizer.name_or_path, template=template, before=self.before)
        return [
            TokenPlan(
                ids=each.ids.tolist(),
                pieces=[self._spell(token_id) for token_id in each.ids.tolist()],
                places=np.flatnonzero(each.scored).tolist(),
                text=each.text,
            )
            for each in encode(records)
        ]

    def find_template(self, given: str | None) -> str | None:
        """The chat template: the one that is given, or the tokenizer's own."""
        from recollect.models.tokens.chat_template import find_template

        return find_template(self.tokenizer, given)

    def _spell(self, token_id: int) -> str:
        """What a token writes, as far as it is whole characters."""
        written = self.spelling.tokens[token_id] if token_id < len(self.spelling.tokens) else ()
        return written[0].encode("latin-1").decode("utf-8", "replace") if written else ""


@dataclass(frozen=True)
class ServerTokens:
    """The tokenizer of the server: one request per text, whose pieces must make up the text again."""

    dialect: Dialect
    model: str
    before: list[int]
    ask: Ask
    size: int | None = None
    requests_per_text: int = 1
    spelling: Spelling | None = None

    @property
    def identity(self) -> str:
        """Which server's it is, is part of the model's address already."""
        return f"server, {self.dialect}"

    def encode(self, texts: Sequence[str]) -> list[EncodedText]:
        """The ordinary tokens of each text."""
        answers = self.ask([build_request(self.dialect, self.model, text) for text in texts])
        return [_unpack(answer) for answer in answers]

    def plan(self, records: Sequence[Record], template: str | None) -> list[TokenPlan]:
        """Texts as tokens; for conversations the tokenizer must be here."""
        del template
        texts = [get_tokenised_text(record) for record in records]
        return [self._plan_text(text, each) for text, each in zip(texts, self.encode(texts), strict=True)]

    def find_template(self, given: str | None) -> str | None:
        """None: a template needs a tokenizer here."""
        return given

    def _plan_text(self, text: str, encoded: EncodedText) -> TokenPlan:
        """One text after the tokens that are before every text."""
        ids = [*self.before, *encoded.ids.tolist()]
        own = [text[begin:end] for begin, end in zip(encoded.start.tolist(), encoded.end.tolist(), strict=True)]
        first = max(1, len(self.before))
        return TokenPlan(
            ids=ids,
            pieces=[""] * len(self.before) + own,
            places=list(range(first, len(ids))),
            text=encoded.select(encoded.position >= first - len(self.before)),
        )


def load_local_tokens(name: str) -> LocalTokens:
    """The tokenizer in a folder or on the hub.

    Raises:
        ModelError: There is none, or it cannot be used.
        MissingDependency: transformers is not installed.
    """
    from recollect.models.loading.model_folders import find_tokenizer_folder
    from recollect.models.loading.pretrained import read_tokenizer
    from recollect.models.model_strings import FolderRef, HubRef, parse_model

    ref = parse_model(name)
    if not isinstance(ref, FolderRef | HubRef):
        raise ModelError(
            f"{name!r} is no tokenizer.", do="Give a folder or hf:NAME that holds one.", code="not_a_tokenizer"
        )
    return LocalTokens(read_tokenizer(find_tokenizer_folder(ref), name))


def build_request(dialect: Dialect, model: str, text: str, *, special: bool = False) -> Request:
    """The request for the tokens of a text."""
    if dialect == "llama.cpp":
        body = {"content": text, "add_special": special, "parse_special": False, "with_pieces": True}
    else:
        body = {"model": model, "prompt": text, "add_special_tokens": special, "return_token_strs": True}
    read = _read_ids if special else _read_tokens
    return Request(path="/tokenize", body=body, read=partial(read, dialect, text), purpose="tokens", values=0)


def _read_ids(dialect: Dialect, _: str, answer: Any) -> list[int]:
    """The numbers of the tokens."""
    return [token_id for token_id, _ in _list_pieces(dialect, answer)]


def _read_tokens(dialect: Dialect, text: str, answer: Any) -> list[list[int]]:
    """Numbers, beginnings and ends of the tokens of a text."""
    pieces = _list_pieces(dialect, answer)
    joined, data = b"".join(piece for _, piece in pieces), text.encode()
    added = 1 if joined == b" " + data else 0  # some tokenizers put a space before every text
    if joined[added:] != data:
        raise build_doubt("tokens_unlike_the_text", "the server's tokens of a text do not make up that text.")
    ends = np.cumsum([len(piece) for _, piece in pieces], dtype=np.int64) - added
    starts = np.concatenate([[0], ends[:-1]]) if len(ends) else ends
    # which character each byte belongs to
    owner = np.repeat(np.arange(len(text)), [len(character.encode()) for character in text])
    begin = [int(owner[i]) if i < len(owner) else len(text) for i in starts]
    end = [int(owner[i - 1]) + 1 if i > 0 else 0 for i in ends]
    return [[token_id for token_id, _ in pieces], begin, end]


def _list_pieces(dialect: Dialect, answer: Any) -> list[tuple[int, bytes]]:
    """The tokens of an answer with their bytes."""
    tokens = answer.get("tokens") if isinstance(answer, dict) else None
    if not isinstance(tokens, list):
        raise build_doubt("no_tokens", "/tokenize gives no tokens.")
    if dialect == "llama.cpp":
        if not all(isinstance(each, dict) and "id" in each and "piece" in each for each in tokens):
            raise build_doubt("no_tokens", "/tokenize gives no pieces.")
        return [(int(each["id"]), _to_bytes(each["piece"])) for each in tokens]
    words = answer.get("token_strs")
    if not isinstance(words, list) or len(words) != len(tokens):
        raise build_doubt("no_tokens", "/tokenize gives no pieces.")
    spell = _choose_speller(words)
    return [(int(token_id), spell(str(word))) for token_id, word in zip(tokens, words, strict=True)]


def _to_bytes(piece: Any) -> bytes:
    """A token's piece of text, or bytes where it is none."""
    return piece.encode() if isinstance(piece, str) else bytes(piece)


def _choose_speller(words: Sequence[Any]) -> Callable[[str], bytes]:
    """How the tokens of a vocabulary are spelled: byte-level BPE, or SentencePiece."""
    alphabet = build_byte_alphabet()
    if all(letter in alphabet for word in words for letter in str(word)):
        return lambda word: "".join(alphabet[letter] for letter in word).encode("latin-1")
    return lambda word: word.replace("▁", " ").encode()


def _unpack(kept: Any) -> EncodedText:
    """A text as tokens, as it was kept."""
    ids, start, end = kept
    return EncodedText(
        ids=np.array(ids, dtype=np.int64),
        start=np.array(start, dtype=np.int32),
        end=np.array(end, dtype=np.int32),
        known=np.ones(len(ids), dtype=np.bool_),
        position=np.arange(len(ids), dtype=np.int32),
    )
