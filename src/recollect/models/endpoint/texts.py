"""Scoring without a tokenizer: from a text that the server echoes in its own tokens, or from its first guess of words.

Rows are log-probability, rank, beginning and end in the text.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, Literal

from recollect.models.access import Access
from recollect.models.endpoint.client import Request
from recollect.models.endpoint.completions import count_generated, find_echoed, get_text
from recollect.models.endpoint.doubts import build_doubt, refuse_invented
from recollect.models.endpoint.methods import COMPLETIONS, Row, find_echo_rank

TextMethodName = Literal["echo_text", "words"]
_WORD: Final = re.compile(r"\w+|[^\w\s]+")
_WORD_TOKENS: Final = 8
"""Tokens that are generated to read one word."""


@dataclass(frozen=True, kw_only=True)
class TextMethod:
    """A way to score a text that is sent as text."""

    name: TextMethodName
    model: str
    top: int

    @property
    def access(self) -> Access:
        """What this shows."""
        if self.name == "words":
            return Access.LABEL
        return Access(k=self.top, logprob="any", distribution=False, steps=False)

    @property
    def scores_prompts(self) -> bool:
        """Whether one request scores a whole text."""
        return self.name == "echo_text"

    def plan(self, text: str) -> list[Request]:
        """Requests whose rows together are those of the text."""
        if self.name == "echo_text":
            body = {"model": self.model, "prompt": text, "max_tokens": 1, "temperature": 0}
            body |= {"echo": True, "logprobs": self.top}
            read = partial(read_echoed_text, text, self.top)
            size = len(text.encode()) + 2  # a token is a byte or more
            request = Request(
                path=COMPLETIONS, body=body, read=read, purpose="text", input_tokens=size, output_tokens=1, values=size
            )
            return [request] if text else []
        found = list(_WORD.finditer(text))
        return [self.build_guess(text[: match.start()], match) for match in found[1:]]

    def build_guess(self, context: str, match: re.Match[str]) -> Request:
        """The request for the word after a context."""
        prompt = context.rstrip()
        body = {"model": self.model, "prompt": prompt, "max_tokens": _WORD_TOKENS, "temperature": 0}
        return Request(
            path=COMPLETIONS,
            body=body,
            read=partial(read_guessed_word, match),
            purpose=f"word {match.group()} at {match.start()}",
            input_tokens=len(prompt.encode()) + 2,
            output_tokens=_WORD_TOKENS,
        )


def find_first_word(answer: Any) -> str:
    """The first word of a text that was generated; empty if there is none."""
    found = _WORD.search(get_text(answer))
    return found.group() if found else ""


def read_guessed_word(match: re.Match[str], answer: Any) -> list[Row]:
    """For a method that sends texts: whether the model's first guess is the word itself."""
    return [[None, int(find_first_word(answer) == match.group()), match.start(), match.end()]]


def read_echoed_text(text: str, top: int, answer: Any) -> list[Row]:
    """The rows of a text in the tokens in which the server echoes it.

    Raises:
        ModelError: They do not make up the text.
    """
    echoed, generated = find_echoed(answer), count_generated(answer)
    if echoed is None:
        raise build_doubt("echo_missing", "the server no longer echoes the text.")
    count = len(echoed.tokens) - (1 if generated is None else generated)
    tokens = list(echoed.tokens[: max(count, 0)])
    special = next((n for n in (0, 1) if "".join(tokens[n:]) == text), None)
    if special is None:
        raise build_doubt("tokens_unlike_the_text", "the echoed tokens do not make up the text.")
    rows, place = list[Row](), 0
    for i, token in enumerate(tokens):
        width = 0 if i < special else len(token)
        logprob = echoed.logprobs[i]
        if logprob is None and i > 0:
            raise build_doubt("token_count", "a token that is not the first has no log-probability.")
        if i > 0:  # nothing is before the first one, or it is special
            rows.append([logprob, find_echo_rank(token, logprob, echoed.tops[i], top), place, place + width])
        place += width
    refuse_invented([row[0] for row in rows])
    return rows
