"""The turns of a conversation: which are scored, which are context, and what they say as one text."""

from __future__ import annotations

from typing import NamedTuple

from recollect import labels
from recollect.digests import frame

ASSISTANT = "assistant"
"""Whose turns are scored unless something else is requested: a chat model is trained on these."""
SEPARATOR = "\u2029"
"""Between turns that are read as one text: white space (Unicode's paragraph separator), so no word crosses it."""


class Message(NamedTuple):
    """One turn of a conversation."""

    role: str
    """Who speaks: system, developer, user, assistant or tool."""
    content: str
    scored: bool
    """Whether its tokens are trained on and scored; if not, it is context."""


Messages = tuple[Message, ...]


def say(role: str, content: str) -> Message:
    """A turn that is scored if it is the assistant's.

    >>> say("user", "hello").scored, say("assistant", "good morning").scored
    (False, True)
    """
    return Message(role, content, role == ASSISTANT)


def list_scored(messages: Messages) -> list[str]:
    """What is said in the scored turns."""
    return [message.content for message in messages if message.scored]


def join_scored(messages: Messages) -> str:
    """The scored turns as one text."""
    return SEPARATOR.join(list_scored(messages))


def join_context(messages: Messages) -> str:
    """All other turns as one text."""
    return SEPARATOR.join(message.content for message in messages if not message.scored)


def list_turns(messages: Messages) -> list[dict[str, object]]:
    """The turns as chat templates and files have them; a weight says so where it is not the assistant's that count.

    >>> list_turns((Message("user", "hi", True), Message("assistant", "hello", True)))
    [{'role': 'user', 'content': 'hi', 'weight': 1}, {'role': 'assistant', 'content': 'hello'}]
    """
    turns: list[dict[str, object]] = [{"role": each.role, "content": each.content} for each in messages]
    for turn, message in zip(turns, messages, strict=True):
        if message.scored != (message.role == ASSISTANT):
            turn["weight"] = int(message.scored)
    return turns


def frame_messages(messages: Messages) -> bytes:
    """The canonical bytes of a conversation; which turns are scored is said only where it is not the assistant's."""
    encoded = frame(labels.RECORD_MESSAGES)
    for message in messages:
        encoded += frame(message.role.encode()) + frame(message.content.encode("utf-8", "surrogatepass"))
    if any(message.scored != (message.role == ASSISTANT) for message in messages):
        encoded += frame(labels.RECORD_SCORED_TURNS + bytes(message.scored for message in messages))
    return encoded


def replace_scored(messages: Messages, text: str) -> Messages:
    """The conversation with another text in its scored turns.

    A beginning of the old text ends the conversation where it ends. Any other is shared out among the turns: where the
    separator says, or, if that was lost, by the number of words of each turn.

    >>> talk = (say("user", "hi"), say("assistant", "one two"), say("user", "go on"), say("assistant", "three"))
    >>> [message.content for message in replace_scored(talk, "one")]
    ['hi', 'one']
    >>> [message.content for message in replace_scored(talk, "ONE TWO THREE")]
    ['hi', 'ONE TWO', 'go on', 'THREE']
    """
    turns = list_scored(messages)
    old = SEPARATOR.join(turns)
    if old.startswith(text) and len(text) < len(old):
        return _truncate(messages, len(text))
    parts = text.split(SEPARATOR)
    if len(parts) != len(turns):
        parts = _share_out(text, [len(turn.split()) for turn in turns])
    remaining = iter(parts)
    return tuple(each._replace(content=next(remaining)) if each.scored else each for each in messages)


def _truncate(messages: Messages, size: int) -> Messages:
    """The conversation up to so many characters of its scored text; at least one scored turn is left."""
    kept: list[Message] = []
    for message in messages:
        if not message.scored:
            kept.append(message)
            continue
        kept.append(message._replace(content=message.content[:size]))
        size -= len(message.content) + len(SEPARATOR)
        if size <= 0:
            break
    return tuple(kept)


def _share_out(text: str, counts: list[int]) -> list[str]:
    """The words of a text as so many parts of so many words; the last part has all that is left."""
    words, parts = text.split(), list[str]()
    for count in counts[:-1]:
        parts.append(" ".join(words[:count]))
        words = words[count:]
    return [*parts, " ".join(words)]
