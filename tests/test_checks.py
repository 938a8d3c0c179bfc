"""Settings check themselves: what is refused, and by which code."""

from __future__ import annotations

import math

import pytest

from recollect.checks import check_at_least, check_between, check_one_of
from recollect.errors import PlanError
from recollect.testing.refusals import refused


@pytest.mark.parametrize("value", [0, 1, 95, math.nan])
def test_a_value_outside_the_open_interval_is_refused(value):
    with refused("out_of_range", PlanError):
        check_between(0, 1, confidence=value)


@pytest.mark.parametrize("value", [0, -1, math.nan])
def test_a_value_below_the_least_is_refused(value):
    with refused("out_of_range", PlanError):
        check_at_least(1, patterns=value)


def test_an_unknown_choice_is_refused_with_the_nearest_known_one():
    with refused("unknown_choice", PlanError) as refusal:
        check_one_of(["user", "record"], by="users")
    assert "'user'" in refusal.error.do
