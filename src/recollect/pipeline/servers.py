"""Models behind servers: what a plan sends them, and what its result says of them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from recollect.models.limited import Limited
from recollect.models.model import Model
from recollect.results.result import EndpointFacts, Finding, Note, Result

if TYPE_CHECKING:
    # needs an HTTP client, which only those have who use a server
    from recollect.corpora.record import Record
    from recollect.models.endpoint.endpoint_model import Endpoint


@dataclass(frozen=True, kw_only=True)
class ServerForecast:
    """What a plan sends to the server of one model, for records that were not scored before."""

    host: str
    requests: int
    tokens: int
    cost: float
    """In the currency of the prices; 0 without prices."""
    seconds: float
    spent_requests: int
    """Requests that were sent from this work folder so far, the probe included."""
    excess: str | None
    """The budget that is too small for all of this, in words."""
    search_steps: int = 0
    """Steps that a search takes besides, at most: each costs a request or more, so that the sum is not known before."""


def get_endpoint(model: Model) -> Endpoint | None:
    """The model behind a server, if it is one."""
    whole = model.model if isinstance(model, Limited) else model
    return whole if getattr(whole, "remote", False) else None  # type: ignore[return-value]


def forecast_server(
    model: Endpoint, records: Iterable[Record], *, corpora: int, search_steps: int = 0
) -> ServerForecast:
    """What scoring these records of so many corpora costs, and a search of so many steps at most."""
    forecast = model.forecast(records, corpora=corpora)
    return ServerForecast(
        host=model.endpoint.host,
        requests=forecast.charge.requests,
        tokens=forecast.charge.tokens,
        cost=forecast.cost,
        seconds=forecast.seconds,
        spent_requests=model.spent.requests,
        excess=forecast.excess,
        search_steps=search_steps,
    )


def confirm_models(models: Mapping[str, Model]) -> None:
    """Make sure that no model behind a server has changed since it was scored.

    Raises:
        ModelError: One has.
    """
    for model in models.values():
        if (endpoint := get_endpoint(model)) is not None:
            endpoint.confirm()


def build_server_facts(model: Model) -> EndpointFacts | None:
    """What a result says of the server of a model."""
    endpoint = get_endpoint(model)
    if endpoint is None:
        return None
    info = endpoint.endpoint
    return EndpointFacts(
        url=info.url,
        served_name=info.served_name,
        server=info.server,
        generation=info.generation,
        noise_floor=info.noise_floor,
    )


def add_server_notes(result: Result, models: Mapping[str, Model]) -> Result:
    """The result with where texts were sent to, and with the noise floor beside every finding."""
    found = {role: endpoint for role, model in models.items() if (endpoint := get_endpoint(model)) is not None}
    if not found:
        return result
    notes = [*result.notes, *(_build_server_note(role, endpoint) for role, endpoint in sorted(found.items()))]
    floor = max(endpoint.endpoint.noise_floor for endpoint in found.values())
    return result.replace(
        notes=tuple(notes), findings=tuple(_add_server_noise(each, floor) for each in result.findings)
    )


def _build_server_note(role: str, endpoint: Endpoint) -> Note:
    """The note that names the server to which the texts of a model were sent."""
    info = endpoint.endpoint
    return Note(
        code="texts_sent_to_server",
        text=f"The texts that the {role} model scored were sent to {info.host}. Its access was probed: "
        f"{endpoint.access}. Identical requests were answered within {info.noise_floor:.2g} nats (the noise floor).",
    )


def _add_server_noise(finding: Finding, floor: float) -> Finding:
    """A finding whose method names the noise floor of the server."""
    method = f"{finding.method}; noise floor of the server {floor:.2g} nats per token"
    return finding.model_copy(update={"method": method})
