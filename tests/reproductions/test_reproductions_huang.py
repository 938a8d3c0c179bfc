"""What the documentation says of EMA and small sets, and what the paper's printed scores come to."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

from recollect.audits.removal.ema import compute_ema_rho

ROOT = Path(__file__).resolve().parents[2]


def fewest_misses(size):
    """How many records of a set must fail all thresholds for EMA to call it removed."""
    return next(missed for missed in range(size + 1) if compute_ema_rho(np.arange(size) >= missed) <= 0.1)


def test_the_documentation_says_how_many_records_ema_needs_to_reject_a_small_set():
    text = (ROOT / "docs" / "methods" / "removal.md").read_text(encoding="utf-8")
    said = re.search(r"of (\d+) records (\d+) must fail all thresholds, of (\d+) still (\d+)", text)
    assert said is not None
    first, misses, second, still = map(int, said.groups())
    assert (fewest_misses(first), fewest_misses(second)) == (misses, still)


def test_no_votes_at_all_are_enough_to_reject_the_smallest_set():
    assert compute_ema_rho(np.zeros(5, dtype=np.bool_)) == 0


@pytest.fixture
def counting(load):
    return load("huang2021", "counting")


def test_cells_that_cannot_be_read_are_not_counted(counting):
    printed = {100: {"M1": 0.91, "M6": 0.82}, 90: {}, 60: {"M1": 1.02}}
    assert counting.printed_wrong(counting.of_sets(printed, ("M1",)), lambda rho: rho >= 1) == "1 of 2"
    assert counting.printed_wrong(counting.of_sets(printed, ("M6",)), lambda rho: rho < 1) == "1 of 1"


def test_the_far_set_is_counted_by_size_and_apart_from_sets_of_the_same_source(counting, load):
    part = load("huang2021", "tables").MNIST
    rows = [
        {"query": query, "size": size, "method": method, "outcome": "found"}
        for query in (part.outside, part.far)
        for size in part.query_sizes
        for method in ("ema", "calibrated")
    ]
    printed = {size: {"never in": (0.2,), "far, never in": (0.0, 0.0)} for size in part.query_sizes}
    found = {figure.what: figure for figure in counting.by_size(part, rows, printed)}
    far, near = found["ema, 5 images far, never in: wrong, of 1"], found["ema, 5 images never in: wrong, of 1"]
    assert (far.ours, far.paper) == (1, "0 of 2")
    assert (near.ours, near.paper) == (1, "1 of 1")
