"""Axes: values are where they should, and round numbers are written along them."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from recollect.report.figures.scale import Scale

numbers = st.floats(-1e6, 1e6)


@settings(deadline=None, max_examples=100)
@given(values=st.lists(numbers, min_size=1, max_size=20))
@example(values=[0.0, 5e-324])
@example(values=[-5e-324, 0.0])
@example(values=[-5e-324, 100.0])
def test_an_axis_holds_all_values_and_a_few_round_numbers(values):
    scale = Scale.over(values, label="x")
    assert scale.low <= min(values) <= max(values) <= scale.high
    ticks = [value for value, _ in scale.ticks]
    assert 1 <= len(ticks) <= 8
    assert ((scale.to_unit(ticks) > -1e-6) & (scale.to_unit(ticks) < 1 + 1e-6)).all()
    assert len({words for _, words in scale.ticks}) == len(ticks)


def test_a_linear_axis_divides_evenly_and_a_logarithmic_one_by_powers():
    assert Scale(low=10, high=20).to_unit([10, 15, 20, 99, -5]).tolist() == [0, 0.5, 1, 1, 0]
    assert Scale(low=0.01, high=1, log=True).to_unit([0.01, 0.1, 1]) == pytest.approx([0, 0.5, 1])


def test_what_is_not_finite_does_not_move_the_ends():
    assert Scale.over([1.0, np.nan, 2.0, np.inf], label="x") == Scale.over([1.0, 2.0], label="x")
    assert Scale.over([np.nan], label="x").low == 0


def test_shares_are_written_as_percentages_and_places_by_name():
    assert [words for _, words in Scale(low=0, high=1, percent=True).ticks] == [
        "0 %",
        "20 %",
        "40 %",
        "60 %",
        "80 %",
        "100 %",
    ]
    assert Scale(low=0, high=2, named=((0.5, "controls"),)).ticks == ((0.5, "controls"),)


def test_a_constant_has_an_axis_around_it():
    scale = Scale.over([5.0, 5.0], label="x")
    assert scale.low <= 5 <= scale.high
    assert scale.low < scale.high
