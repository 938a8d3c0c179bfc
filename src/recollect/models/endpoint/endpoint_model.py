"""A model behind a server: what was probed of it, the records it scores, and what that costs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, Final
from urllib.parse import urlsplit

import numpy as np
from numpy.typing import NDArray

from recollect.corpora.record import Record
from recollect.digests import digest
from recollect.errors import ModelError
from recollect.models.access import Access
from recollect.models.answers import Answers
from recollect.models.endpoint.client import Client, Request
from recollect.models.endpoint.generations import Generation, compute_digest, open_generation
from recollect.models.endpoint.ledger import Charge, Ledger, find_excess
from recollect.models.endpoint.methods import Method, Row
from recollect.models.endpoint.probe import Prober
from recollect.models.endpoint.safety import read_key, refuse_unsafe_address
from recollect.models.endpoint.settings import EndpointSettings
from recollect.models.endpoint.stepper import EndpointStepper
from recollect.models.endpoint.texts import TextMethod
from recollect.models.endpoint.tokens import TokenPlan
from recollect.models.model import Kind, Question
from recollect.models.model_strings import EndpointRef
from recollect.models.tokens.tokenization import EncodedText, get_tokenised_text
from recollect.models.tokens.windows import plan_windows

BYTES_PER_TOKEN: Final = 3
"""How short tokens are, to be on the safe side, where only the server can count them."""


@dataclass(frozen=True, kw_only=True)
class EndpointInfo:
    """What a result says of a model behind a server."""

    url: str
    served_name: str
    server: str | None
    generation: int
    noise_floor: float

    @property
    def host(self) -> str:
        """Where texts are sent."""
        return urlsplit(self.url).netloc


@dataclass(frozen=True, kw_only=True)
class CostForecast:
    """What is sent to a server."""

    charge: Charge
    cost: float
    seconds: float
    excess: str | None
    """The budget that this and what was spent before would exceed, in words; None if it is within all of them."""


class Endpoint:
    """A causal language model behind an HTTP server, with the access that a probe found."""

    kind: Kind = "causal"
    remote = True
    """It computes elsewhere: requests are sent from this process, however many workers there are."""
    how_to_step = "Name the tokenizer of the model that is served (--server-tokenizer)"
    """What lets it be queried token by token where only that is missing."""

    def __init__(self, ref: EndpointRef, generation: Generation, ledger: Ledger, question: Question) -> None:
        tokens = generation.probe.tokens
        template = question.chat_template if tokens is None else tokens.find_template(question.chat_template)
        self.name, self.question = str(ref), replace(question, chat_template=template)
        self._ref, self._generation, self._ledger = ref, generation, ledger
        self.digest = compute_digest(ref.url, ref.name, generation)
        self._width = self._find_width()

    @property
    def access(self) -> Access:
        """What the probe found."""
        method = self._generation.probe.method
        return replace(method.access, steps=self._can_step)

    @property
    def endpoint(self) -> EndpointInfo:
        """What a result says of the server."""
        probe = self._generation.probe
        return EndpointInfo(
            url=self._ref.url,
            served_name=self._ref.name,
            server=probe.facts.server,
            generation=self._generation.number,
            noise_floor=probe.noise_floor,
        )

    @property
    def spent(self) -> Charge:
        """What was spent on the server from this work folder, in all runs."""
        return self._ledger.spent

    def answer(self, records: Sequence[Record]) -> Answers:
        """One row per predicted token, in the order of the text.

        Raises:
            CorpusError: A record has no text.
            ModelError: A request failed, the budget is spent, an answer is doubtful, or the model has changed.
        """
        distinct = {record.digest: record for record in records}
        method, tokens = self._generation.probe.method, self._generation.tokens
        if isinstance(method, TextMethod) or tokens is None:
            assert isinstance(method, TextMethod)  # noqa: S101 - tokens are scored with a tokenizer only
            rows = self._ask_each([method.plan(get_tokenised_text(record)) for record in distinct.values()])
            found = _build_text_answers(tuple(distinct), rows, method.access)
        else:
            plans = tokens.plan(list(distinct.values()), self.question.chat_template)
            rows = self._ask_each([self._plan(method, plan) for plan in plans])
            found = _build_token_answers(tuple(distinct), [plan.text for plan in plans], rows, method.access)
        self.confirm()
        return found

    def confirm(self) -> None:
        """Make sure that the model has not changed since it was probed.

        Raises:
            ModelError: It has.
        """
        self._generation.confirm()

    def forecast(self, records: Iterable[Record], *, corpora: int = 1) -> CostForecast:
        """What scoring these records costs if nothing is kept of them, repetitions after failures apart.

        Where the server has the tokenizer, tokens are estimated from the length of the texts.

        Args:
            records: What is scored.
            corpora: In how many corpora they are: the probe is repeated after each.
        """
        charge = sum((self._estimate_record(record) for record in records), start=Charge(requests=0))
        probe, prober = self._generation.probe, self._generation.prober
        repeated = prober.plan_fingerprint(probe.method, probe.tokens)
        for _ in range(corpora + charge.requests // prober.settings.pace.recheck):
            charge = sum(map(_get_charge, repeated), start=charge)
        budget, prices = prober.settings.budget, prober.settings.prices
        return CostForecast(
            charge=charge,
            cost=prices.compute(charge.input_tokens, charge.output_tokens),
            seconds=charge.requests * prober.client.seconds_per_request,
            excess=find_excess(self.spent + charge, budget, prices),
        )

    def stepper(self, *, memory: int | None = None) -> EndpointStepper:
        """The model queried token by token; nothing is remembered here, so that memory does not matter."""
        del memory
        method, tokens = self._generation.probe.method, self._generation.tokens
        if not self._can_step or not isinstance(method, Method) or tokens is None or tokens.spelling is None:
            raise ModelError(
                f"The model {self.name!r} cannot be queried token by token.",
                do="Name its tokenizer (--server-tokenizer), if the server lets tokens be forced.",
                code="no_stepper",
            )
        return EndpointStepper(
            method=method, tokens=tokens, spelling=tokens.spelling, generation=self._generation, longest=self._width
        )

    @property
    def _can_step(self) -> bool:
        """Whether any next token can be scored, and its spelling is known."""
        probe = self._generation.probe
        if not isinstance(probe.method, Method) or probe.tokens is None or probe.tokens.spelling is None:
            return False
        return probe.method.name in ("forced", "prompt_logprobs", "echo")

    def _plan(self, method: Method, plan: TokenPlan) -> list[Request]:
        """The requests that score one record, window by window."""
        found = list[Request]()
        if not plan.places:
            return found
        for window in plan_windows(plan.places[-1], self._width):
            begin, here = window.begin + window.skip + 1, slice(window.begin, window.end + 1)
            places = [i - window.begin for i in plan.places if begin <= i <= window.end]
            found += method.plan(plan.ids[here], places, plan.pieces[here])
        return found

    def _ask_each(self, plans: Sequence[Sequence[Request]]) -> list[list[Row]]:
        """The rows of each text."""
        answers = self._generation.ask_rows([request for plan in plans for request in plan])
        ends = np.cumsum([0, *map(len, plans)]).tolist()
        return [[row for part in answers[begin:end] for row in part] for begin, end in pairwise(ends)]

    def _estimate_record(self, record: Record) -> Charge:
        """What scoring one record costs."""
        method, tokens = self._generation.probe.method, self._generation.probe.tokens
        if isinstance(method, TextMethod) or tokens is None:
            assert isinstance(method, TextMethod)  # noqa: S101 - tokens are scored with a tokenizer only
            planned = method.plan(get_tokenised_text(record))
            return sum(map(_get_charge, planned), start=Charge(requests=0))
        if not tokens.requests_per_text:
            (plan,) = tokens.plan([record], self.question.chat_template)
            return sum(map(_get_charge, self._plan(method, plan)), start=Charge(requests=0))
        size = len(tokens.before) + -(-len(get_tokenised_text(record).encode()) // BYTES_PER_TOKEN)
        encoding = Charge(requests=tokens.requests_per_text)
        if method.scores_prompts:
            return encoding + Charge(input_tokens=size, output_tokens=1)
        width = size if self._width is None else min(size, self._width)
        contexts = width * (width - 1) // 2 + (size - width) * width
        return encoding + Charge(requests=max(0, size - 1), input_tokens=contexts, output_tokens=max(0, size - 1))

    def _find_width(self) -> int | None:
        """Tokens that are read at once: what the question says, within what the server can.

        Raises:
            ModelError: The question wants more.
        """
        context = self._generation.probe.facts.context
        longest = None if context is None else context - 2  # one is predicted, and one generated
        wanted = self.question.window
        if longest is not None and wanted is not None and wanted > longest:
            raise ModelError(
                f"A window of {wanted} tokens was requested; the model {self.name!r} reads at most {longest}.",
                do=f"Choose a window of {longest} or less, or leave it out.",
                code="window_too_long",
            )
        return longest if wanted is None else wanted


def _get_charge(request: Request) -> Charge:
    """The most that a request of an endpoint model costs."""
    return Charge(input_tokens=request.input_tokens, output_tokens=request.output_tokens)


def load_endpoint(ref: EndpointRef, settings: EndpointSettings, question: Question) -> Endpoint:
    """The model behind a server, probed.

    Raises:
        ModelError: The server cannot be used; the message says why.
    """
    refuse_unsafe_address(ref.url, allow_http=settings.allow_http)
    key = read_key(ref.url, settings.key_variable)
    folder = settings.work / "endpoints" / digest(ref.url)
    ledger = Ledger.share(folder, owner=ref.url)
    client = Client(ref.url, settings, ledger, key)
    prober = Prober(client=client, model=ref.name, settings=settings)
    own = folder / digest(ref.name, settings.tokenizer, settings.top_logprobs)
    return Endpoint(ref, open_generation(prober, own, str(ref)), ledger, question)


def _build_token_answers(
    digests: tuple[str, ...], texts: Sequence[EncodedText], rows: Sequence[Sequence[Row]], access: Access
) -> Answers:
    """An endpoint model's answers about the tokens of texts, each scored once."""
    joined = EncodedText.concatenate(texts)
    return Answers(
        records=digests,
        offsets=np.cumsum([0, *map(len, texts)], dtype=np.int64),
        pattern=np.zeros(len(joined), dtype=np.int32),
        position=joined.position,
        start=joined.start,
        end=joined.end,
        known=joined.known,
        **_build_columns([row for part in rows for row in part], access),
    )


def _build_text_answers(digests: tuple[str, ...], rows: Sequence[Sequence[Row]], access: Access) -> Answers:
    """An endpoint model's answers about texts scored in the server's tokens, or in words."""
    flat = [row for part in rows for row in part]
    places = np.array([row[2:4] for row in flat], dtype=np.int32).reshape(-1, 2)
    position = np.concatenate([np.arange(0), *(np.arange(len(part)) for part in rows)]).astype(np.int32)
    return Answers(
        records=digests,
        offsets=np.cumsum([0, *map(len, rows)], dtype=np.int64),
        pattern=np.zeros(len(flat), dtype=np.int32),
        position=position + 1,
        start=places[:, 0],
        end=places[:, 1],
        known=np.ones(len(flat), dtype=np.bool_),
        **_build_columns(flat, access),
    )


def _build_columns(rows: Sequence[Row], access: Access) -> dict[str, Any]:
    """The numbers of all rows of an endpoint model's answers; columns that are not shown are None."""

    def column(index: int) -> NDArray[np.float32]:
        return np.array([row[index] for row in rows], dtype=np.float32)

    return {
        "rank": np.array([row[1] for row in rows], dtype=np.int32),
        "logprob": None if access.logprob == "none" else column(0),
        "entropy": column(2) if access.distribution else None,
        "logprob_std": column(3) if access.distribution else None,
    }
