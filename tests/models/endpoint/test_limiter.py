"""How many requests are under way at once: never more than allowed, fewer after an overload, heavy ones alone."""

from __future__ import annotations

import time

import anyio
import pytest

from recollect.models.endpoint.limiter import Limiter


def run(limiter, weights, *, held=0.005, is_over=lambda: False):
    """Send requests of these weights at once: the most that were under way together, and what these weighed."""
    now, most = [], (0, 0.0)

    async def hold(weight):
        nonlocal most
        async with limiter.slot(weight, is_over):
            now.append(weight)
            most = max(most[0], len(now)), max(most[1], sum(now))
            await anyio.sleep(held)
            now.remove(weight)

    async def main():
        async with anyio.create_task_group() as group:
            for weight in weights:
                group.start_soon(hold, weight)

    anyio.run(main)
    assert not now
    return most


def test_half_of_the_slots_are_used_at_first_and_all_after_answers():
    limiter = Limiter(8, heaviest=100)
    assert run(limiter, [1] * 30)[0] == 4
    for _ in range(100):
        limiter.report_success()
    assert run(limiter, [1] * 30)[0] == 8


def test_an_overload_halves_the_slots_and_one_is_always_left():
    limiter = Limiter(8, heaviest=100)
    limiter.report_overload(0.0)
    assert run(limiter, [1] * 10)[0] == 2
    for _ in range(10):
        limiter.report_overload(0.0)
    assert run(limiter, [1] * 4)[0] == 1


@pytest.mark.parametrize(
    ("weights", "most", "weight"), [([4] * 10, 2, 8), ([50, 60, 50], 1, 60), ([1, 9, 1, 9], 2, 10)]
)
def test_what_is_under_way_never_weighs_more_than_allowed_unless_it_is_alone(weights, most, weight):
    assert run(Limiter(8, heaviest=10), weights) == (most, weight)


@pytest.mark.parametrize("is_over", [False, True])
def test_a_pause_is_kept_unless_nothing_is_to_be_sent_any_more(is_over):
    limiter, pause = Limiter(4, heaviest=100), 3.0 if is_over else 0.1
    limiter.report_overload(pause)
    began = time.monotonic()
    run(limiter, [1], held=0.0, is_over=lambda: is_over)
    assert (time.monotonic() - began < pause) == is_over
