"""Texts as tokens: the ordinary ones with their places in the text, and what the tokenizer puts around them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from recollect.corpora.record import Record
from recollect.errors import CorpusError, ModelError


@dataclass(frozen=True, kw_only=True)
class EncodedText:
    """The ordinary tokens of one text, without those that the tokenizer adds."""

    ids: NDArray[np.int64]
    start: NDArray[np.int32]
    """Where each token begins in the text, in characters."""
    end: NDArray[np.int32]
    known: NDArray[np.bool_]
    """False where the vocabulary has only `<unk>`, or another special token, for what the text says."""
    position: NDArray[np.int32]
    """Which token of the text it is, from 0."""

    def __len__(self) -> int:
        return len(self.ids)

    def select(self, chosen: NDArray[np.bool_]) -> EncodedText:
        """Some of the tokens."""
        return EncodedText(**{each.name: getattr(self, each.name)[chosen] for each in fields(self)})

    def shift(self, characters: int) -> EncodedText:
        """The tokens as they are located in a text that begins so many characters later."""
        start, end = (np.maximum(each - characters, 0).astype(np.int32) for each in (self.start, self.end))
        return replace(self, start=start, end=end)

    @classmethod
    def concatenate(cls, pieces: Sequence[EncodedText]) -> EncodedText:
        """Several texts as one, one after the other; places stay those in each text."""
        columns = (f.name for f in fields(cls))
        return cls(
            **{name: np.concatenate([_EMPTY[name], *(getattr(piece, name) for piece in pieces)]) for name in columns}
        )


_EMPTY: dict[str, NDArray[Any]] = {
    "ids": np.empty(0, np.int64),
    "start": np.empty(0, np.int32),
    "end": np.empty(0, np.int32),
    "known": np.empty(0, np.bool_),
    "position": np.empty(0, np.int32),
}
"""A text without tokens."""


def get_tokenised_text(record: Record) -> str:
    """The text of a record that is tokenised; refuses one that has none.

    Raises:
        CorpusError: It is a pair or an array.
    """
    if record.text is None:
        raise CorpusError(
            f"Record {record.id!r} has no text.",
            do="This model reads texts: name the text column, or give a causal model (for conversations), or a model "
            "of pairs or arrays.",
            code="record_without_text",
        )
    return record.text


class TextEncoder:
    """Turns texts into tokens. What a text says is always text: a written-out "[SEP]" is no special token."""

    def __init__(self, tokenizer: Any, *, target: bool = False) -> None:
        """Find out what the tokenizer puts around a text.

        Args:
            tokenizer: A fast Hugging Face tokenizer.
            target: Whether the texts are targets, around which some tokenizers put other tokens.
        """
        self._tokenizer = tokenizer
        self._special = np.array(sorted(tokenizer.all_special_ids), dtype=np.int64)
        ids, ordinary = _probe_special_tokens(tokenizer, target=target)
        self.prefix_ids: list[int] = ids[: ordinary[0]]
        """Special tokens that the tokenizer puts before a text."""
        self.suffix_ids: list[int] = ids[ordinary[-1] + 1 :]
        """Special tokens that it puts after a text."""

    @property
    def special_token_count(self) -> int:
        """How many special tokens are around a text."""
        return len(self.prefix_ids) + len(self.suffix_ids)

    def __call__(self, texts: Sequence[str], *, parse_special: bool = False) -> list[EncodedText]:
        """The ordinary tokens of each text, in order.

        Args:
            texts: The texts.
            parse_special: Whether special tokens that are spelled out are special: only in what a template wrote.
        """
        if not texts:
            return []
        found = self._tokenizer(
            list(texts),
            add_special_tokens=False,
            split_special_tokens=not parse_special,
            return_offsets_mapping=True,
            return_attention_mask=False,
            return_token_type_ids=False,
            padding=False,
            truncation=False,
            verbose=False,
        )
        return [self._build_encoded(*each) for each in zip(found["input_ids"], found["offset_mapping"], strict=True)]

    def _build_encoded(self, ids: list[int], offsets: list[tuple[int, int]]) -> EncodedText:
        """One text as arrays."""
        token_ids = np.array(ids, dtype=np.int64)
        spans = np.array(offsets, dtype=np.int32).reshape(-1, 2)
        return EncodedText(
            ids=token_ids,
            start=spans[:, 0],
            end=spans[:, 1],
            known=~np.isin(token_ids, self._special),
            position=np.arange(len(token_ids), dtype=np.int32),
        )


def _probe_special_tokens(tokenizer: Any, *, target: bool) -> tuple[list[int], list[int]]:
    """The tokens of some short text with what is put around it, and which of them are the text's own."""
    # not every vocabulary has a letter a
    for text in ("a", *(tokenizer.decode([i]) for i in range(len(tokenizer)))):
        given = {"text_target" if target else "text": text}
        probe = tokenizer(**given, split_special_tokens=True, verbose=False)
        ordinary = [index for index, sequence in enumerate(probe.encodings[0].sequence_ids) if sequence is not None]
        if ordinary:
            return probe["input_ids"], ordinary
    raise ModelError(
        "The tokenizer has no token that a text could contain.",
        do="Save the model's own tokenizer.",
        code="empty_vocabulary",
    )
