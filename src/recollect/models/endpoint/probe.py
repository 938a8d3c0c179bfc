"""The probe: what a server really gives, found by the shape and the agreement of its answers, and not by its name.

It sends at most `MOST_REQUESTS` requests. Whatever contradicts itself is refused.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

from recollect.corpora.record import Record
from recollect.errors import ModelError
from recollect.models.endpoint.client import Client, Rejected, Request
from recollect.models.endpoint.completions import (
    Generated,
    find_echoed,
    find_generated,
    find_prompt_logprobs,
    is_withheld,
)
from recollect.models.endpoint.doubts import build_doubt, refuse_disagreement, refuse_invented
from recollect.models.endpoint.methods import WITHHELD, Method, Row, read_shown_row
from recollect.models.endpoint.server_facts import ServerFacts, find_facts
from recollect.models.endpoint.settings import EndpointSettings
from recollect.models.endpoint.texts import TextMethod, find_first_word
from recollect.models.endpoint.tokens import Dialect, ServerTokens, TokenPlan, Tokens, build_request, load_local_tokens

MOST_REQUESTS: Final = 60
"""Requests of a whole probe, repetitions after failures apart."""
TEXTS: Final = (
    "On the first Monday of the month the library opens at nine, and the old baker brings warm bread for everyone.",
    "She looked at the map again: the river turned north, then east, and met the sea near a small grey town.",
)
"""What every server is probed with."""
FORCED: Final = 4
"""Positions at which forcing is tried."""
TOLERANCE: Final = 0.25
"""Nats by which a forced token may differ from the same one shown; far less than what a bias does to it."""
POSITIONS: Final = 9
"""Tokens of each text that are scored one by one."""
MAX_NOISE: Final = 1.0
"""Nats by which two answers to the same request may differ; a server that differs more is refused."""
MIN_FLOOR: Final = 1e-2
"""Nats. Servers of quantised weights round otherwise now and then, depending on what else they compute: one that
repeated itself exactly in half of its readings differed by 0.0013 in the other half."""
_LLAMACPP: Final = "llamacpp"
NOISE_FACTOR: Final = 3.0
"""The noise floor is so many times the largest difference between two orders of the same requests."""


@dataclass(frozen=True, kw_only=True)
class Probe:
    """What a probe found."""

    facts: ServerFacts
    method: Method | TextMethod
    tokens: Tokens | None
    """None where texts are sent as texts."""
    fingerprint: tuple[Row, ...]
    """The rows of the probe's texts: what a repeated probe is compared with."""
    noise: float
    """The largest difference between two orders of the same requests, in nats."""
    agreed: int
    """Positions at which prompt scores were compared with generated tokens."""

    @property
    def noise_floor(self) -> float:
        """By how many nats the same request may answer differently."""
        return max(MIN_FLOOR, NOISE_FACTOR * self.noise)


@dataclass(frozen=True, kw_only=True)
class Prober:
    """Probes one model of one server."""

    client: Client
    model: str
    settings: EndpointSettings
    _encoded: dict[str, list[TokenPlan]] = field(default_factory=dict, repr=False, compare=False)
    """The probe's texts as tokens, by tokenizer: the server is asked for them once."""

    def run(self) -> Probe:
        """The whole probe.

        Raises:
            ModelError: The server gives nothing that can be used, or contradicts itself.
        """
        facts = self.read_facts()
        tokens = self.find_tokens()
        size = self.learn(facts, tokens)
        found = None if tokens is None else self._find_method(tokens, size)
        tokens = None if found is None else tokens
        method = found or self._find_text_method()
        first = self.read_fingerprint(facts, method, tokens)
        second = [row for part in self.ask(self.plan_fingerprint(method, tokens)) for row in part]
        noise = compare(first, second)
        if noise > MAX_NOISE:
            raise build_doubt(
                "noisy_answers",
                f"the same requests in another order give log-probabilities that differ by {noise:.3g} nats.",
            )
        refuse_invented([row[0] for row in first])
        probe = Probe(facts=facts, method=method, tokens=tokens, fingerprint=tuple(first), noise=noise, agreed=0)
        return replace(probe, agreed=self._cross_check(probe))

    def learn(self, facts: ServerFacts, tokens: Tokens | None) -> int | None:
        """How many tokens the model knows, if that is known: how much a server holds at once depends on it."""
        size = facts.vocabulary or (None if tokens is None else tokens.size)
        self.client.vocabulary = size or self.client.vocabulary
        return size

    def read_facts(self) -> ServerFacts:
        """What the server lists of the model.

        Raises:
            ModelError: It lists others only.
        """
        try:
            answer = self.client.send(Request(path="models", body=None, read=_keep, values=0))
        except Rejected as error:
            if error.status in (401, 403):
                raise
            return ServerFacts(listed={})
        return find_facts(answer, self.model)

    def find_tokens(self) -> Tokens | None:
        """The tokenizer: the one that the user names, the server's own, or none.

        Raises:
            ModelError: The one that is named is not that of the server.
        """
        served = self._find_server_tokens()
        if self.settings.tokenizer is None:
            return served
        named = load_local_tokens(self.settings.tokenizer)
        if served is not None:
            # what is before a text is known to the server, whose settings may differ from the files
            named.before = served.before
            own, other = self._plan_probe(named), self._plan_probe(served)
            if [each.ids for each in own] != [each.ids for each in other]:
                raise build_doubt(
                    "other_tokenizer", f"the server's tokens of a text are not those of {self.settings.tokenizer!r}."
                )
        return named

    def _find_server_tokens(self) -> ServerTokens | None:
        """The tokenizer of the server, if it offers one of a known kind."""
        dialects: tuple[Dialect, ...] = ("llama.cpp", "vllm")
        for dialect in dialects:
            try:
                plain = self.client.send(build_request(dialect, self.model, "a"))[0]
                full = self.client.send(build_request(dialect, self.model, "a", special=True))
            except Rejected:
                continue
            at = next((i for i in range(len(full)) if full[i : i + len(plain)] == plain), 0)
            return ServerTokens(dialect, self.model, full[:at], self.ask)
        return None

    def ask(self, requests: Sequence[Request]) -> list[Any]:
        """The answers to requests; nothing of a probe is kept."""
        found: dict[str, Any] = {}
        self.client.send_all(requests, lambda request, answer: found.__setitem__(request.key, answer))
        return [found[request.key] for request in requests]

    def _find_method(self, tokens: Tokens, size: int | None) -> Method | None:
        """The most that the server gives for tokens; None if it shows no log-probabilities at all."""
        ids = self._plan_probe(tokens)[0].ids
        whole = ids, range(1, len(ids)), [""] * len(ids)
        base = Method(name="prompt_logprobs", model=self.model, top=self.settings.top_logprobs)
        if (answer := self._try(base.plan(*whole)[0])) is not None and find_prompt_logprobs(answer):
            return base
        top, seen = self._find_top(ids)
        echo = replace(base, name="echo", top=top)
        answer = self._try(echo.plan(*whole)[0])
        if answer is not None and (echoed := find_echoed(answer)) is not None and len(echoed.tokens) > 2:
            return echo
        if seen is None:
            return None
        shows_all = size is not None and len(seen.top) >= size
        forced = replace(base, name="forced", top=top, whole=shows_all)
        return forced if self._can_force(forced, tokens) else replace(forced, name="top_k")

    def _find_top(self, ids: Sequence[int]) -> tuple[int, Generated | None]:
        """How many ranked tokens the server shows of the next one; 0 if none."""
        for top in dict.fromkeys([self.settings.top_logprobs, min(20, self.settings.top_logprobs), 5, 1]):
            method = Method(name="top_k", model=self.model, top=top)
            answer = self._look_ahead(method, ids)
            seen = None if answer is None else find_generated(answer)
            if seen is not None and seen.top:
                return min(top, len(seen.top)), seen
            if answer is not None:
                break  # it was accepted, and ignored
        return 1, None

    def _look_ahead(self, method: Method, ids: Sequence[int]) -> Any:
        """The answer to what follows a context; where the likeliest token is withheld, with another one forced."""
        answer = self._try(method.build_next(ids, read=_keep, purpose="probe"))
        if answer is None or not is_withheld(answer):
            return answer
        return self._try(method.build_next(ids, read=_keep, purpose="probe", force=ids[-1]))

    def _can_force(self, method: Method, tokens: Tokens) -> bool:
        """Whether a forced token comes with the log-probability that it has when nothing is forced."""
        ids, pieces = (plan := self._plan_probe(tokens)[0]).ids, plan.pieces
        compared = 0
        for i in _pick_evenly(plan.places[3:], FORCED):
            free = self._look_ahead(method, ids[:i])
            seen = None if free is None else find_generated(free)
            row = self._try_row(method.plan(ids, [i], pieces)[0])
            if row == WITHHELD:
                continue
            if seen is None or row is None or row[0] is None:
                return False
            logprob = read_shown_row(ids[i], pieces[i], method.top, free)[0][0]
            limit = min(value for _, _, value in seen.top)
            wrong = row[0] > limit + TOLERANCE if logprob is None else abs(row[0] - logprob) > TOLERANCE
            if wrong:
                return False
            compared += logprob is None or logprob < -TOLERANCE  # after the bias it would be about 0
        return compared > 0

    def _find_text_method(self) -> TextMethod:
        """The most that the server gives for texts."""
        echo = TextMethod(name="echo_text", model=self.model, top=min(self.settings.top_logprobs, 5))
        answer = self._try(echo.plan(TEXTS[0])[0])
        if answer is not None and (echoed := find_echoed(answer)) is not None and len(echoed.tokens) > 2:
            return echo
        words = TextMethod(name="words", model=self.model, top=1)
        request = words.plan(TEXTS[0])[4]
        guesses = [self._try(request) for _ in range(2)]
        if None in guesses:
            raise ModelError(
                f"The server completes no text with the model {self.model!r}; services that only chat cannot be "
                "audited.",
                do="Give an address that has /completions (that of most servers ends in /v1), or score it by other "
                "means and give recorded:DIR.",
                code="chat_only",
            )
        if len({find_first_word(guess) for guess in guesses}) > 1 or not find_first_word(guesses[0]):
            raise build_doubt("sampled_text", "the same text is completed differently, though temperature 0 is set.")
        return words

    def read_fingerprint(self, facts: ServerFacts, method: Method | TextMethod, tokens: Tokens | None) -> list[Row]:
        """The rows of the probe's texts, the longest first, each computed from nothing where that can be had.

        llama.cpp computes only what its cache does not hold, and rounds quantised weights otherwise then: by up to 0.09
        nats, depending on which requests arrived together. Without its cache it repeats itself, so that a model which
        has changed can be told from one that has not. The noise is measured with the cache, as texts are scored.
        """
        requests = self.plan_fingerprint(method, tokens)[::-1]
        if facts.server == _LLAMACPP and isinstance(method, Method) and not method.scores_prompts:
            requests = [replace(each, body={**(each.body or {}), "cache_prompt": False}) for each in requests]
        return [row for part in self.ask(requests)[::-1] for row in part]

    def plan_fingerprint(self, method: Method | TextMethod, tokens: Tokens | None) -> list[Request]:
        """The requests of the part of the probe that is repeated."""
        if isinstance(method, TextMethod):
            planned = [method.plan(text) for text in TEXTS]
        else:
            assert tokens is not None  # noqa: S101 - tokens are scored with a tokenizer only
            planned = [method.plan(each.ids, each.places, each.pieces) for each in self._plan_probe(tokens)]
        return [request for part in planned for request in (part if len(part) == 1 else _pick_evenly(part, POSITIONS))]

    def get_ordinary_token(self, probe: Probe) -> int:
        """A token that is whole characters: the first of the probe's texts."""
        assert probe.tokens is not None  # noqa: S101 - tokens are scored with a tokenizer only
        plan = self._plan_probe(probe.tokens)[0]
        return plan.ids[plan.places[0]]

    def _cross_check(self, probe: Probe) -> int:
        """Compare prompt scores with the same tokens generated; how many could be compared.

        Raises:
            ModelError: They disagree.
        """
        method, tokens = probe.method, probe.tokens
        if not isinstance(method, Method) or not method.scores_prompts or tokens is None:
            return 0
        if (found := self._find_top(self._plan_probe(tokens)[0].ids[:4]))[1] is None:
            return 0
        differences = self._compare_generated(probe, replace(method, name="forced", top=found[0]), tokens)
        refuse_disagreement(max(differences, default=0.0), probe.noise_floor)
        return len(differences)

    def _compare_generated(self, probe: Probe, forced: Method, tokens: Tokens) -> list[float]:
        """By how much tokens of the probe differ when they are forced; nothing where they cannot be."""
        number, differences = 0, list[float]()
        for each in self._plan_probe(tokens):
            rows = probe.fingerprint[number : number + len(each.places)]
            number += len(rows)
            planned = forced.plan(each.ids, each.places, each.pieces)
            for row, request in _pick_evenly(list(zip(rows, planned, strict=True)), POSITIONS):
                generated = self._try_row(request)
                if generated is None or row[0] is None:
                    return []
                # a server that withholds shows nothing, and one that shows numbers after the bias shows 0
                if generated[0] is not None and generated[0] < -1e-6:
                    differences.append(abs(generated[0] - row[0]))
        return differences

    def _plan_probe(self, tokens: Tokens) -> list[TokenPlan]:
        """The probe's texts as tokens; the server is asked for them once."""
        if tokens.identity not in self._encoded:
            records = [Record(id=str(i), user="probe", text=text) for i, text in enumerate(TEXTS)]
            self._encoded[tokens.identity] = tokens.plan(records, None)
        return self._encoded[tokens.identity]

    def _try(self, request: Request) -> Any:
        """The answer as it is; None if the server does not do this."""
        try:
            return self.client.send(replace(request, read=_keep))
        except Rejected as error:
            if error.status in (401, 403):
                raise
            return None

    def _try_row(self, request: Request) -> Row | None:
        """The one row of a request; None if the server does not do this."""
        try:
            row: Row = self.client.send(request)[0]
        except Rejected as error:
            if error.status in (401, 403):
                raise
            return None
        except ModelError as error:
            if error.code in ("other_tokens", "logprobs_missing"):
                return None
            raise
        return row


def compare(first: Sequence[Row], second: Sequence[Row]) -> float:
    """How far two answers in a probe differ at most, in nats; infinite for another first guess."""
    worst = 0.0
    for one, other in zip(first, second, strict=True):
        if one[0] is not None and other[0] is not None:
            worst = max(worst, abs(one[0] - other[0]))
        elif 1 in (one[1], other[1]) and one[1] != other[1]:
            worst = math.inf
    return worst


def _pick_evenly(items: list[Any], count: int) -> list[Any]:
    """So many of a probe's items, evenly spread."""
    if len(items) <= count:
        return items
    return [items[round(i * (len(items) - 1) / (count - 1))] for i in range(count)]


def _keep(answer: Any) -> Any:
    """The answer to a probe as it is."""
    return answer
