"""What was spent on a server: reserved on disk before a request is sent, so that no kill makes it forget.

A request that was under way at a kill counts as spent, at the most that it can have cost.
"""

from __future__ import annotations

import json
import weakref
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Self

from recollect.errors import ModelError
from recollect.files import Journal
from recollect.models.endpoint.settings import Budget, Prices

LEDGER: Final = "ledger.journal"
_OPEN: weakref.WeakValueDictionary[Path, Ledger] = weakref.WeakValueDictionary()
"""Ledgers of this process: models of one server share theirs, because a journal has one writer."""


@dataclass(frozen=True, kw_only=True)
class Charge:
    """What requests cost."""

    requests: int = 1
    input_tokens: int = 0
    output_tokens: int = 0

    def __add__(self, other: Charge) -> Charge:
        return Charge(
            requests=self.requests + other.requests,
            input_tokens=self.input_tokens + other.input_tokens,
            output_tokens=self.output_tokens + other.output_tokens,
        )

    def __sub__(self, other: Charge) -> Charge:
        return Charge(
            requests=self.requests - other.requests,
            input_tokens=self.input_tokens - other.input_tokens,
            output_tokens=self.output_tokens - other.output_tokens,
        )

    @property
    def tokens(self) -> int:
        """Read and generated together."""
        return self.input_tokens + self.output_tokens


NOTHING: Final = Charge(requests=0)


class Ledger:
    """What was spent on one server from one work folder, in all runs."""

    def __init__(self, folder: Path, owner: str) -> None:
        """Open it, for this process alone.

        Args:
            folder: Where it is kept.
            owner: The address of the server.

        Raises:
            StoreError: Another run uses it, or it is damaged.
        """
        stack = ExitStack()
        self._journal = stack.enter_context(Journal.open(folder / LEDGER, owner=owner, flush_seconds=5.0))
        self._total, self._reserved = NOTHING, dict[int, Charge]()
        self._next = 0
        for entry in self._journal:
            self._apply(*json.loads(entry))
        self._reserved.clear()  # what was under way when an earlier run ended will never be settled, and counts
        self._close = weakref.finalize(self, stack.close)

    @classmethod
    def share(cls, folder: Path, owner: str) -> Self:
        """The ledger in a folder; the one that is open in this process, if there is one."""
        path = folder.resolve()
        found = _OPEN.get(path)
        if found is None:
            found = _OPEN[path] = cls(folder, owner)
        assert isinstance(found, cls)  # noqa: S101 - only ledgers are kept there
        return found

    @property
    def spent(self) -> Charge:
        """All that was spent, and all that is under way at the most it may cost."""
        return self._total

    def reserve(self, charge: Charge, budget: Budget, prices: Prices) -> int:
        """Reserve the most that a request may cost; from here on it counts, whatever happens.

        Raises:
            ModelError: It would exceed the budget.
        """
        if reason := find_excess(self._total + charge, budget, prices):
            raise build_budget_error(reason, self._total)
        number = self._next
        self._write(number, charge)
        return number

    def settle(self, number: int, charge: Charge) -> None:
        """Put what a request really cost in the place of what was reserved."""
        if self._reserved.get(number) != charge:
            self._write(number, charge)
        del self._reserved[number]

    def _write(self, number: int, charge: Charge) -> None:
        """Write an entry and take it into account."""
        entry = [number, charge.requests, charge.input_tokens, charge.output_tokens]
        self._journal.append(json.dumps(entry, separators=(",", ":")).encode())
        self._apply(*entry)

    def _apply(self, number: int, requests: int, input_tokens: int, output_tokens: int) -> None:
        """Take an entry into account: the last one of a request holds."""
        charge = Charge(requests=requests, input_tokens=input_tokens, output_tokens=output_tokens)
        self._total += charge - self._reserved.get(number, NOTHING)
        self._reserved[number] = charge
        self._next = max(self._next, number + 1)


def find_excess(total: Charge, budget: Budget, prices: Prices) -> str | None:
    """Which budget the ledger's total would exceed, in words; None if it is within all of them."""
    cost = prices.compute(total.input_tokens, total.output_tokens)
    if budget.requests is not None and total.requests > budget.requests:
        return f"{budget.requests:,} requests (--budget-requests)"
    if budget.tokens is not None and total.tokens > budget.tokens:
        return f"{budget.tokens:,} tokens (--budget-tokens)"
    if budget.cost is not None and cost > budget.cost:
        return f"{budget.cost:,g} (--budget-cost)"
    return None


def build_budget_error(limit: str, spent: Charge) -> ModelError:
    """Why the ledger lets no request be sent."""
    error = ModelError(
        f"The budget of {limit} does not allow another request to this server. Spent from this work folder so far: "
        f"requests {spent.requests:,}, tokens {spent.tokens:,}.",
        do="Raise it and run the same again: what was answered is kept and not requested again.",
        code="budget_spent",
    )
    error.final = True
    return error
