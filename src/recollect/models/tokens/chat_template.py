"""A chat template: conversations as the text that a model reads, and where in it each turn is.

A template is a program, so what it does with a turn is found out by running it: once with the turns, once with marks in
their place. What the marks show must explain the rendered text to its last character; else the conversation is refused.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from jinja2 import TemplateError
from transformers.utils.chat_template_utils import render_jinja_template

from recollect.corpora.messages import ASSISTANT, Message, Messages
from recollect.corpora.record import Record
from recollect.errors import CorpusError, ModelError

Span = tuple[int, int]
"""From a character to the one after the last."""
_GENERATION = re.compile(r"\{%[-+]?\s*generation\s*[-+]?%\}")
_MARK = "recollectturn{}end"
_NO_TODAY = "{%- macro strftime_now(format) -%}26 Jul 2024{%- endmacro -%}"
"""Some templates write the date of today; numbers must not depend on it."""
_TRIMS: tuple[Callable[[str], str], ...] = (str, str.strip, str.rstrip, str.lstrip)
"""What templates are known to do to the content of a turn."""


_TEMPLATE_ERRORS = (
    TemplateError,
    TypeError,
    LookupError,
    AttributeError,
    ValueError,
    ArithmeticError,
    RecursionError,
    MemoryError,
)
"""What the code of a template may raise."""


@dataclass(frozen=True, kw_only=True)
class Rendered:
    """A conversation as a model reads it."""

    text: str
    contents: tuple[Span | None, ...]
    """Where the content of each turn is in the text; None if the template drops it."""
    skipped: tuple[int, ...]
    """How many characters of white space the template leaves out at the beginning of each content."""
    trained: tuple[Span, ...]
    """What is trained on: the scored turns, with the marks that end them."""


class ChatTemplate:
    """Renders conversations."""

    def __init__(self, tokenizer: Any, template: str) -> None:
        """Prepare a template.

        Args:
            tokenizer: Whose special tokens it writes.
            template: Its source, in Jinja.
        """
        self.has_generation = bool(_GENERATION.search(template))
        """Whether it says itself which part is the assistant's (`{% generation %}`)."""
        self._template = f"{_NO_TODAY}{template}" if "strftime_now" in template else template
        self._tokens = {name: str(token) for name, token in tokenizer.special_tokens_map.items()}

    def __call__(self, record: Record, *, training: bool = False) -> Rendered:
        """The conversation of a record as text.

        Args:
            record: One that holds a conversation.
            training: Whether all that is trained on is wanted, or only which contents are scored: without a generation
                mask, that takes two more renderings per turn.

        Raises:
            CorpusError: The template refuses the conversation, or changes what is said in a scored turn.
        """
        messages = record.messages
        assert messages is not None  # noqa: S101 - only called with conversations
        text, generated = self._render(messages, record)
        marked, _ = self._render([each._replace(content=_MARK.format(i)) for i, each in enumerate(messages)], record)
        contents, skipped = _locate_contents(messages, text, marked, record)
        if self.has_generation:
            trained = _find_marked(messages, contents, generated)
        elif training:
            trained = [
                self._find_difference(messages, i, text, record)
                if each.role == ASSISTANT
                else _to_content_span(contents[i])
                for i, each in enumerate(messages)
                if each.scored
            ]
        else:
            trained = [_to_content_span(span) for each, span in zip(messages, contents, strict=True) if each.scored]
        if not trained:
            raise _build_conversation_error(
                record,
                "none of its scored turns is inside the {% generation %} of the chat template",
                "Name other roles with --scored-roles, or give another template with --chat-template FILE.",
                "no_generation",
            )
        return Rendered(text=text, contents=contents, skipped=skipped, trained=tuple(trained))

    def _render(self, messages: Iterable[Message], record: Record, *, prompt: bool = False) -> tuple[str, Any]:
        """The text, and what of it is generated."""
        turns = [{"role": each.role, "content": each.content} for each in messages]
        options: dict[str, Any] = {
            **self._tokens,
            "chat_template": self._template,
            "return_assistant_tokens_mask": self.has_generation,
            "add_generation_prompt": prompt,
        }
        try:
            found: Any = render_jinja_template([turns], **options)
        except _TEMPLATE_ERRORS as error:
            raise CorpusError(
                f"The chat template refuses record {record.id!r}: {error}",
                do="Many templates want turns of user and assistant to alternate, and some no system turn: correct the "
                "conversation, skip it, or give another template with --chat-template FILE.",
                code="template_refuses",
            ) from error
        texts, generated = found
        return texts[0], generated[0] if generated else []

    def _find_difference(self, messages: Messages, turn: int, text: str, record: Record) -> Span:
        """What a turn of the assistant adds to the text that comes before it."""
        before, _ = self._render(messages[:turn], record, prompt=True)
        after, _ = self._render(messages[: turn + 1], record)
        # what follows a turn may be rendered with the next one, such as white space that is trimmed at the very end
        if not after.startswith(before) or not text.startswith(after.rstrip()):
            raise _build_conversation_error(
                record,
                f"the chat template writes what is before turn {turn + 1} in another way when more follows, so which "
                "tokens are the assistant's cannot be determined",
                "Give a template with {% generation %} marks with --chat-template FILE.",
                "no_prefix",
            )
        return len(before), min(len(after), len(text))


def find_template(tokenizer: Any, given: str | None) -> str | None:
    """The template that is used: the one given, else the tokenizer's own; None if there is none."""
    if given is not None:
        return given
    own = getattr(tokenizer, "chat_template", None)
    if isinstance(own, dict):
        return own.get("default")
    return own


def build_no_template_error(name: str) -> ModelError:
    """What to do where a conversation cannot be rendered."""
    return ModelError(
        f"The corpus holds conversations, and the tokenizer of {name!r} has no chat template.",
        do="Give the template that the model was trained with: --chat-template FILE (chat_template=), or save it with "
        "the tokenizer (chat_template.jinja). If the model was trained on plain texts, name their column with "
        "--text-column.",
        code="no_chat_template",
    )


def _locate_contents(
    messages: Messages, text: str, marked: str, record: Record
) -> tuple[tuple[Span | None, ...], tuple[int, ...]]:
    """Where each content is in the text that a chat template rendered, and how much was trimmed before it."""
    pieces = re.split(_MARK.format(r"(\d+)"), marked)
    order = [int(number) for number in pieces[1::2]]
    lost = [i for i, each in enumerate(messages) if each.scored and each.content.strip() and order.count(i) != 1]
    if not lost:
        for trim in _TRIMS:
            written = [trim(messages[i].content) for i in order]
            if _join_rendered(pieces[::2], written) == text:
                return _measure_contents(messages, pieces[::2], order, trim)
    which = f"turn {lost[0] + 1}" if lost else "a turn"
    raise _build_conversation_error(
        record,
        f"the chat template changes what is said in {which}, so its tokens cannot be traced back to the text",
        "Give a template that writes turns as they are, with --chat-template FILE.",
        "template_changes_text",
    )


def _measure_contents(
    messages: Messages, pieces: Sequence[str], order: Sequence[int], trim: Callable[[str], str]
) -> tuple[tuple[Span | None, ...], tuple[int, ...]]:
    """The spans of all contents in a rendered chat, given what the template puts between them."""
    spans: dict[int, Span] = {}
    end = len(pieces[0])
    for i, piece in zip(order, pieces[1:], strict=True):
        begin, end = end, end + len(trim(messages[i].content))
        spans.setdefault(i, (begin, end))
        end += len(piece)
    leading = trim("  x") == "x"
    skipped = (len(each.content) - len(each.content.lstrip()) if leading else 0 for each in messages)
    return tuple(spans.get(i) for i in range(len(messages))), tuple(skipped)


def _find_marked(messages: Messages, contents: Sequence[Span | None], generated: Iterable[Any]) -> list[Span]:
    """What the template marks as generated of scored turns; the content of turns of others that are scored."""
    scored = [span for each, span in zip(messages, contents, strict=True) if each.scored and span is not None]
    found = [(int(begin), int(end)) for begin, end in generated]
    kept = [span for span in found if any(_do_spans_overlap(span, content) for content in scored)]
    others = [
        _to_content_span(span)
        for each, span in zip(messages, contents, strict=True)
        if each.scored
        and each.role != ASSISTANT
        and not any(_do_spans_overlap(_to_content_span(span), other) for other in found)
    ]
    return sorted([*kept, *others])


def _to_content_span(span: Span | None) -> Span:
    """The span of a turn's content; an empty one for a turn that the template drops, in which nothing is said."""
    return (0, 0) if span is None else span


def _do_spans_overlap(one: Span, other: Span) -> bool:
    """Whether two spans of a rendered conversation share a character."""
    return max(one[0], other[0]) < min(one[1], other[1])


def _join_rendered(pieces: Sequence[str], written: Sequence[str]) -> str:
    """What a chat template puts between the contents, and the contents."""
    return "".join([pieces[0], *(part for pair in zip(written, pieces[1:], strict=True) for part in pair)])


def _build_conversation_error(record: Record, found: str, do: str, code: str) -> CorpusError:
    """The error for a conversation that cannot be rendered by the chat template."""
    return CorpusError(f"Record {record.id!r}: {found}.", do=do, code=code)
