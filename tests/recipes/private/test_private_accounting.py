"""Accounting: ε agrees with Google's dp-accounting, like with like; noise is found; nothing is forgotten."""

from __future__ import annotations

import math

import dp_accounting
import pytest
from dp_accounting.pld import PLDAccountant
from dp_accounting.rdp import RdpAccountant

from recollect.recipes.private.accountant import (
    ORDERS,
    AccountantLedger,
    choose_delta,
    compute_epsilon,
    count_steps_within,
    find_noise,
)
from recollect.testing.refusals import refused

pytestmark = pytest.mark.usefixtures("counted_once")

SETTINGS = [
    {"rate": 0.04, "noise": 1.0, "steps": 300, "delta": 1e-4},  # Song and Shmatikov 2019
    {"rate": 0.05, "noise": 4.0, "steps": 100, "delta": 1e-5},
    {"rate": 1.0, "noise": 10.0, "steps": 50, "delta": 1e-5},  # everybody every time
    {"rate": 0.001, "noise": 2.0, "steps": 1000, "delta": 1e-5},  # a small ε
    *(
        pytest.param(setting, marks=pytest.mark.slow)
        for setting in (
            {"rate": 0.003, "noise": 0.6, "steps": 30_000, "delta": 1e-9},  # the δ of Carlini et al. 2018
            {"rate": 0.01, "noise": 0.8, "steps": 1000, "delta": 1e-5},
            {"rate": 0.02, "noise": 0.3, "steps": 500, "delta": 1e-6},  # hardly any noise
        )
    ),
]


def google(accountant, *, rate: float, noise: float, steps: int, delta: float) -> float:
    event = dp_accounting.PoissonSampledDpEvent(rate, dp_accounting.GaussianDpEvent(noise))
    return accountant.compose(dp_accounting.SelfComposedDpEvent(event, steps)).get_epsilon(delta)


@pytest.mark.parametrize("setting", SETTINGS)
def test_prv_agrees_with_googles_privacy_loss_distributions_and_never_promises_more(setting):
    found, expected = compute_epsilon(**setting, method="prv"), google(PLDAccountant(), **setting)
    assert 0.999 * expected <= found <= 1.02 * expected


@pytest.mark.parametrize("setting", SETTINGS)
def test_rdp_agrees_with_googles_rdp(setting):
    expected = google(RdpAccountant(orders=list(ORDERS)), **setting)
    # With hardly any noise Google leaves out the orders near 1 as they do not converge there; ours are smaller then.
    close = pytest.approx(expected, rel=0.02) if setting["noise"] >= 0.5 else pytest.approx(expected, rel=0.7)
    assert compute_epsilon(**setting, method="rdp") == close
    assert compute_epsilon(**setting, method="rdp") <= 1.02 * google(
        RdpAccountant(), **setting
    )  # with orders of its own


@pytest.mark.parametrize("method", ["prv", "rdp"])
@pytest.mark.parametrize("epsilon", [4.129, *(pytest.param(far, marks=pytest.mark.slow) for far in (0.3, 60.0))])
def test_the_noise_that_is_found_keeps_to_the_budget_and_wastes_little(method, epsilon):
    setting = {"rate": 0.04, "steps": 300, "delta": 1e-4, "method": method}
    noise = find_noise(epsilon=epsilon, **setting)
    assert 0.98 * epsilon <= compute_epsilon(noise=noise, **setting) <= epsilon


def test_a_budget_that_no_noise_can_keep_is_refused():
    with refused("epsilon_too_small"):
        find_noise(epsilon=1e-8, rate=1.0, steps=100_000, delta=1e-9, method="rdp")


@pytest.mark.parametrize("method", ["prv", "rdp"])
def test_how_far_a_budget_reaches_is_where_the_next_step_would_pass_it(method):
    setting = {"noise": 0.9, "rate": 0.1, "delta": 1e-5, "method": method}
    last = count_steps_within(epsilon=3.0, steps=100, **setting)
    assert compute_epsilon(steps=last, **setting) <= 3.0 < compute_epsilon(steps=last + 1, **setting)
    assert count_steps_within(epsilon=3.0, steps=last - 1, **setting) == last - 1
    assert count_steps_within(epsilon=0.01, steps=100, **setting) == 0


def test_without_noise_nothing_is_guaranteed_and_without_steps_nothing_is_spent():
    assert compute_epsilon(noise=0.0, rate=0.1, steps=1, delta=1e-5) == math.inf
    assert AccountantLedger(delta=1e-5).compute_epsilon() == 0.0


def test_delta_is_below_one_over_the_number_of_units():
    assert choose_delta(5000) < 1 / 5000


@pytest.mark.parametrize("method", ["prv", "rdp"])
def test_a_ledger_continues_from_its_own_words(method):
    """A run that was killed must not forget what it spent, and changing noise is added up."""
    first, whole = AccountantLedger(delta=1e-5, method=method), AccountantLedger(delta=1e-5, method=method)
    for ledger, noises in ((first, [1.0] * 5), (whole, [1.0] * 9 + [2.0] * 3)):
        for noise in noises:
            ledger.accountant.step(noise_multiplier=noise, sample_rate=0.1)
    second = AccountantLedger(delta=1e-5, method=method)
    second.restore(first.get_state())
    for noise in [1.0] * 4 + [2.0] * 3:
        second.accountant.step(noise_multiplier=noise, sample_rate=0.1)
    assert second.history == whole.history
    assert second.steps == 12
    assert second.compute_epsilon() == whole.compute_epsilon() > first.compute_epsilon()


def test_a_budget_too_large_for_prv_is_refused_at_once_and_rdp_counts_it():
    setting = {"rate": 0.5, "steps": 120, "delta": 1e-3}
    with refused("epsilon_too_large"):
        find_noise(epsilon=1e6, **setting)
    with refused("epsilon_too_large"):
        compute_epsilon(noise=0.01, **setting)
    noise = find_noise(epsilon=1e4, method="rdp", **setting)
    assert 0.9e4 <= compute_epsilon(noise=noise, method="rdp", **setting) <= 1e4
