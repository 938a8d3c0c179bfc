"""Settings check themselves: what is refused, and by which code."""

from __future__ import annotations

import math

import pytest

from recollect.errors import PlanError
from recollect.settings import at_least, between, one_of
from recollect.testing.refusals import refused


@pytest.mark.parametrize("value", [0, 1, 95, math.nan])
def test_a_value_outside_the_open_interval_is_refused(value):
    with refused("out_of_range", PlanError):
        between(0, 1, confidence=value)


@pytest.mark.parametrize("value", [0, -1, math.nan])
def test_a_value_below_the_least_is_refused(value):
    with refused("out_of_range", PlanError):
        at_least(1, patterns=value)


def test_an_unknown_choice_is_refused_with_the_nearest_known_one():
    with refused("unknown_choice", PlanError) as refusal:
        one_of(["user", "record"], by="users")
    assert "'user'" in refusal.error.do
