"""Numbers and their owners: a user on both sides is one user, and nothing is lost on the way."""

from __future__ import annotations

import numpy as np
import pytest

from recollect.stats import OwnedValues
from recollect.stats.groups import make_group, make_groups, require_finite
from recollect.testing.refusals import refused


def test_plain_numbers_have_an_owner_each():
    a, b = make_groups([1.0, 2.0], [3.0, 4.0, 5.0])
    assert (a.population, a.user_count, b.user_count, a.is_clustered) == (5, 2, 3, False)
    assert set(a.users).isdisjoint(b.users)


def test_a_user_on_both_sides_is_one_user():
    a, b = make_groups(OwnedValues(np.array([1, 2, 3]), ["x", "y", "x"]), OwnedValues(np.array([9]), ["x"]))
    assert a.population == 2
    assert a.per_user(a.values).tolist() == [4, 2]
    assert b.per_user(b.values).tolist() == [9, 0]


def test_named_and_unnamed_owners_never_meet():
    a, b = make_groups(OwnedValues(np.array([1, 2]), [0, 1]), [5.0, 6.0])
    assert a.population == 4
    assert set(a.users).isdisjoint(b.users)
    c, d = make_groups([5.0, 6.0], OwnedValues(np.array([1, 2]), np.array([0, 1])))
    assert c.population == 4
    assert set(c.users).isdisjoint(d.users)


def test_a_side_may_be_given_again():
    a, _ = make_groups(OwnedValues(np.array([1, 2, 3]), ["x", "y", "x"]), [1.0])
    assert make_group(a).per_user(a.values).tolist() == [4, 2]


def test_missing_values_are_refused():
    with refused("missing_values"):
        make_groups([1.0, np.nan, 2.0], [1.0])


def test_infinite_values_are_refused_where_sums_are_taken():
    with refused("infinite_values"):
        require_finite(make_group([-np.inf, 2.0]), purpose="A mean")


def test_owners_must_be_as_many_as_values():
    with pytest.raises(ValueError, match="2 values but 1 owners"):
        make_group(OwnedValues(np.array([1.0, 2.0]), ["x"]))
