"""User-level privacy: whoever writes much counts no more than whoever writes little."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import nn

from recollect.models.architectures import RecurrentConfig, RecurrentLM
from recollect.recipes.data.sequence_layouts import lay_out_records
from recollect.recipes.data.sequences import SpecialTokens, TokenTable
from recollect.recipes.private.per_record_gradients import get_gradients, get_trained_parameters
from recollect.recipes.private.privacy_terms import PrivacyTerms
from recollect.recipes.private.private_update import PrivateMechanism
from recollect.recipes.private.unit_gradients import UserUnitGradients, group_sequences_by_user
from recollect.recipes.recipe import Privacy
from recollect.recipes.training.update import TrainingStep
from recollect.testing.refusals import refused

MARKS = SpecialTokens(padding=0, before=(2,), after=(3,))
CLIP = 0.05
WAYS = [
    Privacy(unit="user", noise=0.0, update="gradient"),
    Privacy(unit="user", noise=0.0, update="fedavg", local_epochs=2, local_batch_size=2, local_learning_rate=0.5),
]
BOTH = pytest.mark.parametrize("way", WAYS, ids=lambda way: way.update)


def sequences(owners: list[int], times: int = 1):
    """The texts of these owners, each `times` as often."""
    rng = np.random.default_rng(0)
    found = [[2, *rng.integers(4, 12, rng.integers(2, 9)), 3] for _ in owners]
    repeated = [text for text in found for _ in range(times)]
    tokens = TokenTable(flat=np.concatenate(repeated).astype(np.int32), offsets=np.cumsum([0, *map(len, repeated)]))
    return lay_out_records(tokens, np.repeat(np.array(owners, np.int32), times), MARKS, length=30)


def model() -> RecurrentLM:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(5)
        return RecurrentLM(RecurrentConfig(vocab_size=12, embedding=6, units=8)).double()


def step(*users: int) -> TrainingStep:
    return TrainingStep(number=0, starts_epoch=True, indices=np.array(users, dtype=np.int64), rate=1.0)


def updates(texts, way: Privacy, *users: int) -> list[torch.Tensor]:
    """Each user's update as one long row, before clipping."""
    network = model()
    contributions = UserUnitGradients(model=network, sequences=texts, privacy=way, seed=0)
    return [
        torch.cat([get_gradients(parameter).flatten() for parameter in get_trained_parameters(network)])
        for _ in contributions.iter_contributions(step(*users))
    ]


def change(texts, way: Privacy, *users: int, noise: float = 0.0) -> torch.Tensor:
    """How far one private step with these users moves the weights."""
    network = model()
    before = torch.cat([parameter.detach().flatten() for parameter in network.parameters()])
    terms = PrivacyTerms(unit="user", units=3, rate=1.0, steps=1, noise=noise, clip=CLIP, delta=0.1, method="rdp")
    optimiser = torch.optim.SGD(network.parameters(), lr=1.0)
    mechanism = PrivateMechanism(model=network, optimiser=optimiser, terms=terms, seed=0)
    for _ in UserUnitGradients(model=network, sequences=texts, privacy=way, seed=0).iter_contributions(step(*users)):
        mechanism.add()
    mechanism.release(0, 1.0)
    return torch.cat([parameter.detach().flatten() for parameter in network.parameters()]) - before


@BOTH
def test_doubling_a_users_texts_does_not_enlarge_the_clipped_update(way):
    once, twice, often = (sequences([0, 0, 1, 2], times) for times in (1, 2, 20))
    sizes = [float(change(texts, way, 0).norm()) for texts in (once, twice, often)]
    assert sizes[0] == pytest.approx(CLIP / 3, rel=1e-3)  # the bound is reached, over the expected three users
    assert max(sizes) <= CLIP / 3 * (1 + 1e-9)


@BOTH
def test_no_user_moves_the_weights_by_more_than_the_bound_whoever_else_is_drawn(way):
    texts = sequences([0] * 12 + [1, 1, 2])
    everybody, without = change(texts, way, 0, 1, 2, noise=2.0), change(texts, way, 1, 2, noise=2.0)
    assert float((everybody - without).norm()) <= CLIP / 3 * (1 + 1e-6)
    assert float((everybody - without).norm()) > 0.9 * CLIP / 3


def test_a_users_gradient_is_that_of_the_mean_loss_over_all_their_tokens():
    texts, network = sequences([0, 1, 0, 0]), model()
    batch = texts.build_batch(np.array([0, 2, 3]), lambda: np.random.default_rng(0))
    logits = network(**batch.inputs).logits
    nn.functional.cross_entropy(logits.flatten(0, 1), batch.targets.flatten()).backward()
    expected = torch.cat([parameter.grad.flatten() for parameter in network.parameters()])
    torch.testing.assert_close(updates(texts, WAYS[0], 0)[0], expected)


def test_a_heavy_user_is_read_in_parts_and_summed():
    texts = sequences([0], times=300)
    torch.testing.assert_close(updates(texts, WAYS[0], 0)[0], updates(sequences([0]), WAYS[0], 0)[0])


def test_local_training_is_plain_sgd_on_the_users_texts_and_leaves_the_model_alone():
    texts, network = sequences([0, 1, 0, 0]), model()
    way = Privacy(unit="user", noise=0.0, update="fedavg", local_epochs=3, local_batch_size=9, local_learning_rate=0.2)
    contributions = UserUnitGradients(model=network, sequences=texts, privacy=way, seed=0)
    for _ in contributions.iter_contributions(step(0)):
        found = torch.cat([get_gradients(parameter).flatten() for parameter in get_trained_parameters(network)])
    for parameter, expected in zip(network.parameters(), model().parameters(), strict=True):
        assert torch.equal(parameter, expected)
    twin = model()
    optimiser = torch.optim.SGD(twin.parameters(), lr=0.2)
    for _ in range(3):
        batch = texts.build_batch(np.array([0, 2, 3]), lambda: np.random.default_rng(0))
        loss = nn.functional.cross_entropy(twin(**batch.inputs).logits.flatten(0, 1), batch.targets.flatten())
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
    pairs = zip(model().parameters(), twin.parameters(), strict=True)
    expected = torch.cat([(then - now).detach().flatten() for then, now in pairs])
    torch.testing.assert_close(found, expected)


def test_one_local_step_is_the_gradient_times_the_local_learning_rate():
    texts = sequences([0, 1, 0])
    way = Privacy(unit="user", noise=0.0, update="fedavg", local_batch_size=9, local_learning_rate=0.25)
    torch.testing.assert_close(updates(texts, way, 0)[0], 0.25 * updates(texts, WAYS[0], 0)[0])


def test_a_cap_on_sequences_draws_some_anew_each_round():
    texts = sequences([0] * 30)
    way = Privacy(unit="user", noise=0.0, most_sequences=4)
    network = model()
    contributions = UserUnitGradients(model=network, sequences=texts, privacy=way, seed=0)
    symbols = set()
    for number in range(6):
        drawn = TrainingStep(number=number, starts_epoch=False, indices=np.array([0]), rate=1.0)
        symbols |= {count for _, count in contributions.iter_contributions(drawn)}
    assert max(symbols) <= 4 * 10
    assert len(symbols) > 1


def test_sequences_that_hold_several_peoples_texts_are_refused():
    with refused("joined_users"):
        group_sequences_by_user(np.array([0, -1], dtype=np.int32))
