"""A record: a text, a (source → target) pair, an (input, label) or a conversation, and whose it is."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from recollect import labels
from recollect.corpora.messages import Messages, frame_messages, join_context, join_scored, replace_scored
from recollect.digests import digest_framed, frame

Kind = Literal["text", "pair", "labelled", "conversation"]
_TEXT, _SOURCE, _TARGET = (frame(header) for header in (labels.RECORD_TEXT, labels.RECORD_SOURCE, labels.RECORD_TARGET))


@dataclass(frozen=True, kw_only=True, eq=False)
class Record:
    """One piece of data that a model may have been trained on.

    Exactly one of the four contents is given: `text` (with a `label` where there is one), `source` with
    `target`, `array` with `label`, or `messages`.
    """

    id: str
    """Unique in its corpus and stable from run to run."""
    user: str | None = None
    """Whose record it is; None in a corpus without users."""
    text: str | None = None
    source: str | None = None
    target: str | None = None
    array: NDArray[Any] | None = None
    label: str | int | None = None
    messages: Messages | None = None
    """A conversation, turn by turn; turns that are not scored are context."""
    time: datetime | None = field(default=None, repr=False)
    """When it was written, in UTC; None where that is unknown: no part of its content, digest or equality."""
    extra: object = field(default=None, repr=False)
    """What its row holds in one more column (`Corpus.with_column`): no part of its content, digest or equality."""

    @property
    def kind(self) -> Kind:
        """Which of the four contents this record has; a text with a label is labelled."""
        if self.messages is not None:
            return "conversation"
        if self.target is not None:
            return "pair"
        return "text" if self.label is None else "labelled"

    @property
    def owner(self) -> str:
        """The unit that is resampled and counted: the user or, without users, the record itself."""
        return self.id if self.user is None else self.user

    @property
    def scored_text(self) -> str:
        """The text whose tokens a language model has to predict: the text, a pair's target, a conversation's replies.

        Several scored turns of a conversation are joined by `messages.SEPARATOR`; tokens are located in this text.
        """
        if self.messages is not None:
            return join_scored(self.messages)
        text = self.text if self.target is None else self.target
        return text or ""

    @property
    def context_text(self) -> str:
        """What a model reads besides and is never scored on: a pair's source, a conversation's other turns."""
        return join_context(self.messages) if self.messages is not None else self.source or ""

    def with_scored_text(self, text: str) -> Record:
        """The record with another text to be predicted in the same context.

        See `messages.replace_scored` for how the scored turns of a conversation share it.
        """
        changed: dict[str, Any] = {"text" if self.target is None else "target": text}
        if self.messages is not None:
            changed = {"messages": replace_scored(self.messages, text)}
        fields = {**self.__dict__, **changed}
        fields.pop("digest", None)
        return Record.from_fields(fields)

    @cached_property
    def digest(self) -> str:
        """The address of the content alone: the same text has the same digest whoever owns it."""
        return digest_framed(self.to_bytes())

    def to_bytes(self) -> bytes:
        """The content as bytes from which it could be distinguished from any other: each part after its length."""
        encoded = b""
        for header, text in ((_TEXT, self.text), (_SOURCE, self.source), (_TARGET, self.target)):
            if text is not None:
                encoded += header + frame(text.encode("utf-8", "surrogatepass"))
        if self.messages is not None:
            encoded += frame_messages(self.messages)
        if self.label is not None:
            encoded += frame(f"{labels.RECORD_LABEL}{type(self.label).__name__}".encode())
            encoded += frame(str(self.label).encode("utf-8", "surrogatepass"))
        if self.array is not None:
            values = np.ascontiguousarray(self.array)
            header = f"{labels.RECORD_ARRAY}{values.dtype.str}:{values.shape}".encode()
            encoded += frame(header) + frame(values.tobytes())
        return encoded

    @classmethod
    def from_fields(cls, fields: dict[str, Any]) -> Record:
        """A record of fields that were already checked; six times as quick as naming them one by one.

        Fields that are missing have their default. The record keeps the dictionary: do not use it again.
        """
        record = object.__new__(cls)
        object.__setattr__(record, "__dict__", fields)
        return record

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Record):
            return NotImplemented
        return (self.id, self.user, self.digest) == (other.id, other.user, other.digest)

    def __hash__(self) -> int:
        return hash((self.id, self.user, self.digest))
