"""The turns of a conversation: parsed from a chat column, scored or context, and as one text."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any, NamedTuple

from pydantic_core import from_json

from recollect import labels
from recollect.corpora.readers.faults import Fault, FaultError, describe_type, quote_excerpt
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
    """The message of a role; it is scored if it is the assistant's.

    >>> say("user", "hello").scored, say("assistant", "good morning").scored
    (False, True)
    """
    return Message(role, content, role == ASSISTANT)


def list_scored(messages: Messages) -> list[str]:
    """The texts of the scored messages."""
    return [message.content for message in messages if message.scored]


def join_scored(messages: Messages) -> str:
    """The scored messages as one text."""
    return SEPARATOR.join(list_scored(messages))


def join_context(messages: Messages) -> str:
    """All messages that are not scored as one text."""
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
    """The canonical bytes of a conversation; which turns are scored is noted only where it is not the assistant's."""
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
        return _truncate_conversation(messages, len(text))
    parts = text.split(SEPARATOR)
    if len(parts) != len(turns):
        parts = _divide_words(text, [len(turn.split()) for turn in turns])
    remaining = iter(parts)
    return tuple(each._replace(content=next(remaining)) if each.scored else each for each in messages)


def _truncate_conversation(messages: Messages, size: int) -> Messages:
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


def _divide_words(text: str, counts: list[int]) -> list[str]:
    """The words of a text divided among scored messages, so many to each; the last has all that is left."""
    words, parts = text.split(), list[str]()
    for count in counts[:-1]:
        parts.append(" ".join(words[:count]))
        words = words[count:]
    return [*parts, " ".join(words)]


ROLES = ("system", "developer", "user", "assistant", "tool")
"""The roles that chat templates know."""
_SYNONYMS = {
    "human": "user",
    "prompter": "user",
    "gpt": "assistant",
    "chatgpt": "assistant",
    "model": "assistant",
    "bot": "assistant",
    "function": "tool",
    "function_response": "tool",
    "observation": "tool",
    "ipython": "tool",
}
"""What ShareGPT and others call them."""
_UNSUPPORTED = ("tool_calls", "function_call", "reasoning_content", "thinking")
"""What a template may render besides the content, and cannot be traced back to a text."""


def parse_messages(value: Any, column: str, scored_roles: Collection[str] = (ASSISTANT,)) -> Messages:
    """The turns of a conversation, in canonical roles and with their contents as they are.

    Args:
        value: What the cell holds.
        column: Its column, for messages of errors.
        scored_roles: Whose turns are scored, where a turn has no `weight` (1 or 0) of its own.

    Raises:
        FaultError: It is no conversation, or nobody speaks in it whose turns are scored.
    """
    messages = tuple(
        _parse_turn(turn, number, column, scored_roles) for number, turn in enumerate(_unwrap_turns(value, column), 1)
    )
    if not any(message.scored and message.content.strip() for message in messages):
        spoken = ", ".join(dict.fromkeys(message.role for message in messages)) or "nobody"
        raise FaultError(
            Fault(
                "no_scored_turn",
                f"{column!r} has no turn that is scored (of {' or '.join(scored_roles)}); it has turns of {spoken}.",
                do="Leave the conversation out (--skip-bad), or name whose turns are scored with --scored-roles.",
            )
        )
    return messages


def parse_prompt_and_completion(prompt: Any, completion: Any, columns: tuple[str, str]) -> Messages:
    """A prompt and a completion that are turns: those of the prompt are context, those of the completion are scored."""
    before = (message._replace(scored=False) for message in parse_messages(prompt, columns[0], ROLES))
    return (*before, *parse_messages(completion, columns[1]))


def is_list_of_turns(value: Any) -> bool:
    """Whether a cell of a prompt column holds messages and not a text."""
    return not isinstance(value, str) and isinstance(_to_plain_turns(value), Sequence | Mapping)


def _unwrap_turns(value: Any, column: str) -> Sequence[Any]:
    """The messages of a conversation, however they are written."""
    value = _to_plain_turns(value)
    if isinstance(value, str) and value.lstrip().startswith("["):
        try:
            value = from_json(value)
        except ValueError as error:
            raise _build_turn_error(column, f"is no JSON list of turns: {error}") from None
    if isinstance(value, Mapping) and value:  # as `datasets` gives a sequence of features: a column per key
        columns = {key: _to_plain_turns(cells) for key, cells in value.items()}
        if all(isinstance(cells, Sequence) and not isinstance(cells, str) for cells in columns.values()):
            value = [dict(zip(columns, turn, strict=False)) for turn in zip(*columns.values(), strict=False)]
    if isinstance(value, str) or not isinstance(value, Sequence):
        raise _build_turn_error(column, f"is {describe_type(value)}, where a list of turns is needed")
    if not value:
        raise _build_turn_error(column, "is an empty conversation")
    return value


def _parse_turn(turn: Any, number: int, column: str, scored_roles: Collection[str]) -> Message:
    """Parse one message of a conversation."""
    if not isinstance(turn, Mapping):
        raise _build_turn_error(
            column, f"has {describe_type(turn)} as turn {number}, where a role and a content are needed"
        )
    for key in _UNSUPPORTED:
        if turn.get(key) is not None and len(_to_plain_turns(turn[key])):
            raise _build_turn_error(column, f"has {key!r} in turn {number}, which is not supported")
    role, content = _get_first_key(turn, "role", "from"), _get_first_key(turn, "content", "value")
    if not isinstance(role, str) or (role := _SYNONYMS.get(role.lower(), role.lower())) not in ROLES:
        shown = quote_excerpt(role) if isinstance(role, str) else describe_type(role)
        raise FaultError(
            Fault("bad_role", f"{column!r}: the role of turn {number} is {shown}. Known: {', '.join(ROLES)}.")
        )
    weight = turn.get("weight")
    scored = role in scored_roles if weight is None else bool(weight)
    return Message(role, _join_text_parts(content, number, column), scored)


def _join_text_parts(content: Any, number: int, column: str) -> str:
    """The text of a message; several parts of text are one."""
    content = _to_plain_turns(content)
    if isinstance(content, Sequence) and not isinstance(content, str):
        parts: list[Any] = [part.get("text") if isinstance(part, Mapping) else part for part in content]
        if not all(isinstance(part, str) for part in parts):
            raise _build_turn_error(column, f"has something other than text in turn {number}")
        content = "".join(parts)
    if not isinstance(content, str):
        raise _build_turn_error(column, f"has {describe_type(content)} as the content of turn {number}")
    if "\x00" in content:
        raise FaultError(Fault("nul_character", f"{column!r} holds a NUL character in turn {number}."))
    try:
        content.encode()
    except UnicodeEncodeError:
        raise FaultError(
            Fault("not_utf8", f"{column!r} holds half of a surrogate pair in turn {number}, which is not UTF-8.")
        ) from None
    return content


def _get_first_key(turn: Mapping[str, Any], *keys: str) -> Any:
    """The value of the first of these keys that a message has."""
    return next((turn[key] for key in keys if turn.get(key) is not None), None)


def _to_plain_turns(value: Any) -> Any:
    """The messages of a conversation as a list in place of an array of NumPy, which a DataFrame may hold."""
    return value.tolist() if hasattr(value, "tolist") else value


def _build_turn_error(column: str, found: str) -> FaultError:
    """The error for a message that cannot be parsed."""
    return FaultError(Fault("bad_conversation", f"{column!r} {found}."))
