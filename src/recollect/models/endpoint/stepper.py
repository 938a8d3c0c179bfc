"""The Stepper protocol over HTTP: what may follow a path, from the tokens that are shown and those that are forced."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from recollect.errors import ModelError
from recollect.models.endpoint.client import Rejected, Request
from recollect.models.endpoint.completions import find_generated, is_withheld
from recollect.models.endpoint.doubts import LOWEST, build_doubt, refuse_disagreement, refuse_invented
from recollect.models.endpoint.generations import Generation
from recollect.models.endpoint.methods import Method
from recollect.models.endpoint.tokens import Tokens
from recollect.models.model import Frontier
from recollect.models.tokens.token_spelling import Spelling


class EndpointStepper:
    """A model behind a server, queried token by token. A node is its path, sent anew with each request."""

    def __init__(
        self,
        *,
        method: Method,
        tokens: Tokens,
        spelling: Spelling,
        generation: Generation,
        longest: int | None,
    ) -> None:
        """Make it walkable.

        Args:
            method: How tokens are scored.
            tokens: The tokenizer.
            spelling: How its tokens are spelled.
            generation: Gets answers.
            longest: The most tokens that are read at once.
        """
        self._method, self._tokens, self._generation, self._longest = method, tokens, generation, longest
        self.spelling = spelling
        self._paths: list[tuple[int, ...]] = []
        self._shows: bool | None = None
        """Whether the server shows tokens by number; None until that was tried."""

    def encode(self, text: str) -> list[int]:
        """The tokens of a prefix as `start` reads it, with those that are before every text."""
        return [*self._tokens.before, *self._tokens.encode([text])[0].ids.tolist()]

    def start(self, prefix: str | Sequence[int], *, source: str | Sequence[int] | None = None) -> Frontier:
        """The one node that is after `prefix`.

        Raises:
            ModelError: There is no token to start from, or a source is given.
        """
        ids = self.encode(prefix) if isinstance(prefix, str) else list(prefix)
        if source is not None or not ids:
            raise ModelError(
                "A source is given, and the model reads none." if source is not None else "The prefix is empty.",
                do="Leave the source out." if source is not None else "Give a prefix of at least one token.",
                code="source_not_wanted" if source is not None else "empty_prefix",
            )
        return self._add([tuple(ids)])

    def step(
        self,
        state: Frontier,
        parents: Sequence[int],
        token_ids: Sequence[int],
        *,
        among: Sequence[int] | None = None,
        least: NDArray[np.float64] | None = None,
        last: NDArray[np.bool_] | None = None,
    ) -> tuple[Frontier, NDArray[Any]]:
        """`Stepper.step` by requests to the server; nodes need no state."""
        del last
        children = self.add_children(state, parents, token_ids)
        return children, self.score_next(children, among=among, least=least)

    def add_children(self, state: Frontier, parents: Sequence[int], token_ids: Sequence[int]) -> Frontier:
        """The new nodes that `step` would give, unread."""
        above = [self._paths[state.nodes[parent]] for parent in parents]
        return self._add([(*path, int(token)) for path, token in zip(above, token_ids, strict=True)])

    def score_next(
        self, state: Frontier, *, among: Sequence[int] | None = None, least: NDArray[np.float64] | None = None
    ) -> NDArray[Any]:
        """Log-probabilities of what may follow these nodes [nodes, among].

        Each node costs a request for the tokens that are shown, and one for each of `among` that is not shown, unless
        it is less likely than those by so much that it does not matter.

        Raises:
            ModelError: The whole vocabulary is wanted, and the server does not show it.
        """
        wanted = self._list_wanted(among)
        paths = [self._paths[node] for node in state.nodes]
        found = np.full((len(paths), len(wanted)), np.nan, dtype=np.float32)
        missing, requests = list[tuple[int, int]](), list[Request]()
        for row, (path, shown) in enumerate(zip(paths, self._read_shown(paths), strict=True)):
            # what is not shown is no likelier than the last that is, up to the server's own noise
            ceiling = _find_ceiling(shown, self._method.top) + self._generation.probe.noise_floor
            for column, token_id in enumerate(wanted):
                if token_id in shown:
                    found[row, column] = shown[token_id]
                elif least is None or least[row, column] <= ceiling:
                    missing.append((row, column))
                    requests.append(self._plan_one(path, token_id))
        for place, rows in zip(missing, self._generation.ask_rows(requests), strict=True):
            found[place] = rows[0][0]
        return found

    def forget(self) -> None:
        """Nothing is remembered but paths."""

    def _list_wanted(self, among: Sequence[int] | None) -> list[int]:
        """The tokens whose log-probabilities are wanted."""
        if among is not None:
            return [int(token_id) for token_id in among]
        if not self._method.whole:
            raise ModelError(
                "The log-probabilities of the whole vocabulary are wanted, and the server shows only the top "
                f"{self._method.top}.",
                do="Choose an audit or a method that asks for some tokens only, or raise --top-logprobs.",
                code="vocabulary_not_shown",
            )
        return list(range(len(self.spelling.tokens)))

    def _read_shown(self, paths: Sequence[Sequence[int]]) -> list[dict[int, float]]:
        """The tokens that are shown after each path, by number; none where the server spells them only."""
        if self._shows is None and paths:
            self._shows = self._try_shown(paths[0])
        if not self._shows:
            return [{}] * len(paths)
        answers = self._generation.ask([self._plan_shown(path) for path in paths])
        return [{int(token_id): float(logprob) for token_id, logprob in pairs} for pairs in answers]

    def _try_shown(self, path: Sequence[int]) -> bool:
        """Whether the server shows the next tokens by number: one that scores prompts was not probed for that.

        Raises:
            ModelError: It shows other numbers than it scores prompts with.
        """
        if not self._method.scores_prompts:
            return True
        try:
            (shown,) = self._generation.ask([self._plan_shown(path)])
        except Rejected as error:
            if error.status in (401, 403):
                raise
            return False
        if not shown:
            return False
        token_id, logprob = max(shown, key=lambda pair: pair[1])
        ((row,),) = self._generation.ask_rows([self._plan_one(path, token_id)])
        refuse_disagreement(abs(logprob - row[0]), self._generation.probe.noise_floor)
        return True

    def _plan_shown(self, path: Sequence[int]) -> Request:
        """The request for the tokens that are shown after a path."""
        request = self._method.build_next(path, read=read_shown_ids, purpose="shown")
        if not self._method.scores_prompts:
            return request
        # vLLM spells tokens unless it is told to number them; others ignore it
        return replace(request, body={**(request.body or {}), "return_tokens_as_token_ids": True})

    def _plan_one(self, path: Sequence[int], token_id: int) -> Request:
        """The request for one token after a path."""
        written = self.spelling.tokens[token_id] if token_id < len(self.spelling.tokens) else ()
        piece = written[0].encode("latin-1").decode("utf-8", "replace") if written else ""
        ids = [*path, token_id]
        (request,) = self._method.plan(ids, [len(path)], [""] * len(path) + [piece])
        return request

    def _add(self, paths: Sequence[tuple[int, ...]]) -> Frontier:
        """New nodes."""
        for path in paths:
            if self._longest is not None and len(path) > self._longest:
                raise ModelError(
                    f"A path of {len(path)} tokens is longer than the {self._longest} that the model reads.",
                    do="Choose a shorter prefix.",
                    code="path_too_long",
                )
        begin = len(self._paths)
        self._paths += paths
        return Frontier(np.arange(begin, begin + len(paths), dtype=np.int64))


def _find_ceiling(shown: Mapping[int, float], top: int) -> float:
    """The log-probability that no token after a step exceeds that is not shown; 0 where fewer are shown than wanted."""
    return sorted(shown.values())[-top] if len(shown) >= top else 0.0


def read_shown_ids(answer: Any) -> list[tuple[int, float]]:
    """For a step: the tokens that are shown, by number; those that the server only spells are left out.

    Raises:
        ModelError: None are shown any more, or their log-probabilities are invented.
    """
    if is_withheld(answer):
        return []
    found = find_generated(answer)
    if found is None:
        raise build_doubt("logprobs_missing", "the server no longer gives log-probabilities.")
    pairs = [(token_id, logprob) for token_id, _, logprob in found.top if token_id is not None and logprob > LOWEST]
    refuse_invented([logprob for _, logprob in pairs])
    return pairs
