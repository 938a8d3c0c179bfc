"""Batches hold every item once, within the budget, and the budget shrinks instead of failing."""

from types import SimpleNamespace

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from recollect.models.hugging_face.batches import (
    TokenBudget,
    compute_token_budget,
    is_out_of_memory,
    measure_batch_memory,
    plan_batches,
)
from recollect.testing.refusals import refused

LENGTHS = st.lists(st.integers(0, 50), max_size=40)


@settings(deadline=None)
@given(LENGTHS, st.integers(1, 200))
def test_every_item_is_in_one_batch_and_no_batch_is_over_the_budget(lengths, budget):
    found = plan_batches(lengths, budget)
    assert sorted(np.concatenate([[], *found]).tolist()) == list(range(len(lengths)))
    for batch in found:
        assert len(batch) == 1 or len(batch) * max(lengths[i] for i in batch) <= budget


@settings(deadline=None)
@given(LENGTHS, st.integers(1, 200))
def test_batches_go_from_the_longest_to_the_shortest(lengths, budget):
    order = [lengths[i] for batch in plan_batches(lengths, budget) for i in batch]
    assert order == sorted(lengths, reverse=True)


def test_the_budget_follows_from_model_and_machine_alone():
    assert compute_token_budget(per_token=2**20, room=2**30 + 5) == 1024
    assert compute_token_budget(per_token=2**20, room=-1) == 64
    assert measure_batch_memory(torch.device("cpu")) == measure_batch_memory(torch.device("cpu")) > 2**28
    small, large = (SimpleNamespace(parameters=list, dtype=torch.float32, device=torch.device("cpu")) for _ in range(2))
    small.config = SimpleNamespace(get_text_config=lambda: SimpleNamespace(hidden_size=64))
    large.config = SimpleNamespace(get_text_config=lambda: SimpleNamespace(hidden_size=768))
    assert TokenBudget.of(small).tokens == 8192
    assert TokenBudget.of(large).tokens == TokenBudget.of(large).tokens == 512
    assert TokenBudget.of(large, vocabulary=10**9).tokens == 64


@pytest.mark.parametrize(
    "error",
    [
        torch.OutOfMemoryError("CUDA out of memory."),
        RuntimeError("[enforce fail at alloc_cpu.cpp] DefaultCPUAllocator: not enough memory: you tried to allocate"),
        MemoryError(),
    ],
)
@settings(deadline=None)
@given(st.lists(st.integers(1, 20), max_size=30), st.integers(20, 60))
def test_a_batch_that_does_not_fit_is_cut_and_nothing_is_lost(error, lengths, memory):
    asked = []

    def ask(batch):
        if len(batch) * max(lengths[i] for i in batch) > memory:
            raise error
        asked.append(batch)
        return [lengths[i] for i in batch]

    budget = TokenBudget(400)
    found = {int(i): n for batch, part in budget.map_batches(lengths, ask) for i, n in zip(batch, part, strict=True)}
    assert found == dict(enumerate(lengths))
    assert budget.tokens == 400 or budget.tokens <= 200


def test_one_item_that_does_not_fit_is_a_clear_error():
    def ask(batch):
        raise torch.OutOfMemoryError("CUDA out of memory.")

    with refused("out_of_memory"):
        list(TokenBudget(100).map_batches([7, 5, 3], ask))


def test_other_errors_are_not_taken_for_a_lack_of_memory():
    def ask(batch):
        raise RuntimeError("shapes do not match")

    with pytest.raises(RuntimeError, match="shapes do not match"):
        list(TokenBudget(100).map_batches([7], ask))
    assert not is_out_of_memory(RuntimeError("shapes do not match"))


def test_a_real_allocation_that_fails_is_recognised():
    with pytest.raises(RuntimeError) as caught:
        torch.empty(2**55, dtype=torch.uint8)
    assert is_out_of_memory(caught.value)
