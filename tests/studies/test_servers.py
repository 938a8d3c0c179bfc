"""The study of servers: which ranks rounding explains."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "studies" / "servers"))
from compare import Competition


def build_competition(logits, true):
    """A token among its competitors."""
    distance = np.array(logits) - logits[true]
    nearest = distance[np.argsort(np.abs(distance), kind="stable")]
    return Competition(0.0, int((distance > 0).sum()), nearest)


def test_a_rank_may_move_among_competitors_within_the_tolerance_alone():
    own = build_competition([3.0, 2.0, 1.0 + 1e-5, 1.0, 1.0 - 3e-5, 0.5], true=3)
    assert own.rank == 4
    assert own.get_interval(2e-5) == (3, 4)
    assert own.get_interval(4e-5) == (3, 5)
    assert own.find_tolerance({3, 4}) == pytest.approx(1e-5)
    assert own.find_tolerance({4, 5}) == pytest.approx(3e-5)
    assert own.find_tolerance({9}) == float("inf")


def test_ties_count_against_the_token_and_leave_both_ranks():
    own = build_competition([1.0, 1.0, 0.0], true=0)
    assert (own.rank, own.get_interval(0.0)) == (2, (1, 2))
