"""From what a cell of a chat column holds to the canonical turns of a conversation, or to what is wrong with it.

OpenAI's and TRL's `messages` ({"role", "content"}), ShareGPT's `conversations` ({"from", "value"}), either as a list of
turns, as the columns of a table of turns, or as JSON in a cell of a CSV file.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from pydantic_core import from_json

from recollect.corpora.faults import Fault, FaultError, describe_type, quote_excerpt
from recollect.corpora.messages import ASSISTANT, Message, Messages

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
        _parse_turn(turn, number, column, scored_roles) for number, turn in enumerate(_list_turns(value, column), 1)
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
    """Whether a cell of a prompt column holds turns and not a text."""
    return not isinstance(value, str) and isinstance(_to_plain(value), Sequence | Mapping)


def _list_turns(value: Any, column: str) -> Sequence[Any]:
    """The turns, however they are written."""
    value = _to_plain(value)
    if isinstance(value, str) and value.lstrip().startswith("["):
        try:
            value = from_json(value)
        except ValueError as error:
            raise _build_error(column, f"is no JSON list of turns: {error}") from None
    if isinstance(value, Mapping) and value:  # as `datasets` gives a sequence of features: a column per key
        columns = {key: _to_plain(cells) for key, cells in value.items()}
        if all(isinstance(cells, Sequence) and not isinstance(cells, str) for cells in columns.values()):
            value = [dict(zip(columns, turn, strict=False)) for turn in zip(*columns.values(), strict=False)]
    if isinstance(value, str) or not isinstance(value, Sequence):
        raise _build_error(column, f"is {describe_type(value)}, where a list of turns is needed")
    if not value:
        raise _build_error(column, "is an empty conversation")
    return value


def _parse_turn(turn: Any, number: int, column: str, scored_roles: Collection[str]) -> Message:
    """One turn."""
    if not isinstance(turn, Mapping):
        raise _build_error(column, f"has {describe_type(turn)} as turn {number}, where a role and a content are needed")
    for key in _UNSUPPORTED:
        if turn.get(key) is not None and len(_to_plain(turn[key])):
            raise _build_error(column, f"has {key!r} in turn {number}, which is not supported")
    role, content = _get_first(turn, "role", "from"), _get_first(turn, "content", "value")
    if not isinstance(role, str) or (role := _SYNONYMS.get(role.lower(), role.lower())) not in ROLES:
        shown = quote_excerpt(role) if isinstance(role, str) else describe_type(role)
        raise FaultError(
            Fault("bad_role", f"{column!r}: the role of turn {number} is {shown}. Known: {', '.join(ROLES)}.")
        )
    weight = turn.get("weight")
    scored = role in scored_roles if weight is None else bool(weight)
    return Message(role, _join_parts(content, number, column), scored)


def _join_parts(content: Any, number: int, column: str) -> str:
    """The text of a turn; several parts of text are one."""
    content = _to_plain(content)
    if isinstance(content, Sequence) and not isinstance(content, str):
        parts: list[Any] = [part.get("text") if isinstance(part, Mapping) else part for part in content]
        if not all(isinstance(part, str) for part in parts):
            raise _build_error(column, f"has something other than text in turn {number}")
        content = "".join(parts)
    if not isinstance(content, str):
        raise _build_error(column, f"has {describe_type(content)} as the content of turn {number}")
    if "\x00" in content:
        raise FaultError(Fault("nul_character", f"{column!r} holds a NUL character in turn {number}."))
    try:
        content.encode()
    except UnicodeEncodeError:
        raise FaultError(
            Fault("not_utf8", f"{column!r} holds half of a surrogate pair in turn {number}, which is not UTF-8.")
        ) from None
    return content


def _get_first(turn: Mapping[str, Any], *keys: str) -> Any:
    """The value of the first key that is there."""
    return next((turn[key] for key in keys if turn.get(key) is not None), None)


def _to_plain(value: Any) -> Any:
    """A list in place of an array of NumPy, which a DataFrame may hold."""
    return value.tolist() if hasattr(value, "tolist") else value


def _build_error(column: str, found: str) -> FaultError:
    """An exception that carries the fault."""
    return FaultError(Fault("bad_conversation", f"{column!r} {found}."))
