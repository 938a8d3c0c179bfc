"""Streams of random numbers depend on their own name and on nothing else."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from recollect.streams import derive_seed, stream

names = st.lists(st.text(alphabet="abc/17", max_size=4), min_size=1, max_size=3)


@given(names, names)
def test_streams_of_different_names_have_different_seeds(one, other):
    assert (derive_seed(0, *one) == derive_seed(0, *other)) == (one == other)


def test_neighbouring_streams_are_not_correlated():
    draws = np.array([stream(0, "shadow", i).standard_normal(2000) for i in range(20)])
    correlation = np.corrcoef(draws)[np.triu_indices(20, 1)]
    assert np.abs(correlation).max() < 5 / np.sqrt(2000)


def test_a_stream_is_the_same_on_every_machine():
    assert stream(3, "mask", "abc").integers(0, 1000, 4).tolist() == [162, 903, 176, 291]
