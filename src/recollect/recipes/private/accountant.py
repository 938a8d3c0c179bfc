"""Privacy accounting through Opacus: how much was spent, how much noise a budget needs, how far a budget reaches.

Two data sets are neighbours if one holds one unit more (a training sequence, or a user); units are drawn
independently (Poisson sampling). Accountants: `prv` (numerical composition, Gopi et al. 2021, tight; its upper bound
is given) and `rdp` (Rényi, Mironov 2017, looser, what older papers print).
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Literal

import numpy as np
from opacus.accountants import PRVAccountant, RDPAccountant, create_accountant
from opacus.accountants.utils import get_noise_multiplier

from recollect.errors import PlanError

Method = Literal["prv", "rdp"]
History = list[tuple[float, float, int]]
"""Runs of equal steps: noise multiplier, sampling rate, number."""

ORDERS: tuple[float, ...] = (
    *(1.1, 1.2, 1.3, 1.4, 1.5, 1.6, 1.8, 2, 2.2, 2.5, 2.75, 3, 3.25, 3.5, 3.75),
    *(4 + half / 2 for half in range(14)),
    *range(11, 64),
    *(64, 80, 96, 128, 160, 192, 256, 320, 384, 448, 512, 768, 1024),
)
"""The Rényi orders tried: up to 1024, since small budgets want more than the 63 at which Opacus stops, and fewer near
1, where each takes long."""
_COARSE_ORDERS = (1.25, 1.5, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 256, 512)
"""Enough to know how large ε is roughly."""
_EPSILON_RESOLUTION = 1 / 400
"""How finely `prv` computes, as a share of a rough ε; its answer is about that much too large."""

MAX_PRV_EPSILON = 500.0
"""The largest ε that `prv` counts here."""


def choose_delta(units: int) -> float:
    """The δ that an accountant uses: a tenth of one over the number of units.

    >>> choose_delta(5000)
    2e-05
    """
    return 1 / (10 * units)


def compute_epsilon(*, noise: float, rate: float, steps: int, delta: float, method: Method = "prv") -> float:
    """The ε that an accountant counts for so many equal steps; infinite without noise.

    >>> round(compute_epsilon(noise=1.0, rate=0.04, steps=300, delta=1e-4), 1)
    3.9
    """
    return _compute_history_epsilon(((noise, rate, steps),), delta, method)


@lru_cache(maxsize=256)
def _compute_history_epsilon(history: tuple[tuple[float, float, int], ...], delta: float, method: Method) -> float:
    """The ε that Opacus' accountant counts for a history."""
    if not history:
        return 0.0
    if any(noise == 0 for noise, _, _ in history):
        return math.inf
    if method == "rdp":
        return _compute_rdp_epsilon(history, delta, ORDERS)
    prv = PRVAccountant()
    prv.history = list(history)
    rough = _compute_rdp_epsilon(history, delta, _COARSE_ORDERS)
    _check_countable(rough)
    with _silence_accountant_warnings():
        return float(prv.get_epsilon(delta, eps_error=max(rough * _EPSILON_RESOLUTION, 1e-6)))


def _compute_rdp_epsilon(history: tuple[tuple[float, float, int], ...], delta: float, orders: Sequence[float]) -> float:
    """The ε that an accountant counts for a history by the best of these Rényi orders."""
    rdp = RDPAccountant()
    rdp.history = list(history)
    with _silence_accountant_warnings():
        return float(rdp.get_epsilon(delta, alphas=list(orders)))


def _check_countable(epsilon: float) -> None:
    """Refuse an ε that the accountant `prv` cannot count: it overflows or runs for hours.

    Raises:
        PlanError: If ε is too large for it.
    """
    if epsilon > MAX_PRV_EPSILON:
        raise PlanError(
            f"The accountant `prv` counts up to ε = {MAX_PRV_EPSILON:g}, and not to {epsilon:.4g}.",
            do="Set privacy.accountant=rdp, or choose a smaller epsilon: so large a one gives no protection.",
            code="epsilon_too_large",
        )


@contextmanager
def _silence_accountant_warnings() -> Iterator[None]:
    """Silence two warnings of Opacus' accountants that do not touch the bound.

    That the best order was the last one tried, and a logarithm of zero in a branch that a rate of 1 does not take.
    """
    with warnings.catch_warnings(), np.errstate(divide="ignore"):
        warnings.filterwarnings("ignore", message="Optimal order")
        yield


def find_noise(*, epsilon: float, rate: float, steps: int, delta: float, method: Method = "prv") -> float:
    """By the accountant: the least noise multiplier with which so many steps stay within the budget.

    Raises:
        PlanError: If no amount of noise that helps anybody would do, or the accountant cannot count so far.
    """
    if method == "prv":
        _check_countable(epsilon)
    exact = {"alphas": list(ORDERS)} if method == "rdp" else {"eps_error": epsilon * _EPSILON_RESOLUTION}
    try:
        with _silence_accountant_warnings():
            noise = float(
                get_noise_multiplier(
                    target_epsilon=epsilon,
                    target_delta=delta,
                    sample_rate=rate,
                    steps=steps,
                    accountant=method,
                    epsilon_tolerance=epsilon / 100,
                    **exact,
                )
            )
    except ValueError as error:
        raise PlanError(
            f"No noise keeps {steps} steps at rate {rate:g} within ε = {epsilon:g}, δ = {delta:g}: {error}",
            do="Allow a larger epsilon or delta, fewer epochs, or smaller batches.",
            code="epsilon_too_small",
        ) from error
    # The search and the final account round differently; the budget is kept by the account.
    while compute_epsilon(noise=noise, rate=rate, steps=steps, delta=delta, method=method) > epsilon:
        noise *= 1.001
    return noise


def count_steps_within(*, epsilon: float, noise: float, rate: float, steps: int, delta: float, method: Method) -> int:
    """By the accountant: how many of `steps` steps stay within the budget; 0 if not even the first does."""
    low, high = 0, steps + 1
    while high - low > 1:
        middle = (low + high) // 2
        within = compute_epsilon(noise=noise, rate=rate, steps=middle, delta=delta, method=method) <= epsilon
        low, high = (middle, high) if within else (low, middle)
    return low


@dataclass(kw_only=True)
class AccountantLedger:
    """What has been spent so far; goes into every checkpoint together with the weights that spent it."""

    delta: float
    method: Method = "prv"
    accountant: Any = field(init=False, repr=False)
    """Opacus' own; its hook counts each noisy step before the weights change."""

    def __post_init__(self) -> None:
        self.accountant = create_accountant(self.method)

    @property
    def history(self) -> History:
        """Runs of equal steps so far."""
        return [(float(noise), float(rate), int(steps)) for noise, rate, steps in self.accountant.history]

    @property
    def steps(self) -> int:
        """How many steps were counted."""
        return sum(steps for _, _, steps in self.history)

    def compute_epsilon(self) -> float:
        """The ε spent so far."""
        return _compute_history_epsilon(tuple(self.history), self.delta, self.method)

    def get_state(self) -> dict[str, Any]:
        """What it must be given back to continue."""
        return {"history": [list(run) for run in self.history]}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Resume from what `get_state` returned."""
        self.accountant.history = [(noise, rate, steps) for noise, rate, steps in state["history"]]
