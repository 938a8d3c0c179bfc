"""Predicted runs, held and written down, against a plain list."""

from __future__ import annotations

import math

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from recollect.audits.leakage.run_store import ROW, RunStore, select_best

PLACES = st.lists(
    st.tuples(
        st.sampled_from([1, 3]),
        st.integers(0, 5),
        st.integers(0, 9),
        st.integers(0, 9),
        st.integers(0, 9),
        st.just(1),
        st.sampled_from([0.5, 1.0]),
        st.sampled_from([0.5, 2.0, 4.0, math.nan]),
    ),
    max_size=40,
)


def gain(row):
    return -math.inf if math.isnan(row[7]) else row[7] - row[6]


@settings(deadline=None, max_examples=150)
@given(PLACES, st.lists(st.booleans(), min_size=6, max_size=6), st.sampled_from([1, 7, 1000]))
def test_the_rows_of_chosen_runs_come_back_and_the_best_of_each_are_found(drawn, chosen, held):
    store = RunStore(held)
    for begin in range(0, len(drawn), 3):
        store.add(np.array(drawn[begin : begin + 3], dtype=ROW))
    rows = store.select(np.array(chosen))
    expected = [row for row in drawn if chosen[row[1]]]
    assert [repr(row) for row in rows.tolist()] == [repr(row) for row in expected]
    best, sizes = select_best(rows)
    groups = {}
    for row in expected:
        groups.setdefault(row[:2], []).append(row)
    assert sizes == {key: len(each) for key, each in groups.items()}
    most = {key: max(map(gain, each)) for key, each in groups.items()}
    assert sorted(map(repr, best.tolist())) == sorted(repr(row) for row in expected if gain(row) == most[row[:2]])
