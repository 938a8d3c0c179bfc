"""Bootstrap over users: the same from the same stream, and as wide as theory says."""

from __future__ import annotations

import numpy as np
import pytest

from recollect.stats import OwnedValues, binomial_p, bootstrap, mean
from recollect.stats.groups import make_group
from recollect.streams import stream
from recollect.testing.refusals import refused


def _mean_of(values):
    return lambda drawn: drawn @ values / drawn.sum(axis=1)


def test_the_same_stream_gives_the_same_interval_and_another_does_not():
    values, strata = np.arange(30.0), np.zeros(30, dtype=int)
    first, again, other = (bootstrap(_mean_of(values), strata, rng=stream(seed, "draws")) for seed in (0, 0, 1))
    assert first == again != other


def test_draws_keep_the_size_of_every_group():
    strata = np.repeat([0, 1, 2], [6, 2, 1])
    seen = []

    def keep(drawn):
        seen.append(drawn.copy())
        return drawn @ np.arange(9.0)

    bootstrap(keep, strata, rng=np.random.default_rng(0), draws=500)
    drawn = np.concatenate(seen)
    assert len(drawn) == 500
    assert (drawn[:, :6].sum(axis=1) == 6).all()
    assert (drawn[:, 6:8].sum(axis=1) == 2).all()
    assert (drawn[:, 8] == 1).all()
    assert drawn.mean(axis=0) == pytest.approx(np.ones(9), abs=0.15)


def test_blocks_that_fit_into_memory_make_up_all_draws():
    blocks = []

    def count(drawn):
        blocks.append(len(drawn))
        return drawn[:, 0]

    bootstrap(count, np.zeros(10, dtype=int), rng=np.random.default_rng(0), draws=2000, width=10_000)
    assert sum(blocks) == 2000
    assert max(blocks) == 400


def test_width_agrees_with_students_interval():
    values = np.random.default_rng(2).normal(0, 1, 60)
    drawn = bootstrap(_mean_of(values), np.zeros(60, dtype=int), rng=np.random.default_rng(0), draws=20_000)
    student = mean(values).interval
    assert (drawn.low, drawn.high) == pytest.approx((student.low, student.high), abs=0.02)


def test_draws_that_all_agree_are_refused():
    with refused("constant_statistic"):
        bootstrap(_mean_of(np.ones(10)), np.zeros(10, dtype=int), rng=np.random.default_rng(0))


@pytest.mark.parametrize("users", [1, 2, 7])
def test_few_users_are_refused(users):
    with refused("too_few_users"):
        bootstrap(_mean_of(np.arange(users)), np.zeros(users, dtype=int), rng=np.random.default_rng(0))


def test_interval_by_user_covers_as_often_as_it_claims():
    rng = np.random.default_rng(3)
    runs, misses = 400, 0
    owners = np.repeat(np.arange(20), 6)
    for _ in range(runs):
        group = make_group(OwnedValues(np.repeat(rng.normal(0, 1, 20), 6) + rng.normal(0, 1, 120), owners))
        sums, sizes = group.per_user(group.values), group.sizes
        drawn = bootstrap(lambda d, s=sums, n=sizes: (d @ s) / (d @ n), np.zeros(20, int), rng=rng, draws=400)
        misses += 0 not in drawn
    assert binomial_p(misses, runs, 0.05) > 0.001, misses / runs
