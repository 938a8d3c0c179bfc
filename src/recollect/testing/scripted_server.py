"""An inference server whose model is a small table, whose every answer is known, and whose faults can be switched on.

For tests of whatever asks servers: no request can be paid twice or be scored wrongly without being noticed.
"""

from __future__ import annotations

import itertools
import json
import random
import threading
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import NDArray

from recollect.digests import digest

Shows = Literal["prompt_logprobs", "echo", "forced", "top_k", "text", "chat"]
WORDS = (" the", " and", " a", " of", "ing", "er", " to", " in", "ed", " on", "th", " s", "re", "at", " m", "or")
ERRORS = ("500", "502 html", "503", "429", "408", "close", "half", "no json")
"""Failures after which a request may be repeated."""


class ScriptedModel:
    """A model that predicts each token from the one before it: bytes, and some frequent pieces of words."""

    def __init__(self, seed: int = 0) -> None:
        """Make the table of a seed; another seed is another model."""
        self.pieces = [bytes([byte]) for byte in range(256)] + [word.encode() for word in WORDS]
        self._longest_first = sorted(range(256, len(self.pieces)), key=lambda token: -len(self.pieces[token]))
        logits = np.random.default_rng(seed).normal(scale=2.0, size=(len(self.pieces), len(self.pieces)))
        self.logprobs: NDArray[np.float64] = logits - np.log(np.exp(logits).sum(axis=1, keepdims=True))

    def encode(self, text: str) -> list[int]:
        """The tokens of a text: always the longest piece."""
        data, found = text.encode(), list[int]()
        while data:
            best = next((i for i in self._longest_first if data.startswith(self.pieces[i])), data[0])
            found.append(best)
            data = data[len(self.pieces[best]) :]
        return found

    def decode(self, ids: Sequence[int]) -> str:
        """What tokens write."""
        return b"".join(self.pieces[i] for i in ids).decode("utf-8", "replace")

    def predict(self, ids: Sequence[int]) -> NDArray[np.float64]:
        """The log-probabilities of what follows."""
        row: NDArray[np.float64] = self.logprobs[ids[-1]]
        return row

    def score(self, text: str) -> list[tuple[float, int]]:
        """Log-probability and rank of every token of a text but the first."""
        ids = self.encode(text)
        rows = [(self.predict([before]), token) for before, token in itertools.pairwise(ids)]
        return [(float(row[token]), int((row >= row[token]).sum())) for row, token in rows]


@dataclass
class Behaviour:
    """What a server does; may be changed while it runs."""

    shows: Shows = "forced"
    tokenizer: Literal["llama.cpp", "vllm"] | None = "llama.cpp"
    max_top: int = 20
    error_rate: float = 0.0
    """How many of the requests fail, in one of the ways of `ERRORS`."""
    retry_after: float | None = None
    """What a 429 asks for."""
    slow: float = 0.0
    """Seconds that each answer takes."""
    noise: float = 0.0
    """How much log-probabilities differ each time."""
    faults: frozenset[str] = frozenset()
    """ignored_echo, off_by_one, no_start, sentinel, constant, biased, other_tokens, disagreeing."""
    drift_after: int | None = None
    """After so many requests another model answers."""
    key: str | None = None
    """The key that is wanted."""
    name: str = "table"
    owner: str = "script"
    """Which program it says it is."""


@dataclass
class ScriptedServer:
    """A server on this machine, in threads of this process."""

    model: ScriptedModel = field(default_factory=ScriptedModel)
    behaviour: Behaviour = field(default_factory=Behaviour)
    received: int = 0
    """All requests, of every kind, whether answered or not."""
    answered: Counter[str] = field(default_factory=Counter)
    """How often each completion was answered well, by the digest of its body."""
    most_at_once: int = 0
    port: int = 0

    def __post_init__(self) -> None:
        self._lock, self._active = threading.Lock(), 0
        self._random = random.Random(7)
        self._other = ScriptedModel(seed=1)

    @property
    def url(self) -> str:
        """Its address, with the name of its model."""
        return f"http://127.0.0.1:{self.port}/v1#{self.behaviour.name}"

    @contextmanager
    def run(self) -> Iterator[Self]:
        """Serve while this lasts."""
        handler = type("Handler", (_ScriptedHandler,), {"script": self})
        server = _ScriptedHTTPServer(("127.0.0.1", self.port), handler)
        self.port = server.server_port
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
        thread.start()
        try:
            yield self
        finally:
            server.shutdown()
            server.server_close()

    def begin(self) -> tuple[int, str | None]:
        """Count a request; its number, and how it shall fail."""
        with self._lock:
            self.received += 1
            self._active += 1
            self.most_at_once = max(self.most_at_once, self._active)
            fails = self._random.random() < self.behaviour.error_rate
            return self.received, self._random.choice(ERRORS) if fails else None

    def end(self, body: dict[str, Any] | None) -> None:
        """Note that a request is over, and what was answered well."""
        with self._lock:
            self._active -= 1
            if body is not None:
                self.answered[digest(body)] += 1

    def choose_model(self, number: int) -> ScriptedModel:
        """Which model answers a request."""
        after = self.behaviour.drift_after
        return self._other if after is not None and number > after else self.model

    def complete(self, body: dict[str, Any], number: int) -> dict[str, Any]:
        """The answer to a completion."""
        model, shows = self.choose_model(number), self.behaviour.shows
        prompt = body["prompt"]
        ids = model.encode(prompt) if isinstance(prompt, str) else list(prompt)
        choice, generated = self._generate(model, ids, body)
        usage = {"prompt_tokens": len(ids), "completion_tokens": len(generated)}
        if shows == "prompt_logprobs" and "prompt_logprobs" in body:
            choice["prompt_logprobs"] = self._list_prompt(model, ids)
        if shows == "echo" and body.get("echo") and "ignored_echo" not in self.behaviour.faults:
            choice |= self._echo(model, ids, generated, int(body.get("logprobs") or 1))
        return {"object": "text_completion", "model": body["model"], "choices": [choice], "usage": usage}

    def _generate(self, model: ScriptedModel, ids: list[int], body: dict[str, Any]) -> tuple[dict[str, Any], list[int]]:
        """What is generated, and the log-probabilities of its first token."""
        first = self._add_noise(model.predict(ids))
        bias = {int(token): value for token, value in (body.get("logit_bias") or {}).items()}
        forced = next(iter(bias), None) if self.behaviour.shows != "top_k" else None
        token = int(first.argmax()) if forced is None else forced
        generated = [token]
        for _ in range(int(body.get("max_tokens", 1)) - 1):
            generated.append(int(model.predict(generated).argmax()))
        choice: dict[str, Any] = {"index": 0, "text": model.decode(generated), "logprobs": None}
        if self.behaviour.shows in ("text", "chat") or not body.get("logprobs"):
            return choice, generated
        if forced is not None and "biased" in self.behaviour.faults:
            first = np.where(np.arange(len(first)) == forced, -1e-9, first)
        if forced is not None and "disagreeing" in self.behaviour.faults:
            first = first - 0.7
        best = np.argsort(-first, kind="stable")[: int(body["logprobs"])].tolist()
        best = best if "other_tokens" not in self.behaviour.faults else best[:1]
        shown = [self._describe(model, each, first) for each in best]
        choice["logprobs"] = {"content": [{**self._describe(model, token, first), "top_logprobs": shown}]}
        if "other_tokens" in self.behaviour.faults:
            choice["logprobs"]["content"][0]["id"] = (token + 1) % len(first)
        return choice, generated

    def _describe(self, model: ScriptedModel, token: int, logprobs: NDArray[np.float64]) -> dict[str, Any]:
        """A token as llama.cpp shows it."""
        value = self._distort(float(logprobs[token]))
        return {"id": token, "token": model.decode([token]), "bytes": list(model.pieces[token]), "logprob": value}

    def _list_prompt(self, model: ScriptedModel, ids: list[int]) -> list[Any]:
        """The log-probabilities of a prompt as vLLM shows them."""
        entries: list[Any] = [None]
        for before, token in itertools.pairwise(ids):
            row = self._add_noise(model.predict([before]))
            rank = int((row >= row[token]).sum())
            shown = token if "other_tokens" not in self.behaviour.faults else token + 1
            entries.append({str(shown): {"logprob": self._distort(float(row[token])), "rank": rank}})
        return self._shift(entries)

    def _echo(self, model: ScriptedModel, ids: list[int], generated: list[int], top: int) -> dict[str, Any]:
        """A prompt that is echoed as OpenAI does."""
        whole = [*ids, *generated]
        values: list[float | None] = [None]
        tops: list[dict[str, float] | None] = [None]
        for before, token in itertools.pairwise(whole):
            row = self._add_noise(model.predict([before]))
            best = np.argsort(-row, kind="stable")[:top].tolist()
            tops.append({model.decode([each]): self._distort(float(row[each])) for each in [*best, token]})
            values.append(self._distort(float(row[token])))
        tokens = [model.decode([token]) for token in whole]
        columns: dict[str, list[Any]] = {"tokens": tokens, "token_logprobs": values, "top_logprobs": tops}
        return {"text": "".join(tokens), "logprobs": {name: self._shift(each) for name, each in columns.items()}}

    def _shift(self, entries: list[Any]) -> list[Any]:
        """The entries, one more or one less where that fault is on."""
        if "off_by_one" in self.behaviour.faults:
            return [entries[0], *entries]
        return entries[1:] if "no_start" in self.behaviour.faults else entries

    def _distort(self, value: float) -> float:
        """A log-probability, or what stands in its place."""
        if "sentinel" in self.behaviour.faults:
            return -9999.0
        return 0.0 if "constant" in self.behaviour.faults else value

    def _add_noise(self, row: NDArray[np.float64]) -> NDArray[np.float64]:
        """Log-probabilities as a machine gives them that does not repeat itself."""
        if not self.behaviour.noise:
            return row
        with self._lock:
            return row - self._random.uniform(0, self.behaviour.noise)


class _ScriptedHTTPServer(ThreadingHTTPServer):
    """Threads that end with the process, and ports that can be used again at once."""

    daemon_threads = True
    allow_reuse_address = True
    request_queue_size = 64

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that was killed is no fault of the server."""


class _ScriptedHandler(BaseHTTPRequestHandler):
    """Speaks HTTP."""

    script: ScriptedServer
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def log_message(self, format: str, *args: Any) -> None:
        """Say nothing."""

    def do_GET(self) -> None:
        """The list of models."""
        self._serve(None)

    def do_POST(self) -> None:
        """Completions and tokens."""
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        self._serve(body)

    def _serve(self, body: dict[str, Any] | None) -> None:
        """Answer, or fail."""
        number, failure = self.script.begin()
        done = None
        try:
            time.sleep(self.script.behaviour.slow)
            if failure is not None:
                self._fail(failure)
                return
            status, answer = self._route(body, number)
            self._send(status, json.dumps(answer).encode())
            done = body if status == 200 and body is not None and "prompt" in body else None
        finally:
            self.script.end(done)

    def _route(self, body: dict[str, Any] | None, number: int) -> tuple[int, dict[str, Any]]:
        """Status and answer."""
        behaviour, model = self.script.behaviour, self.script.model
        given = self.headers.get("authorization", "")
        if behaviour.key is not None and given != f"Bearer {behaviour.key}":
            return 401, {"error": {"message": f"Incorrect API key provided: {given.removeprefix('Bearer ')}."}}
        if self.path == "/v1/models":
            meta = {"n_vocab": len(model.pieces), "n_ctx": 512}
            return 200, {
                "data": [{"id": behaviour.name, "created": time.time(), "owned_by": behaviour.owner, "meta": meta}]
            }
        if self.path == "/tokenize" and body is not None:
            return self._tokenize(body)
        if self.path == "/v1/completions" and body is not None and behaviour.shows != "chat":
            if int(body.get("logprobs") or 0) > behaviour.max_top:
                return 400, {"error": {"message": f"logprobs: at most {behaviour.max_top}"}}
            return 200, self.script.complete(body, number)
        return 404, {"error": {"message": "no such page"}}

    def _tokenize(self, body: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        """Tokens of a text, as either of two servers gives them."""
        kind, model = self.script.behaviour.tokenizer, self.script.model
        if kind == "llama.cpp" and "content" in body:
            ids = model.encode(body["content"])
            return 200, {"tokens": [{"id": i, "piece": _spell_piece(model.pieces[i])} for i in ids]}
        if kind == "vllm" and "prompt" in body:
            from recollect.models.tokens.token_spelling import build_byte_alphabet

            letter_of = {byte: letter for letter, byte in build_byte_alphabet().items()}
            ids = model.encode(body["prompt"])
            words = ["".join(letter_of[chr(byte)] for byte in model.pieces[i]) for i in ids]
            return 200, {"count": len(ids), "tokens": ids, "token_strs": words}
        return 404, {"error": {"message": "no such page"}}

    def _fail(self, failure: str) -> None:
        """Fail in one of the ways of `ERRORS`."""
        if failure == "close":
            self.close_connection = True
            self.connection.close()
        elif failure == "half":
            self.wfile.write(b'HTTP/1.1 200 OK\r\ncontent-length: 1000\r\n\r\n{"choices": [')
            self.close_connection = True
        elif failure == "no json":
            self._send(200, b"<html><body>Sign in to the network</body></html>")
        else:
            status = int(failure[:3])
            page = b"<html><body>Bad gateway</body></html>" if "html" in failure else b'{"error": "busy"}'
            self._send(status, page)

    def _send(self, status: int, data: bytes) -> None:
        """Send a whole answer."""
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(data)))
        if status == 429 and self.script.behaviour.retry_after is not None:
            self.send_header("retry-after", str(self.script.behaviour.retry_after))
        self.end_headers()
        self.wfile.write(data)


def _spell_piece(piece: bytes) -> str | list[int]:
    """A piece as a scripted server writes it: bytes where they are no text."""
    try:
        return piece.decode()
    except UnicodeDecodeError:
        return list(piece)
