"""Generations of a model behind a server: answers between two probes that agree are of one model, and never mixed.

The probe is repeated on resume, after so many requests, and at the end of what is scored. Where it answers outside the
noise floor, the answers since the last agreement are dropped, and the next run begins a new generation.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Final

from recollect import labels
from recollect.digests import digest
from recollect.errors import ModelError, StoreError
from recollect.files import make_private_folder, read_checked_json, write_checked_json
from recollect.models.endpoint.client import Request
from recollect.models.endpoint.doubts import build_doubt
from recollect.models.endpoint.kept_answers import KeptAnswers
from recollect.models.endpoint.methods import WITHHELD, Method, Row
from recollect.models.endpoint.probe import Probe, Prober, compare
from recollect.models.endpoint.server_facts import ServerFacts
from recollect.models.endpoint.texts import TextMethod
from recollect.models.endpoint.tokens import ServerTokens, Tokens, load_local_tokens

STORED: Final = "probe.json"
_FORMAT: Final = 1


@dataclass(frozen=True, kw_only=True)
class Generation:
    """One model as it was when it was probed, and what it answered since."""

    number: int
    probe: Probe
    prober: Prober
    kept: KeptAnswers
    name: str
    """How the user named the model."""

    @property
    def tokens(self) -> Tokens | None:
        """The tokenizer, which asks for what is not kept."""
        tokens = self.probe.tokens
        return replace(tokens, ask=self.ask) if isinstance(tokens, ServerTokens) else tokens

    def ask(self, requests: Sequence[Request]) -> list[Any]:
        """The answers to requests; those that are kept are not sent again.

        Raises:
            ModelError: A request failed, the budget is spent, or the model has changed.
        """
        missing = list({request.key: request for request in requests if request.key not in self.kept}.values())
        while missing:
            room = max(1, self.prober.settings.pace.recheck - self.kept.doubtful)
            part, missing = missing[:room], missing[room:]
            self.prober.client.send_all(part, lambda request, answer: self.kept.put(request.key, answer))
            if self.kept.doubtful >= self.prober.settings.pace.recheck:
                self.confirm()
        return [self.kept.get(request.key) for request in requests]

    def ask_rows(self, requests: Sequence[Request]) -> list[list[Row]]:
        """The rows of requests; tokens that the server withholds are looked up among the whole vocabulary.

        Raises:
            ModelError: As `ask`; or a token is withheld, and the vocabulary of the server is not known.
        """
        found: list[list[Row]] = self.ask(requests)
        withheld = [i for i, rows in enumerate(found) if rows == [WITHHELD]]
        method, size = self.probe.method, self.probe.facts.vocabulary
        if withheld and (size is None or not isinstance(method, Method)):
            raise build_doubt("logprobs_missing", "a token that ends within a character has no log-probability.")
        if withheld and size is not None and isinstance(method, Method):
            harmless = self.prober.get_ordinary_token(self.probe)
            lookups = self.ask([method.plan_lookup(requests[i], harmless, size) for i in withheld])
            for i, rows in zip(withheld, lookups, strict=True):
                found[i] = rows
        return found

    def confirm(self) -> None:
        """Repeat the probe, and vouch for the answers since the last one.

        Raises:
            ModelError: The model has changed; the answers since then are dropped.
        """
        if not self.kept.doubtful:
            return
        difference = find_difference(self.probe, self.prober)
        if difference is None:
            self.kept.confirm()
            return
        count = self.kept.doubtful
        self.kept.drop_doubtful()
        error = ModelError(
            f"The model {self.name!r} has changed while it was scored: {difference}",
            do=f"{count} answers since the last probe that agreed were dropped. Run the same again: if the change "
            "lasts, all is scored anew as the next generation.",
            code="model_changed",
        )
        error.final = True
        raise error


def open_generation(prober: Prober, folder: Path, name: str) -> Generation:
    """The generation that the server is in: the stored one, if the probe still answers so, or a new one.

    Args:
        prober: Probes the server.
        folder: Where this model's probe and answers are kept.
        name: How the user named the model.

    Raises:
        ModelError: The server cannot be used.
    """
    make_private_folder(folder)
    stored = _read_stored(folder)
    number = 0
    if stored is not None:
        number, probe = stored["generation"], _restore(stored, prober)
        kept = _open_answers(folder, number)
        if probe is not None and find_difference(probe, prober, facts=True) is None:
            kept.confirm()
            return Generation(number=number, probe=probe, prober=prober, kept=kept, name=name)
        kept.drop_doubtful()
        number += 1
    probe = prober.run()
    write_checked_json(folder / STORED, {"format": _FORMAT, "generation": number, **_describe(probe)})
    return Generation(number=number, probe=probe, prober=prober, kept=_open_answers(folder, number), name=name)


def find_difference(probe: Probe, prober: Prober, *, facts: bool = False) -> str | None:
    """How another generation of the model answers, in words; None if it is the same, beyond its noise.

    Args:
        probe: As it was.
        prober: Repeats it.
        facts: Also compare what the server says of the model.
    """
    if facts and prober.read_facts() != probe.facts:
        return "the server describes it otherwise."
    found = 0.0
    for _ in range(2):  # noise may be larger once; another model is different each time
        try:
            found = compare(probe.fingerprint, prober.read_fingerprint(probe.facts, probe.method, probe.tokens))
        except ValueError:
            return "its tokenizer is another one."
        if found <= probe.noise_floor:
            return None
    return f"the probe's texts differ by {found:.3g} nats, and the noise floor is {probe.noise_floor:.3g}."


def compute_digest(url: str, model: str, generation: Generation) -> str:
    """The address of one generation of a model, as it was probed."""
    described = _describe(generation.probe)
    return digest(labels.DIGEST_ENDPOINT, url, model, generation.number, json.dumps(described, sort_keys=True))


def _open_answers(folder: Path, number: int) -> KeptAnswers:
    """The answers of a generation."""
    return KeptAnswers.share(folder / f"answers-{number}.journal", owner=f"{folder.name} {number}")


def _read_stored(folder: Path) -> dict[str, Any] | None:
    """The stored probe of a generation; None if there is none."""
    if not (folder / STORED).is_file():
        return None
    advice = f"Delete '{folder}', and the server is probed and asked anew."
    stored: dict[str, Any] = read_checked_json(folder / STORED, do=advice, code="probe_damaged")
    if stored.get("format") != _FORMAT:
        raise StoreError(f"The probe in '{folder}' has another format.", do=advice, code="probe_format")
    return stored


def _describe(probe: Probe) -> dict[str, Any]:
    """The probe of a generation as it is stored."""
    tokens = probe.tokens
    return {
        "facts": probe.facts.listed,
        "method": asdict(probe.method),
        "tokens": None if tokens is None else {"identity": tokens.identity, "before": tokens.before},
        "dialect": tokens.dialect if isinstance(tokens, ServerTokens) else None,
        "fingerprint": [list(row) for row in probe.fingerprint],
        "noise": probe.noise,
        "agreed": probe.agreed,
    }


def _restore(stored: dict[str, Any], prober: Prober) -> Probe | None:
    """The probe of a generation as it was stored; None if the tokenizer is another one by now."""
    written = stored["method"]
    method = TextMethod(**written) if written["name"] in ("echo_text", "words") else Method(**written)
    tokens: Tokens | None = None
    if stored["tokens"] is not None:
        before = list(stored["tokens"]["before"])
        if stored["dialect"] is not None:
            tokens = ServerTokens(stored["dialect"], prober.model, before, prober.ask)
        elif prober.settings.tokenizer is not None:
            local = load_local_tokens(prober.settings.tokenizer)
            local.before, tokens = before, local
        if tokens is None or tokens.identity != stored["tokens"]["identity"]:
            return None
    facts = ServerFacts(listed=stored["facts"])
    prober.learn(facts, tokens)
    return Probe(
        facts=facts,
        method=method,
        tokens=tokens,
        fingerprint=tuple(stored["fingerprint"]),
        noise=stored["noise"],
        agreed=stored["agreed"],
    )
