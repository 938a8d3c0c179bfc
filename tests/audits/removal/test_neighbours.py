"""Neighbours: the nearest controls, found as by all pairs, and what their distances show."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as some

from recollect.audits.removal.neighbours import PEERS, find_neighbours, find_smallest_distances
from recollect.corpora.record import Record
from recollect.stats.significance import binomial_p


def test_neighbours_are_those_of_all_pairs(images):
    rng = np.random.default_rng(0)
    audited, controls = images(rng, 12), images(rng, 30, name="c")
    found = find_neighbours(audited, controls, 3)
    for place, record in enumerate(audited):
        same = [i for i, other in enumerate(controls) if other.label == record.label]
        by_hand = sorted(same, key=lambda i: np.linalg.norm(controls[i].array - record.array))[:3]
        assert found.audited[place].tolist() == by_hand
    for place, record in enumerate(controls):
        same = [i for i, other in enumerate(controls) if other.label == record.label and i != place]
        by_hand = sorted(same, key=lambda i: np.linalg.norm(controls[i].array - record.array))[:3]
        assert found.controls[place].tolist() == by_hand


@settings(deadline=None, max_examples=100)
@given(
    some.integers(1, 3), some.lists(some.lists(some.sampled_from([0, 1, 2, np.inf, np.nan]), min_size=5, max_size=5))
)
def test_the_smallest_are_those_of_a_stable_sort(count, rows):
    table = np.array(rows, dtype=np.float64).reshape(-1, 5)
    assert (
        find_smallest_distances(table, count).tolist() == np.argsort(table, axis=1, kind="stable")[:, :count].tolist()
    )


def test_records_like_no_control_are_far_and_alike_ones_hardly_ever(images):
    rng = np.random.default_rng(0)
    alike = np.concatenate([find_neighbours(images(rng, 40), images(rng, 60, name="c"), 2).far for _ in range(20)])
    assert alike.mean() < 0.1
    assert find_neighbours(images(rng, 40, shift=4), images(rng, 60, name="c"), 2).far.all()


def test_each_record_that_is_not_far_gives_its_controls_equal_weight(images):
    rng = np.random.default_rng(4)
    near = find_neighbours(images(rng, 7), images(rng, 50, name="c"), 2)
    by_hand = np.zeros(50)
    for chosen in near.audited[~near.far]:
        by_hand[chosen] += 1 / (2 * (~near.far).sum())
    assert near.nearest_weights == pytest.approx(by_hand)


def test_peers_are_the_controls_as_far_from_other_controls(images):
    rng = np.random.default_rng(4)
    near = find_neighbours(images(rng, 7), images(rng, 200, name="c"), 3)
    by_hand = np.zeros(200)
    order = sorted(range(200), key=lambda i: near.distances[1][i])
    kept = near.distances[0][~near.far]
    for far in kept:
        nearer = sum(near.distances[1] < far)
        first = min(max(nearer - PEERS // 2, 0), 200 - PEERS)
        by_hand[order[first : first + PEERS]] += 1 / (PEERS * len(kept))
    assert near.peer_weights == pytest.approx(by_hand)
    assert near.corrected_weights.sum() == pytest.approx(1)


def test_sets_of_another_kind_are_noticed_and_alike_ones_hardly_ever(images):
    rng = np.random.default_rng(0)
    alarms = [find_neighbours(images(rng, 40), images(rng, 60, name="c"), 3).shifted for _ in range(60)]
    assert binomial_p(sum(alarms), 60, 0.01) >= 0.001
    assert find_neighbours(images(rng, 40, shift=4), images(rng, 60, name="c"), 3).shifted


def test_texts_without_spaces_are_near_by_their_characters():
    """Sentences of which none occurs twice would all be equally far from each other as whole words."""
    rng = np.random.default_rng(0)

    def write(name, count, first):
        letters = rng.integers(first, first + 40, size=(count, 12)).tolist()
        return [Record(id=f"{name}{i}", text="".join(map(chr, row)), label=0) for i, row in enumerate(letters)]

    controls = write("c", 60, 0x4E00)
    assert find_neighbours(write("a", 40, 0x4E00), controls, 2).far.mean() < 0.1
    assert find_neighbours(write("b", 40, 0x5E00), controls, 2).shifted
