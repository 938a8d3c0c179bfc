"""Answers of `/v1/completions`, in whichever of their shapes: what was generated, what was shown beside it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from recollect.models.endpoint.doubts import build_doubt, read_number

Shown = tuple[int | None, str, float]
"""A token that is shown: its number where the server tells it, its text, and its log-probability."""


@dataclass(frozen=True, kw_only=True)
class Generated:
    """One generated token and what is shown beside it."""

    token_id: int | None
    token: str
    logprob: float
    top: tuple[Shown, ...]


@dataclass(frozen=True, kw_only=True)
class Echoed:
    """A text that was echoed, token by token."""

    tokens: tuple[str, ...]
    logprobs: tuple[float | None, ...]
    tops: tuple[Mapping[str, float] | None, ...]


def get_choice(answer: Any) -> dict[str, Any]:
    """The one completion of an answer.

    Raises:
        ModelError: It has none.
    """
    choices = answer.get("choices") if isinstance(answer, dict) else None
    if not isinstance(choices, list) or len(choices) != 1 or not isinstance(choices[0], dict):
        raise build_doubt("no_completion", "an answer holds no completion.")
    return choices[0]


def get_text(answer: Any) -> str:
    """The text of a completion.

    Raises:
        ModelError: It is missing.
    """
    text = get_choice(answer).get("text")
    if not isinstance(text, str):
        raise build_doubt("no_completion", "an answer holds no text.")
    return text


def count_generated(answer: Any) -> int | None:
    """How many tokens a completion has, if the server says so."""
    usage = answer.get("usage")
    count = usage.get("completion_tokens") if isinstance(usage, dict) else None
    return count if isinstance(count, int) else None


def is_withheld(answer: Any) -> bool:
    """Whether a completion's token ends within a character, of which llama.cpp then shows no log-probability."""
    choice = get_choice(answer)
    return choice.get("logprobs") is None and "\ufffd" in str(choice.get("text", ""))


def find_generated(answer: Any) -> Generated | None:
    """The first token of a completion with its log-probability; None where the server shows none.

    Both shapes are read: the lists of the completions API, and the `content` of the chat API, which some servers put
    into completions.
    """
    logprobs = get_choice(answer).get("logprobs")
    if not isinstance(logprobs, dict):
        return None
    content = logprobs.get("content")
    if isinstance(content, list):
        return _read_chat_entry(content[0]) if content and isinstance(content[0], dict) else None
    tokens, values, tops = (logprobs.get(name) for name in ("tokens", "token_logprobs", "top_logprobs"))
    if not (isinstance(tokens, list) and isinstance(values, list) and tokens and values):
        return None
    top = tops[0] if isinstance(tops, list) and tops and isinstance(tops[0], dict) else {}
    shown = tuple((_parse_id(token), token, read_number(value)) for token, value in top.items())
    token_id, token = _parse_id(tokens[0]), str(tokens[0])
    return Generated(token_id=token_id, token=token, logprob=read_number(values[0]), top=shown)


def find_echoed(answer: Any) -> Echoed | None:
    """The tokens of a completion that echoes its text; None where the server echoes none."""
    logprobs = get_choice(answer).get("logprobs")
    if not isinstance(logprobs, dict):
        return None
    tokens, values, tops = (logprobs.get(name) for name in ("tokens", "token_logprobs", "top_logprobs"))
    if not isinstance(tokens, list) or not isinstance(values, list):
        return None
    tops = tops if isinstance(tops, list) else [None] * len(tokens)
    if len(values) != len(tokens) or len(tops) != len(tokens):
        raise build_doubt("token_count", "tokens and their log-probabilities are not equally many.")
    return Echoed(
        tokens=tuple(map(str, tokens)),
        logprobs=tuple(None if value is None else read_number(value) for value in values),
        tops=tuple(tops),
    )


def find_prompt_logprobs(answer: Any) -> list[Any] | None:
    """What a completion shows of each token of the prompt, unread; None where the server gives no such thing."""
    entries = get_choice(answer).get("prompt_logprobs", answer.get("prompt_logprobs"))
    return entries if isinstance(entries, list) else None


def read_prompt_entry(entry: Any, token_id: int) -> tuple[float, int]:
    """Log-probability and rank of a token of the prompt in a completion.

    Raises:
        ModelError: Others are shown in its place, or it has no rank.
    """
    if not isinstance(entry, dict):
        raise build_doubt("prompt_logprobs_shape", "an entry of prompt_logprobs is not a table of tokens.")
    shown = entry.get(str(token_id))
    if not isinstance(shown, dict):
        raise build_doubt("other_tokens", f"token {token_id} was sent, and others were scored.")
    rank = shown.get("rank")
    if not isinstance(rank, int) or rank < 1:
        raise build_doubt("rank_missing", "a token has no rank.")
    return read_number(shown.get("logprob")), rank


def count_at_least(values: Sequence[float], logprob: float) -> int:
    """How many of the tokens that a completion shows are at least as likely, ties included.

    >>> count_at_least([-0.1, -2.0, -2.0, -5.0], -2.0)
    3
    """
    return sum(value >= logprob for value in values)


def _read_chat_entry(entry: Mapping[str, Any]) -> Generated | None:
    """A token of a completion in the shape of the chat API."""
    if "logprob" not in entry:
        return None
    tops = entry.get("top_logprobs")
    shown = tuple(
        (_get_id(each), str(each.get("token", "")), read_number(each.get("logprob")))
        for each in (tops if isinstance(tops, list) else [])
        if isinstance(each, dict)
    )
    token = str(entry.get("token", ""))
    return Generated(token_id=_get_id(entry), token=token, logprob=read_number(entry["logprob"]), top=shown)


def _get_id(entry: Mapping[str, Any]) -> int | None:
    """The number of a completion's token, where the server tells it."""
    found = entry.get("id")
    return found if isinstance(found, int) else _parse_id(str(entry.get("token", "")))


def _parse_id(token: str) -> int | None:
    """The number of a completion's token that is written as `token_id:123`."""
    prefix, _, number = token.partition("token_id:")
    return int(number) if not prefix and number.isdecimal() else None
