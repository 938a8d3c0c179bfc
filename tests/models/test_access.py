"""Access is compared field by field and can only be lowered."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from recollect.models.access import Access

accesses = st.builds(
    Access,
    k=st.none() | st.integers(1, 5),
    logprob=st.sampled_from(["none", "shown", "any"]),
    distribution=st.booleans(),
    steps=st.booleans(),
)


@given(accesses, accesses)
def test_lowered_access_is_covered_by_both(one, other):
    low = one.lower(other)
    assert one.covers(low)
    assert other.covers(low)


@given(accesses, accesses)
def test_lowering_to_what_is_covered_gives_just_that(one, other):
    assert (one.lower(other) == other) == one.covers(other)


@given(accesses)
def test_full_access_covers_everything_and_a_label_is_covered_by_everything(access):
    assert Access.FULL.covers(access)
    assert access.covers(Access.LABEL)


def test_what_is_missing_is_said_in_words():
    assert Access.top(5).list_missing(Access.PROBABILITIES) == [
        "the rank of every token",
        "log-probabilities of any token",
        "the whole predictive distribution (entropy, logprob_std)",
    ]
