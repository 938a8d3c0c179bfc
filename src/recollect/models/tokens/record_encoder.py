"""Records as a causal model reads them: all tokens in order, and which of them are scored.

A text is read after what the tokenizer puts before it. A pair is its source and its target as one text, of which the
target is scored. A conversation is rendered by the chat template, and its scored turns are scored. Whatever a record
says stays text: special tokens that are spelled out in it are never parsed.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from recollect.corpora.messages import ASSISTANT, SEPARATOR, say
from recollect.corpora.record import Record
from recollect.errors import CorpusError, RecollectWarning
from recollect.models.tokens.chat_template import ChatTemplate, Rendered, Span, build_no_template_error
from recollect.models.tokens.tokenization import EncodedText, TextEncoder, get_tokenised_text

_USUAL = r"<\|(?:im_start|im_end|start_header_id|end_header_id|eot_id|user|assistant|system)\|>"
_OTHERS = r"\[/?INST\]|<(?:start|end)_of_turn>"
_SHAPE = re.compile(r"<\|(?!endoftext).+\|>")


class RenderedTextDetector:
    """Warns once of texts that hold the marks of a chat template."""

    def __init__(self, tokenizer: Any) -> None:
        """Collect the marks: the usual ones, and the tokenizer's own special tokens of that shape.

        Args:
            tokenizer: A Hugging Face tokenizer; what ends a plain text, `</s>` or `<|endoftext|>`, is no mark.
        """
        own = {str(each) for each in tokenizer.added_tokens_decoder.values() if each.special}
        marks = sorted(each for each in own if _SHAPE.fullmatch(each))
        self._marks = re.compile("|".join([_USUAL, _OTHERS, *map(re.escape, marks)]))
        self._warned = False

    def watch(self, texts: Iterable[str]) -> Iterator[str]:
        """The texts of records that are encoded; the first that looks rendered makes a warning."""
        for text in texts:
            if not self._warned and (found := self._marks.search(text)):
                self._warned = True
                warnings.warn(
                    f"A plain text holds {found.group()!r} and looks like a rendered conversation. As text it is "
                    "spelled out letter by letter, which no chat model was trained on: keep the turns in a column "
                    "'messages' ({'role': …, 'content': …}), and the model's chat template renders them.",
                    RecollectWarning,
                    stacklevel=4,
                )
            yield text


_ANY_REPLY = "x"
"""Said by an assistant of whom only what is before it is wanted."""
Flags = NDArray[np.bool_]
Ids = NDArray[np.int64]


@dataclass(frozen=True, kw_only=True)
class TokenSequence:
    """One record as tokens."""

    ids: Ids
    """All that is read."""
    scored: Flags
    """Which of them are predicted and scored."""
    trained: Flags
    """Which of them are trained on: also the marks that end a scored turn."""
    text: EncodedText
    """The scored ones, located in the record's `scored_text`."""


class RecordEncoder:
    """Turns records into what a causal model reads."""

    def __init__(self, tokenizer: Any, *, name: str, template: str | None, before: Sequence[int]) -> None:
        """Prepare to read.

        Args:
            tokenizer: A fast Hugging Face tokenizer.
            name: The model, for messages.
            template: The chat template, where there is one.
            before: The tokens before every text.
        """
        self._name, self._encode = name, TextEncoder(tokenizer)
        self._before = np.array(before, dtype=np.int64)
        self._template = None if template is None else ChatTemplate(tokenizer, template)
        self._tokenise = _RenderedTokenizer(tokenizer, self._encode)
        self._detector = RenderedTextDetector(tokenizer)

    def __call__(self, records: Sequence[Record], *, training: bool = False) -> list[TokenSequence]:
        """The records as tokens, in order.

        Raises:
            CorpusError: A record has no text, or the chat template cannot render it.
            ModelError: There are conversations, and no chat template.
        """
        chats = [i for i, record in enumerate(records) if record.messages is not None]
        found: dict[int, TokenSequence] = {}
        if chats:
            rendered = [self._get_template()(records[i], training=training) for i in chats]
            for i, each, tokens in zip(chats, rendered, self._tokenise(rendered), strict=True):
                found[i] = _mark_turns(records[i], each, tokens)
        others = [i for i, record in enumerate(records) if record.messages is None]
        texts = self._encode(list(self._detector.watch(_join_read_pair(records[i]) for i in others)))
        found |= {i: self._mark_text(records[i], text) for i, text in zip(others, texts, strict=True)}
        return [found[i] for i in range(len(records))]

    def encode_reply(self, user_turn: str, reply: str) -> list[int]:
        """The tokens up to where the assistant is that has said something in reply to the user.

        A space that the template puts before a reply is left out while nothing is said: it is part of the first word.
        """
        turns = say("user", user_turn), say(ASSISTANT, reply or _ANY_REPLY)
        rendered = self._get_template()(Record(id="reply", messages=turns))
        begin, end = rendered.contents[1] or (0, 0)
        text = rendered.text[:end] if reply else rendered.text[:begin].rstrip(" ")
        shown = replace(rendered, text=text, contents=(rendered.contents[0], (begin, end) if reply else None))
        return [int(token) for token in self._tokenise([shown])[0].ids]

    def _get_template(self) -> ChatTemplate:
        """The template, or what to do where there is none."""
        if self._template is None:
            raise build_no_template_error(self._name)
        return self._template

    def _mark_text(self, record: Record, text: EncodedText) -> TokenSequence:
        """A text or a pair after the tokens that are before every text."""
        border = len(record.source or "")
        scored = np.concatenate(
            [np.zeros(len(self._before), np.bool_), text.end > border if border else _mark_all_tokens(text)]
        )
        trained = scored.copy()
        scored[:1] = False  # nothing is before it to predict it from
        chosen = text.select(scored[len(self._before) :])
        return TokenSequence(
            ids=np.concatenate([self._before, text.ids]),
            scored=scored,
            trained=trained,
            text=chosen.shift(border) if border else chosen,
        )


def _mark_all_tokens(text: EncodedText) -> Flags:
    """All tokens of an encoded record count, as the model reads it."""
    return np.ones(len(text), np.bool_)


def _join_read_pair(record: Record) -> str:
    """The text of a record, or of its pair, that is encoded."""
    return get_tokenised_text(record) if record.target is None else f"{record.source}{record.target}"


def _mark_turns(record: Record, rendered: Rendered, tokens: EncodedText) -> TokenSequence:
    """Which tokens of an encoded conversation are trained on and scored, and where in the scored text these are."""
    trained, scored = np.zeros(len(tokens), np.bool_), np.zeros(len(tokens), np.bool_)
    start, end = np.zeros_like(tokens.start), np.zeros_like(tokens.end)
    for span in rendered.trained:
        trained |= _find_overlapping(tokens, span)
    base = 0
    for message, content, skipped in zip(record.messages or (), rendered.contents, rendered.skipped, strict=True):
        if not message.scored:
            continue
        if content is not None:
            inside = _find_overlapping(tokens, content) & trained & ~scored
            scored |= inside
            shift = base + skipped - content[0]
            start[inside] = np.clip(tokens.start[inside], *content) + shift
            end[inside] = np.clip(tokens.end[inside], *content) + shift
        base += len(message.content) + len(SEPARATOR)
    scored[:1] = False
    text = EncodedText(
        ids=tokens.ids[scored],
        start=start[scored],
        end=end[scored],
        known=tokens.known[scored],
        position=np.arange(int(scored.sum()), dtype=np.int32),
    )
    return TokenSequence(ids=tokens.ids, scored=scored, trained=trained, text=text)


def _find_overlapping(tokens: EncodedText, span: Span) -> Flags:
    """The tokens of an encoded record that hold a character of a span."""
    return np.asarray((tokens.start < span[1]) & (tokens.end > span[0]) & (tokens.end > tokens.start))


class _RenderedTokenizer:
    """Tokens of rendered conversations: special tokens that the template wrote are special, those in turns are text."""

    def __init__(self, tokenizer: Any, encode: TextEncoder) -> None:
        self._tokenizer, self._encode = tokenizer, encode
        specials = {str(token) for token in tokenizer.all_special_tokens}
        specials |= {str(each) for each in tokenizer.added_tokens_decoder.values() if each.special}
        ordered = sorted((each for each in specials if each), key=len, reverse=True)
        self._specials = re.compile("|".join(map(re.escape, ordered))) if ordered else None

    def __call__(self, rendered: Sequence[Rendered]) -> list[EncodedText]:
        """The tokens of each, as the tokenizer reads the whole text."""
        texts = self._encode([each.text for each in rendered], parse_special=True)
        for i, each in enumerate(rendered):
            if self._specials is not None and self._says_special(each):
                texts[i] = self._encode_in_pieces(each, self._specials)
        return texts

    def _says_special(self, rendered: Rendered) -> bool:
        """Whether a special token is spelled out in a turn, or across its border."""
        assert self._specials is not None  # noqa: S101 - only called where there are some
        spans = [span for span in rendered.contents if span is not None]
        return any(
            match.start() < end and match.end() > begin
            for match in self._specials.finditer(rendered.text)
            for begin, end in spans
        )

    def _encode_in_pieces(self, rendered: Rendered, specials: re.Pattern[str]) -> EncodedText:
        """The template's special tokens, and between them everything as text.

        Raises:
            CorpusError: The tokenizer reads pieces in another way than the whole.
        """
        spans = [span for span in rendered.contents if span is not None]
        harmless = _replace_matches(rendered.text, specials, spans)
        whole, pieces = self._encode([harmless], parse_special=True)[0], self._join_pieces(harmless, specials, ())
        if whole.ids.tolist() != pieces.ids.tolist():
            raise CorpusError(
                "A turn spells out a special token, and this tokenizer can only read a conversation as a whole.",
                do="Remove special tokens from the turns, or leave the conversation out.",
                code="special_token_in_turn",
            )
        return self._join_pieces(rendered.text, specials, spans)

    def _join_pieces(self, text: str, specials: re.Pattern[str], spans: Sequence[Span]) -> EncodedText:
        """The tokens of a text whose special tokens are special outside of these spans only."""
        marks = [
            match
            for match in specials.finditer(text)
            if not any(match.start() < end and match.end() > begin for begin, end in spans)
        ]
        begins = [0, *(match.end() for match in marks)]
        ends = [*(match.start() for match in marks), len(text)]
        parts: list[EncodedText] = []
        between = self._encode([text[begin:end] for begin, end in zip(begins, ends, strict=True)])
        for i, (begin, part) in enumerate(zip(begins, between, strict=True)):
            parts.append(part.shift(-begin))
            if i < len(marks):
                mark = self._encode([marks[i].group()], parse_special=True)[0]
                parts.append(mark.shift(-marks[i].start()))
        return EncodedText.concatenate(parts)


def _replace_matches(text: str, specials: re.Pattern[str], spans: Sequence[Span]) -> str:
    """A text to encode with every special token that a turn spells out replaced by as many letters."""

    def replace(match: re.Match[str]) -> str:
        inside = any(match.start() < end and match.end() > begin for begin, end in spans)
        return "x" * len(match.group()) if inside else match.group()

    return specials.sub(replace, text)
