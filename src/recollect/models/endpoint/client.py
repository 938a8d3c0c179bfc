"""Requests to one server: reserved, sent a few at a time, repeated where that is of use. No failure is an answer."""

from __future__ import annotations

import email.utils
import json
import random
import ssl
import time
import weakref
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Final

import anyio
import httpx2
from anyio.from_thread import BlockingPortal, start_blocking_portal

from recollect.digests import digest_bytes
from recollect.errors import ModelError, RecollectError
from recollect.models.endpoint.ledger import Charge, Ledger
from recollect.models.endpoint.limiter import Limiter
from recollect.models.endpoint.safety import clean_message
from recollect.models.endpoint.settings import EndpointSettings
from recollect.version import __version__

REPEATED: Final = frozenset({408, 429})
"""Statuses below 500 after which the same request may succeed."""
MAX_VALUES: Final = 2**28
"""Log-probabilities that a server may have to hold at once: tokens under way × vocabulary. Prompt log-probabilities are
outside some servers' memory plan, and have killed live services."""


@dataclass(frozen=True, kw_only=True)
class Request:
    """One request, and what it may cost."""

    path: str
    """After the address of the server; one that begins with `/` is after its host."""
    body: dict[str, Any] | None
    """Sent as JSON by POST; None to GET."""
    read: Callable[[Any], Any]
    """What is kept of the answer; raises a ModelError if it cannot be right."""
    purpose: str = ""
    """What is kept of it, by name: two readings of one answer are kept apart."""
    input_tokens: int = 0
    output_tokens: int = 0
    values: int = 1
    """Log-probabilities that the server computes for it, in vocabularies."""

    @cached_property
    def content(self) -> bytes:
        """The body as it is sent, which is always written the same way."""
        return json.dumps(self.body, sort_keys=True, separators=(",", ":"), allow_nan=False).encode()

    @cached_property
    def key(self) -> str:
        """The address of its answer."""
        return digest_bytes(self.path.encode(), self.content, self.purpose.encode())


class Rejected(ModelError):  # noqa: N818 - it is what the server says
    """The server understood a request, and does not do what it asks for."""

    default_code = "rejected_by_server"
    status: int = 0


class Client:
    """A server that answers requests; used from any thread, also while an event loop runs."""

    def __init__(self, url: str, settings: EndpointSettings, ledger: Ledger, key: str | None) -> None:
        """Connect to nothing yet.

        Args:
            url: The address, such as http://localhost:8000/v1.
            settings: Budget, prices and pace.
            ledger: What was spent so far.
            key: Sent with each request, and shown nowhere.
        """
        self._url, self._settings, self._ledger = url.rstrip("/"), settings, ledger
        self._clean: Callable[[str], str] = lambda text: clean_message(text, key)
        self._headers = {"user-agent": f"recollect/{__version__}"}
        self._authorization = {} if key is None else {"authorization": f"Bearer {key}"}
        self.vocabulary = 131_072
        """How many tokens the model knows; a large number until that is known."""
        self._urls: dict[str, httpx2.URL] = {}
        self._failed_in_a_row = 0
        self._reached = False
        """Whether the server has ever answered anything."""
        self._sent, self._seconds = 0, 0.0
        self._stack = ExitStack()
        self._connected: tuple[BlockingPortal, httpx2.AsyncClient, Limiter] | None = None
        self._close = weakref.finalize(self, self._stack.close)

    def __repr__(self) -> str:
        return f"Client({self._url!r})"

    @property
    def seconds_per_request(self) -> float:
        """How long requests took so far, several being under way at once."""
        return self._seconds / max(1, self._sent)

    def send(self, request: Request) -> Any:
        """The answer to one request."""
        found: list[Any] = []
        self.send_all([request], lambda _, answer: found.append(answer))
        return found[0]

    def send_all(self, requests: Sequence[Request], keep: Callable[[Request, Any], None]) -> None:
        """Send requests, several at once, and hand over each answer as it arrives.

        Raises:
            ModelError: One of them failed for good. Those that were under way are waited for and handed over; the
                rest is not sent.
        """
        portal, client, limiter = self._connect()
        batch = _Batch(requests, keep)
        began = time.monotonic()
        future = portal.start_task_soon(self._run, batch, client, limiter)
        try:
            future.result()
        except BaseException:
            future.cancel()
            raise
        self._sent, self._seconds = self._sent + len(requests), self._seconds + time.monotonic() - began
        if batch.error is not None:
            raise batch.error

    def _connect(self) -> tuple[BlockingPortal, httpx2.AsyncClient, Limiter]:
        """The event loop that serves this server, in a thread of its own."""
        if self._connected is None:
            portal = self._stack.enter_context(start_blocking_portal())
            most, pace = self._settings.connections, self._settings.pace
            client = httpx2.AsyncClient(
                headers=self._headers | self._authorization,
                timeout=httpx2.Timeout(pace.timeout, connect=min(pace.timeout, pace.connect_timeout)),
                limits=httpx2.Limits(max_connections=most, max_keepalive_connections=most),
                follow_redirects=False,
            )
            self._stack.callback(portal.call, client.aclose)
            self._connected = portal, client, Limiter(most, heaviest=MAX_VALUES)
        return self._connected

    async def _run(self, batch: _Batch, client: httpx2.AsyncClient, limiter: Limiter) -> None:
        """Send all requests of a batch."""
        async with anyio.create_task_group() as group:
            for _ in range(min(self._settings.connections, len(batch.requests))):
                group.start_soon(self._work, batch, client, limiter)

    async def _work(self, batch: _Batch, client: httpx2.AsyncClient, limiter: Limiter) -> None:
        """Send one request after another until none is left or one has failed."""
        while (request := batch.take()) is not None:
            try:
                answer = await self._send_until_answered(request, client, limiter, batch)
                if answer is not _GIVEN_UP:
                    batch.keep(request, answer)
            except RecollectError as error:
                batch.error = batch.error or error

    async def _send_until_answered(
        self, request: Request, client: httpx2.AsyncClient, limiter: Limiter, batch: _Batch
    ) -> Any:
        """What is kept of the answer to a request, which is repeated where that is of use."""
        pace, waited, wait = self._settings.pace, 0.0, 0.0
        for attempt in range(pace.attempts):
            async with limiter.slot(request.values * self.vocabulary, lambda: batch.error is not None):
                if batch.error is not None:
                    return _GIVEN_UP
                outcome = await self._attempt(request, client)
            if not isinstance(outcome, _Failure):
                self._failed_in_a_row = 0
                limiter.report_success()
                return request.read(outcome)
            self._failed_in_a_row += 1
            backoff = pace.first_wait * 2**attempt * random.random()
            wait = max(outcome.wanted_wait, backoff)
            waited += wait
            if waited > pace.longest_wait or self._failed_in_a_row >= pace.failures or attempt == pace.attempts - 1:
                raise self._build_failure(outcome, attempt + 1)
            if outcome.overload:
                limiter.report_overload(outcome.wanted_wait)
            await anyio.sleep(wait)
        raise AssertionError("unreachable")

    async def _attempt(self, request: Request, client: httpx2.AsyncClient) -> Any:
        """The answer of one attempt as JSON, or why it failed.

        Raises:
            ModelError: It is of no use to repeat it, or the budget does not allow it.
        """
        bound = Charge(input_tokens=request.input_tokens, output_tokens=request.output_tokens)
        ticket = self._ledger.reserve(bound, self._settings.budget, self._settings.prices)
        charge = bound
        try:
            response = await client.send(self._build(request, client))
            self._reached = True
            answer = _read_json(response)
            if response.status_code < 500 and response.status_code != 200:
                charge = Charge()
            if response.is_success:
                charge = _read_usage(answer, bound)
                return _Failure("an answer that is no JSON") if answer is None else answer
            return self._judge(response, answer)
        except httpx2.TransportError as error:
            if (reason := _find_certificate_fault(error)) is not None:
                raise self._build_certificate_refusal(reason) from error
            message = self._clean(str(error)) or type(error).__name__
            if isinstance(error, httpx2.ConnectError | httpx2.ConnectTimeout) and not self._reached:
                raise self._build_unreachable(message) from error
            reason = type(error).__name__ if message == type(error).__name__ else f"{type(error).__name__} ({message})"
            return _Failure(reason, overload=isinstance(error, httpx2.TimeoutException))
        finally:
            self._ledger.settle(ticket, charge)

    def _judge(self, response: httpx2.Response, answer: Any) -> _Failure:
        """Why an attempt failed, if it may be repeated.

        Raises:
            Rejected: It may not.
        """
        status = response.status_code
        text = self._clean(_find_message(answer) or response.reason_phrase)
        if status in REPEATED or status >= 500:
            overload = status in (408, 429, 503, 504)
            return _Failure(f"status {status} ({text})", _parse_retry_after(response.headers), overload)
        error = Rejected(
            f"The server {self._url} answers with status {status}: {text}",
            do=_REMEDIES.get(status, "Check the address, the name of the model and the options."),
            code="rejected_by_server",
        )
        error.status, error.final = status, True
        raise error

    def _build_failure(self, outcome: _Failure, attempts: int) -> ModelError:
        """Why a request is given up."""
        error = ModelError(
            f"The server {self._url} gave no answer in {attempts} attempts; the last one ended with {outcome.reason}.",
            do="Run the same again when the server is well: what was answered is kept and not requested again.",
            code="server_failed",
        )
        error.final = True
        return error

    def _build_unreachable(self, reason: str) -> ModelError:
        """Why nothing was sent: a server that never answered is more likely to be a wrong address than to be busy."""
        error = ModelError(
            f"No server can be reached at {self._url}: {reason.rstrip('.')}.",
            do="Check host and port, whether it is http or https, and that the server runs.",
            code="server_not_reached",
        )
        error.final = True
        return error

    def _build_certificate_refusal(self, reason: str) -> ModelError:
        """Why nothing is sent to a server that cannot prove who it is."""
        error = ModelError(
            f"The certificate of {self._url} cannot be trusted: {reason}.",
            do="Check the address. If the certificate is of an authority of your own, name its file in SSL_CERT_FILE.",
            code="certificate_refused",
        )
        error.final = True
        return error

    def _build(self, request: Request, client: httpx2.AsyncClient) -> httpx2.Request:
        """A request as it is sent."""
        url = self._urls.get(request.path)
        if url is None:  # reading an address costs as much as sending a request
            base, path = httpx2.URL(self._url), request.path
            url = self._urls[path] = base.join(path) if path.startswith("/") else httpx2.URL(f"{self._url}/{path}")
        if request.body is None:
            return client.build_request("GET", url)
        return client.build_request("POST", url, content=request.content, headers=_JSON)


_GIVEN_UP: Final = object()
_JSON: Final = {"content-type": "application/json"}
_REMEDIES: Final = {
    401: "Set the key in the environment: OPENAI_API_KEY for OpenAI, RECOLLECT_API_KEY for any other server, or a "
    "variable of your own that --key-variable names.",
    403: "The key does not allow this.",
    404: "Check the address and the name of the model; the address of most servers ends in /v1.",
}


@dataclass(frozen=True)
class _Failure:
    """An attempt that failed and may be repeated."""

    reason: str
    wanted_wait: float = 0.0
    """Seconds that the server wants to be left alone."""
    overload: bool = False


class _Batch:
    """Requests that are sent together."""

    def __init__(self, requests: Sequence[Request], keep: Callable[[Request, Any], None]) -> None:
        self.requests, self.keep = requests, keep
        self.error: RecollectError | None = None
        self._next = 0

    def take(self) -> Request | None:
        """The next request; None if none is left, or one has failed."""
        if self.error is not None or self._next >= len(self.requests):
            return None
        self._next += 1
        return self.requests[self._next - 1]


def _find_certificate_fault(error: BaseException | None) -> str | None:
    """What is wrong with a certificate, if that is why a connection failed."""
    while error is not None:
        if isinstance(error, ssl.SSLCertVerificationError):
            return error.verify_message
        error = error.__cause__ or error.__context__
    return None


def _read_json(response: httpx2.Response) -> Any:
    """The JSON that the client received; None if it is none."""
    try:
        return json.loads(response.content)
    except ValueError:
        return None


def _read_usage(answer: Any, bound: Charge) -> Charge:
    """What a client's request cost as the server counts it; what was reserved, where it does not."""
    usage = answer.get("usage") if isinstance(answer, dict) else None
    if not isinstance(usage, dict):
        return bound
    read, generated = usage.get("prompt_tokens"), usage.get("completion_tokens")
    found = bound
    if isinstance(read, int):
        found = replace(found, input_tokens=read)
    return replace(found, output_tokens=generated) if isinstance(generated, int) else found


def _find_message(answer: Any) -> str:
    """What an error says that the client received, wherever the server puts it."""
    if not isinstance(answer, dict):
        return ""
    error = answer.get("error", answer)
    message = error.get("message", error.get("detail", "")) if isinstance(error, dict) else error
    return message if isinstance(message, str) else json.dumps(message)


def _parse_retry_after(headers: httpx2.Headers) -> float:
    """Seconds that the client is told to wait; 0 if the server does not say."""
    value = headers.get("retry-after", "")
    try:
        return max(0.0, float(value))
    except ValueError:
        pass
    try:
        return max(0.0, email.utils.parsedate_to_datetime(value).timestamp() - time.time())
    except (TypeError, ValueError):
        return 0.0
