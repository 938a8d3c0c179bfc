"""Ways to score the tokens of a text through a server, from the most that servers show to the least.

Each plans requests whose rows, in order, belong to the tokens that are to be scored. A row is a log-probability (None
where it is not shown) and a rank (0 where the token is not among those shown), and with the whole vocabulary also
entropy and standard deviation.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Final, Literal

from recollect.models.access import Access
from recollect.models.endpoint.client import Request
from recollect.models.endpoint.completions import (
    Generated,
    count_at_least,
    count_generated,
    find_echoed,
    find_generated,
    find_prompt_logprobs,
    is_withheld,
    read_prompt_entry,
)
from recollect.models.endpoint.doubts import LOWEST, build_doubt, refuse_invented

Row = list[float | int | None]
MethodName = Literal["prompt_logprobs", "echo", "forced", "top_k"]
BIAS: Final = 100
"""What a token's logit is raised by to force it; the most that most servers take."""
COMPLETIONS: Final = "completions"
WITHHELD: Final[Row] = [None, -1]
"""The row of a forced token that ends within a character: it must be looked up among the whole vocabulary."""


@dataclass(frozen=True, kw_only=True)
class Method:
    """A way to score tokens."""

    name: MethodName
    model: str
    """How the server calls the model."""
    top: int
    """Ranked tokens that are requested per position."""
    whole: bool = False
    """Whether these are the whole vocabulary."""

    @property
    def access(self) -> Access:
        """What this shows."""
        if self.name == "prompt_logprobs":
            return Access(k=None, logprob="any", distribution=False, steps=False)
        shown: Literal["shown", "any"] = "shown" if self.name == "top_k" else "any"
        if self.whole:
            return Access(k=None, logprob="any", distribution=True, steps=False)
        return Access(k=self.top, logprob=shown, distribution=False, steps=False)

    @property
    def scores_prompts(self) -> bool:
        """Whether one request scores a whole text."""
        return self.name in ("prompt_logprobs", "echo")

    def plan(self, ids: Sequence[int], places: Sequence[int], pieces: Sequence[str]) -> list[Request]:
        """Requests that score some tokens.

        Args:
            ids: All tokens, with those that are before the text.
            places: Those that are scored, in ascending order; the first is at least 1.
            pieces: What each token writes, where it is known.
        """
        if not places:
            return []
        if self.scores_prompts:
            return [self._plan_prompt(list(ids), list(places), list(pieces))]
        return [self._plan_position(ids[:i], ids[i], pieces[i]) for i in places]

    def _plan_prompt(self, ids: list[int], places: list[int], pieces: list[str]) -> Request:
        """One request for all tokens."""
        body: dict[str, Any] = {"model": self.model, "prompt": ids, "max_tokens": 1, "temperature": 0}
        if self.name == "prompt_logprobs":
            body |= {"prompt_logprobs": 0}
            read = partial(read_prompt_rows, ids, places)
        else:
            body |= {"echo": True, "logprobs": self.top}
            read = partial(read_echo_rows, pieces, places, self.top)
        return Request(
            path=COMPLETIONS,
            body=body,
            read=read,
            purpose=f"rows {places}",
            input_tokens=len(ids),
            output_tokens=1,
            values=len(ids),
        )

    def _plan_position(self, context: Sequence[int], token_id: int, piece: str) -> Request:
        """One request for one token."""
        if self.name == "forced":
            read = partial(read_forced_row, token_id, piece, None if self.whole else self.top)
            return self.build_next(context, read=read, purpose="row", force=token_id)
        # the same context is asked once, whatever follows it
        return self.build_next(context, read=partial(read_shown_row, token_id, piece, self.top), purpose=f"{token_id}")

    def plan_lookup(self, request: Request, harmless: int, size: int) -> Request:
        """The request for a token that was withheld: another one is forced, and the whole vocabulary shown."""
        assert request.body is not None  # noqa: S101 - completions are requested by POST
        (token_id,) = map(int, request.body["logit_bias"])
        whole = replace(self, top=size)
        read = partial(read_looked_up_row, token_id, None if self.whole else self.top)
        return whole.build_next(request.body["prompt"], read=read, purpose=f"lookup {token_id}", force=harmless)

    def build_next(self, context: Sequence[int], *, read: Any, purpose: str, force: int | None = None) -> Request:
        """The request for what follows a context."""
        body: dict[str, Any] = {"model": self.model, "prompt": list(context), "max_tokens": 1, "temperature": 0}
        body |= {"logprobs": self.top}
        if force is not None:
            body |= {"logit_bias": {str(force): BIAS}}
        return Request(
            path=COMPLETIONS,
            body=body,
            read=read,
            purpose=purpose,
            input_tokens=len(context),
            output_tokens=1,
            values=1,
        )


def read_prompt_rows(ids: Sequence[int], places: Sequence[int], answer: Any) -> list[Row]:
    """A method's rows: log-probabilities and ranks from prompt_logprobs.

    Raises:
        ModelError: They are not of these tokens.
    """
    entries = find_prompt_logprobs(answer)
    if entries is None:
        raise build_doubt("prompt_logprobs_missing", "the server no longer gives prompt_logprobs.")
    if len(entries) != len(ids):
        raise build_doubt("token_count", f"{len(ids)} tokens were sent, and {len(entries)} were scored.")
    if None in entries[1:]:
        raise build_doubt("token_count", "a token that is not the first has no log-probability.")
    rows: list[Row] = [list(read_prompt_entry(entries[i], ids[i])) for i in places]
    refuse_invented([row[0] for row in rows])
    return rows


def read_echo_rows(pieces: Sequence[str], places: Sequence[int], top: int, answer: Any) -> list[Row]:
    """A method's rows of an echoed text: log-probabilities, and ranks as far as they are shown.

    Raises:
        ModelError: They are not of these tokens.
    """
    echoed, generated = find_echoed(answer), count_generated(answer)
    if echoed is None:
        raise build_doubt("echo_missing", "the server no longer echoes the text.")
    count = len(echoed.tokens) - (1 if generated is None else generated)
    if count != len(pieces):
        raise build_doubt("token_count", f"{len(pieces)} tokens were sent, and {count} were scored.")
    if None in echoed.logprobs[1:count]:
        raise build_doubt("token_count", "a token that is not the first has no log-probability.")
    if echoed.logprobs[0] is not None:
        raise build_doubt("first_token_scored", "the first token has a log-probability, though nothing is before it.")
    rows = list[Row]()
    for i in places:
        if not _may_be(echoed.tokens[i], pieces[i]):
            raise build_doubt("other_tokens", "the echoed tokens are not those that were sent.")
        rows.append([echoed.logprobs[i], find_echo_rank(echoed.tokens[i], echoed.logprobs[i], echoed.tops[i], top)])
    refuse_invented([row[0] for row in rows])
    return rows


def read_forced_row(token_id: int, piece: str, top: int | None, answer: Any) -> list[Row]:
    """A method's row of a forced token: its log-probability, and its rank as far as it is shown.

    Args:
        token_id: The token.
        piece: What it writes.
        top: How many ranked tokens are shown; None for all.
        answer: Of the server.

    Raises:
        ModelError: Another token was generated.
    """
    if is_withheld(answer):
        return [WITHHELD]
    found = _get_generated(answer)
    if found.token_id != token_id and (found.token_id is not None or not _may_be(found.token, piece)):
        raise build_doubt("other_tokens", f"token {token_id} was forced, and another one was generated.")
    refuse_invented([found.logprob])
    if top is None:
        values = [logprob for _, _, logprob in found.top]
        return [[found.logprob, count_at_least(values, found.logprob), *compute_moments(values)]]
    return [[found.logprob, _find_shown_rank(found, token_id, piece, found.logprob, top)]]


def read_looked_up_row(token_id: int, top: int | None, answer: Any) -> list[Row]:
    """A method's row of a token that was looked up among the whole vocabulary.

    Raises:
        ModelError: It is not there.
    """
    found = {each: logprob for each, _, logprob in _get_generated(answer).top}
    if token_id not in found:
        raise build_doubt("other_tokens", f"token {token_id} is not among all tokens that are shown.")
    refuse_invented([found[token_id]])
    rank = count_at_least(list(found.values()), found[token_id])
    if top is None:
        return [[found[token_id], rank, *compute_moments(list(found.values()))]]
    return [[found[token_id], rank if rank <= top else 0]]


def read_shown_row(token_id: int, piece: str, top: int, answer: Any) -> list[Row]:
    """A method's row of a token: log-probability and rank if it is among those shown, and nothing otherwise."""
    found = _get_generated(answer)
    refuse_invented([value for _, _, value in found.top if value > LOWEST])
    for each, text, logprob in found.top:
        if _is_token(each, text, token_id, piece):
            rank = _find_shown_rank(found, token_id, piece, logprob, top)
            return [[logprob, rank] if rank else [None, 0]]
    return [[None, 0]]


def compute_moments(logprobs: Sequence[float]) -> tuple[float, float]:
    """For a method that sees a whole distribution: its entropy and standard deviation of log-probability, in nats.

    >>> entropy, std = compute_moments([math.log(0.5), math.log(0.5)])
    >>> round(entropy, 6), std
    (0.693147, 0.0)

    Raises:
        ModelError: It does not sum to one.
    """
    weights = [math.exp(value) for value in logprobs]
    total = math.fsum(weights)
    if abs(total - 1) > 1e-2:
        raise build_doubt("distribution_not_whole", f"the probabilities of the whole vocabulary sum to {total:.3g}.")
    mean = math.fsum(weight * value for weight, value in zip(weights, logprobs, strict=True)) / total
    second = math.fsum(weight * value**2 for weight, value in zip(weights, logprobs, strict=True)) / total
    return -mean, math.sqrt(max(second - mean**2, 0.0))


def find_rank(others: Sequence[float], logprob: float, top: int) -> int:
    """For a method: the rank of a token from the others that are shown; 0 if it is not among the most likely.

    A token that was sent or generated is shown besides the most likely ones. Servers that name tokens by their text
    show several as one where these are parts of characters: what is missing then counts as more likely, so that no
    rank comes out better than it is.

    >>> find_rank([-0.1, -0.5, -3.0], -2.0, 4), find_rank([-0.1, -0.5, -1.0], -2.0, 3)
    (3, 0)
    >>> find_rank([-0.1, -3.0], -2.0, 4), find_rank([-0.1, -0.5], -2.0, 4)
    (3, 0)
    """
    rank = count_at_least(others, logprob) + 1
    missing = max(0, top - 1 - len(others))
    if missing and rank > len(others):
        return 0  # it may be shown for being sent
    return rank + missing if rank + missing <= top else 0


def _find_shown_rank(found: Generated, token_id: int, piece: str, logprob: float, top: int) -> int:
    """For a method: the rank of a token among those shown beside a generated one; 0 if it is not among them."""
    others = [value for each, text, value in found.top if not _is_token(each, text, token_id, piece)]
    return find_rank(others, logprob, top) if len(others) < len(found.top) else 0


def _get_generated(answer: Any) -> Generated:
    """The generated token that a method reads."""
    found = find_generated(answer)
    if found is None:
        raise build_doubt("logprobs_missing", "the server no longer gives log-probabilities.")
    return found


def find_echo_rank(token: str, logprob: float | None, shown: Any, top: int) -> int:
    """For the method of echoes: the rank of a token among those shown beside it; 0 if it is not among them."""
    if not isinstance(shown, dict) or logprob is None:
        return 0
    others = [value for text, value in shown.items() if text != token]
    return find_rank(others, logprob, top) if len(others) < len(shown) else 0


def _is_token(found_id: int | None, found: str, token_id: int, piece: str) -> bool:
    """Whether a shown token is the one that a method scores."""
    return found_id == token_id if found_id is not None else "\ufffd" not in found and _is_spelled(found, piece)


def _may_be(token: str, piece: str) -> bool:
    """For the method of echoes: whether an echoed token can be this one, as far as spelling tells."""
    return not token or "\ufffd" in token or token.startswith("bytes:") or _is_spelled(token, piece)


def _is_spelled(token: str, piece: str) -> bool:
    """For a method: whether a token is spelled so, whatever space some tokenizers count to no token."""
    return token == piece or token.lstrip(" ▁") == piece.lstrip(" ")
