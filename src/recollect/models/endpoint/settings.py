"""How a server is used: its tokenizer and key, what may be spent on it, and how politely it is asked."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from recollect.checks import check_at_least
from recollect.errors import PlanError

MILLION: Final = 1_000_000


@dataclass(frozen=True, kw_only=True)
class Budget:
    """The most that may be spent on one server from one work folder, over all runs; None for no limit."""

    requests: int | None = None
    tokens: int | None = None
    """Read and generated together."""
    cost: float | None = None
    """In the currency of the prices."""


@dataclass(frozen=True, kw_only=True)
class Prices:
    """What a server charges."""

    input_tokens: float = 0.0
    """For a million tokens read."""
    output_tokens: float = 0.0
    """For a million tokens generated."""

    def compute(self, input_tokens: int, output_tokens: int) -> float:
        """The price of so many tokens.

        >>> Prices(input_tokens=2.0, output_tokens=8.0).compute(1_000_000, 500_000)
        6.0
        """
        return (self.input_tokens * input_tokens + self.output_tokens * output_tokens) / MILLION


@dataclass(frozen=True, kw_only=True)
class Pace:
    """How long is waited, and how often something is tried again."""

    timeout: float = 120.0
    """Seconds that one answer may take."""
    connect_timeout: float = 20.0
    """Seconds that a connection may take, encryption included."""
    attempts: int = 8
    """How often one request is sent before it has failed."""
    first_wait: float = 0.5
    """Seconds before the first repetition, doubled each time, of which a random share is waited."""
    longest_wait: float = 300.0
    """Seconds that one request may wait for its repetitions in all; a server that wants more is left alone."""
    failures: int = 40
    """Requests in a row that may fail, whichever they are, before the server is left alone."""
    recheck: int = 1000
    """Requests after which the probe is repeated."""


@dataclass(frozen=True, kw_only=True)
class EndpointSettings:
    """All that is set of a server besides its address."""

    tokenizer: str | None = None
    """A folder or hf:NAME of the model's tokenizer; the server's own if None."""
    key_variable: str | None = None
    """The environment variable that holds the key."""
    allow_http: bool = False
    """Whether texts may go to another machine unencrypted."""
    top_logprobs: int = 20
    """Ranked tokens that are requested per position; fewer where the server gives fewer."""
    connections: int = 8
    """Requests that are under way at once, at most."""
    budget: Budget = field(default_factory=Budget)
    prices: Prices = field(default_factory=Prices)
    pace: Pace = field(default_factory=Pace)
    work: Path = Path(".recollect")
    """The work folder, which keeps what was answered and what was spent."""

    def __post_init__(self) -> None:
        check_at_least(1, top_logprobs=self.top_logprobs, connections=self.connections)
        if self.budget.cost is not None and self.prices == Prices():
            raise PlanError(
                "A budget in money is given, and no prices.",
                do="Give --price-input and --price-output (price_input=, price_output=), per million tokens.",
                code="budget_without_prices",
            )
