"""The guard's false alarms in worlds where the audited and the controls are exchangeable, of many kinds."""

import zlib
from dataclasses import replace

import numpy as np
import pytest

from recollect.audits.common.guard import check_comparable
from recollect.corpora.record import Record
from recollect.stats.significance import binomial_p, superuniformity_p

LETTERS = [chr(0x4E00 + i) for i in range(400)]
WORDS = [f"word{i}" for i in range(400)]


def draw_users(rng, count, *, signs, space, heavy=True):
    """Users with a topic and words of their own; numbers of records and lengths with heavy tails."""
    users = []
    for i in range(count):
        own = rng.integers(0, 400, 10)
        records = min(60, 1 + int(rng.pareto(1.2))) if heavy else 5
        texts = []
        for _ in range(records):
            length = 1 + int(min(200, 6 * rng.pareto(1.5))) if heavy else 12
            chosen = np.where(rng.random(length) < 0.4, rng.choice(own, length), rng.integers(0, 400, length))
            texts.append(space.join(signs[i] for i in chosen))
        users.append([Record(id=f"{i}-{j}", user=f"u{i}", text=text) for j, text in enumerate(texts)])
    return users


def draw_world(kind, k, n, seed):
    """Exchangeable sides: who is audited is decided last."""
    rng = np.random.default_rng([seed, k, n])
    letters = kind == "without spaces"
    users = draw_users(
        rng, k + n, signs=LETTERS if letters else WORDS, space="" if letters else " ", heavy=kind != "equal"
    )
    if kind == "ties":
        users = [
            [replace(r, text=["yes", "no", "well"][zlib.crc32(r.id.encode()) % 3]) for r in each] for each in users
        ]
    if kind == "copies":
        pool = [r.text for each in users for r in each]
        users = [
            [replace(r, text=pool[rng.integers(len(pool))]) if rng.random() < 0.5 else r for r in each]
            for each in users
        ]
    if kind == "empty":
        users = [[replace(r, text="") for r in each] if rng.random() < 0.3 else each for each in users]
    order = rng.permutation(k + n)
    sides = order[:k], order[k:]
    return [[r for i in side for r in users[i]] for side in sides]


def count_alarms(kind, k, n, runs):
    found = [check_comparable(*draw_world(kind, k, n, seed), by="user", seed=seed) for seed in range(runs)]
    smallest = [min(check.p_value for check in each.guard.checks) for each in found]
    return sum(not each.comparable for each in found), smallest, [each.blind_p for each in found]


@pytest.mark.parametrize(
    ("kind", "k", "n"),
    [
        ("equal", 3, 40),
        ("heavy", 1, 19),
        ("heavy", 3, 40),
        ("without spaces", 3, 19),
        ("ties", 3, 40),
        ("copies", 1, 40),
        ("empty", 3, 40),
    ],
)
def test_no_more_false_alarms_than_stated(kind, k, n):
    runs = 40
    alarms, _, _ = count_alarms(kind, k, n, runs)
    assert binomial_p(alarms, runs, 0.05) > 0.001


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["equal", "heavy", "without spaces", "ties", "copies", "empty"])
@pytest.mark.parametrize("k", [1, 3, 20])
@pytest.mark.parametrize(("n", "runs"), [(19, 400), (40, 400), (200, 200), (1000, 40)])
def test_the_rate_holds_at_every_level(kind, k, n, runs):
    alarms, smallest, blind = count_alarms(kind, k, n, runs)
    assert binomial_p(alarms, runs, 0.05) > 1e-4
    assert superuniformity_p(smallest) > 1e-4
    assert superuniformity_p(blind) > 1e-4


def test_the_interval_of_the_blind_baseline_holds_a_half_as_often_as_it_claims():
    found = [check_comparable(*draw_world("equal", 10, 30, seed), by="user", seed=seed).blind_auc for seed in range(40)]
    missed = sum(0.5 not in each.interval for each in found)
    assert binomial_p(missed, len(found), 0.05) > 0.001
