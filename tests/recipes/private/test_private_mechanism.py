"""One noisy step: each unit bounded, the sum, the noise, the divisor, the count, and the optimiser behind it."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import settings as trials
from hypothesis import strategies as st
from scipy import stats
from torch import nn

from recollect.recipes.private.per_record_gradients import get_trained_parameters, set_gradients
from recollect.recipes.private.privacy_terms import PrivacyTerms
from recollect.recipes.private.private_update import PrivateMechanism, PrivatePoissonSampler

CLIP = 0.7


def terms(**changed) -> PrivacyTerms:
    settings = {"units": 50, "rate": 0.2, "steps": 20, "noise": 1.3, "clip": CLIP, "delta": 1e-3, "method": "rdp"}
    return PrivacyTerms(unit="record", **{**settings, **changed})


def mechanism(size: int = 3, *, seed: int = 0, optimiser=torch.optim.SGD, **changed) -> PrivateMechanism:
    model = nn.Linear(size, size, dtype=torch.float64)
    nn.init.zeros_(model.weight)
    nn.init.zeros_(model.bias)
    return PrivateMechanism(
        model=model, optimiser=optimiser(model.parameters(), lr=1.0), terms=terms(**changed), seed=seed
    )


def put(model: nn.Module, units: torch.Tensor) -> None:
    """Leave gradients [units, all numbers] with the parameters."""
    at = 0
    for parameter in get_trained_parameters(model):
        rows = units[:, at : at + parameter.numel()]
        set_gradients(parameter, rows.reshape(len(units), *parameter.shape))
        at += parameter.numel()


def moved(model: nn.Module) -> torch.Tensor:
    """All parameters in a row; they began at zero."""
    return torch.cat([parameter.detach().flatten() for parameter in get_trained_parameters(model)])


def clipped(unit: torch.Tensor, bound: float = CLIP) -> torch.Tensor:
    """The obvious way."""
    return unit if unit.norm() <= bound else unit * (bound / unit.norm())


@trials(deadline=None, max_examples=30)
@given(st.lists(st.floats(1e-3, 1e4), min_size=1, max_size=6), st.integers(1, 4))
def test_without_noise_a_step_is_minus_the_sum_of_clipped_gradients_over_the_expected_number(scales, part):
    stepping = mechanism(noise=0.0)
    units = torch.randn(len(scales), 12, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
    units *= torch.tensor(scales, dtype=torch.float64).unsqueeze(1)
    for begin in range(0, len(units), part):
        put(stepping.model, units[begin : begin + part])
        stepping.add()
    stepping.release(0, 1.0)
    expected = -sum(clipped(unit) for unit in units) / 10  # 50 units at a rate of 0.2
    torch.testing.assert_close(moved(stepping.model), expected, rtol=1e-3, atol=1e-9)


@trials(deadline=None, max_examples=30)
@given(st.floats(1e-6, 1e12))
def test_no_unit_moves_the_weights_by_more_than_its_share(scale):
    stepping = mechanism(noise=0.0)
    put(stepping.model, scale * torch.ones(1, 12, dtype=torch.float64))
    stepping.add()
    stepping.release(0, 1.0)
    assert float(moved(stepping.model).norm()) <= CLIP / 10 * (1 + 1e-9)


def test_the_noise_has_the_stated_standard_deviation():
    """Chi-square over 40,000 numbers: noise that is 3 % off would be found out, and so would a wrong divisor."""
    stepping = mechanism(size=200)
    put(stepping.model, torch.zeros(4, 200 * 201, dtype=torch.float64))
    stepping.add()
    stepping.release(0, 1.0)
    noise = moved(stepping.model).numpy() / (1.3 * CLIP / 10)
    low, high = stats.chi2.ppf([1e-4, 1 - 1e-4], len(noise))
    assert low < (noise**2).sum() < high
    assert high / low < 1.03**4
    assert stats.kstest(noise, "norm").pvalue > 1e-4


def test_the_noise_does_not_depend_on_how_many_were_drawn_nor_in_how_many_parts():
    found = []
    for parts in ([], [3], [1, 2, 4]):
        stepping = mechanism()
        for count in parts:
            put(stepping.model, torch.zeros(count, 12, dtype=torch.float64))
            stepping.add()
        stepping.release(5, 1.0)
        found.append(moved(stepping.model))
    assert torch.equal(found[0], found[1])
    assert torch.equal(found[0], found[2])
    assert found[0].abs().min() > 0


def test_every_step_and_every_seed_has_its_own_noise():
    def noise(seed: int, number: int) -> torch.Tensor:
        stepping = mechanism(seed=seed)
        stepping.release(number, 1.0)
        return moved(stepping.model)

    assert torch.equal(noise(0, 3), noise(0, 3))
    assert not torch.equal(noise(0, 3), noise(0, 4))
    assert not torch.equal(noise(0, 3), noise(1, 3))


def test_secret_noise_cannot_be_repeated_and_is_as_large():
    found = []
    for _ in range(2):
        stepping = mechanism(size=100, secret_noise=True)
        stepping.release(0, 1.0)
        found.append(moved(stepping.model))
    assert not torch.equal(found[0], found[1])
    assert float(found[0].std()) == pytest.approx(1.3 * CLIP / 10, rel=0.05)


@pytest.mark.parametrize(
    "optimiser", [torch.optim.SGD, torch.optim.RMSprop, torch.optim.Adam, torch.optim.Adamax], ids=lambda o: o.__name__
)
def test_any_optimiser_sees_the_noisy_gradient_alone(optimiser):
    stepping, noisy = mechanism(optimiser=optimiser), mechanism()
    twin = nn.Linear(3, 3, dtype=torch.float64)
    nn.init.zeros_(twin.weight)
    nn.init.zeros_(twin.bias)
    plain = optimiser(twin.parameters(), lr=0.01)
    for number in range(3):
        units = torch.randn(4, 12, dtype=torch.float64, generator=torch.Generator().manual_seed(number))
        before = moved(noisy.model).clone()
        for which, rate in ((stepping, 0.01), (noisy, 1.0)):
            put(which.model, units)
            which.add()
            which.release(number, rate)
        gradient = before - moved(noisy.model)  # one step of plain SGD shows what the optimiser was given
        for parameter, part in zip(twin.parameters(), gradient.split([9, 3]), strict=True):
            parameter.grad = part.view(parameter.shape)
        plain.step()
    torch.testing.assert_close(moved(stepping.model), moved(twin))


def test_each_step_is_counted_once_however_many_parts_it_had():
    stepping = mechanism()
    for number, parts in enumerate((0, 1, 5)):
        for _ in range(parts):
            put(stepping.model, torch.zeros(2, 12, dtype=torch.float64))
            stepping.add()
        assert stepping.ledger.steps == number
        stepping.release(number, 0.1)
    assert stepping.ledger.history == [(1.3, 0.2, 3)]
    assert stepping.ledger.compute_epsilon() == stepping.terms.compute_epsilon_after(3) > 0


def test_a_step_is_counted_before_the_weights_change():
    """If the optimiser dies halfway the expense must already are in the ledger."""
    stepping = mechanism()

    def dying(closure=None):
        raise KeyboardInterrupt

    stepping.optimiser.step = dying
    with pytest.raises(KeyboardInterrupt):
        stepping.release(0, 1.0)
    assert stepping.ledger.steps == 1


def test_state_and_ledger_survive_together():
    whole, first, second = (mechanism(optimiser=torch.optim.Adam) for _ in range(3))
    for number in range(4):
        whole.release(number, 0.1)
    for number in range(2):
        first.release(number, 0.1)
    second.model.load_state_dict(first.model.state_dict())
    second.restore(*first.get_state())
    for number in range(2, 4):
        second.release(number, 0.1)
    assert torch.equal(moved(whole.model), moved(second.model))
    assert second.ledger.history == whole.ledger.history


def test_units_are_drawn_independently_at_the_rate():
    sampler = PrivatePoissonSampler(terms=terms(units=200, rate=0.1, steps=400), seed=3, epochs=1)
    draws = list(sampler.iter_batches(0))
    assert len(draws) == sampler.steps == 400
    sizes = np.array([len(draw) for draw in draws])
    assert stats.binomtest(int(sizes.sum()), 400 * 200, 0.1).pvalue > 1e-3
    assert sizes.var() == pytest.approx(200 * 0.1 * 0.9, rel=0.25)  # fixed batches would have none
    times = np.bincount(np.concatenate(draws), minlength=200)
    assert stats.chisquare(times).pvalue > 1e-3
    assert all(len(set(draw)) == len(draw) for draw in draws)


def test_draws_follow_from_seed_and_epoch_and_may_be_empty():
    sampler = PrivatePoissonSampler(terms=terms(units=5, rate=0.05, steps=60), seed=3, epochs=2)
    again, other = list(sampler.iter_batches(0)), list(sampler.iter_batches(1))
    assert [draw.tolist() for draw in sampler.iter_batches(0)] == [draw.tolist() for draw in again]
    assert [draw.tolist() for draw in again] != [draw.tolist() for draw in other]
    assert any(len(draw) == 0 for draw in again)
    secret = PrivatePoissonSampler(terms=terms(units=50, secret_noise=True), seed=3, epochs=1)
    assert [draw.tolist() for draw in secret.iter_batches(0)] != [draw.tolist() for draw in secret.iter_batches(0)]
