"""Counting the users of runs, against a twin that compares every window of every text."""

from __future__ import annotations

from collections import defaultdict

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from recollect.audits.leakage.occurrences import NOBODY, OccurrenceMatcher, count_occurrences

WORDS = st.sampled_from(["a", "b", "A", "é", "e\u0301", "ß", "ſ", "12"])
TEXT = st.lists(WORDS, max_size=12).flatmap(
    lambda words: st.sampled_from([" ", "\n", "\u00a0", " \t "]).map(lambda space: space.join(words))
)
RUNS = st.lists(st.lists(WORDS, min_size=1, max_size=6).map(" ".join), max_size=12, unique=True)


def twin(runs, texts):
    """Users and times of each run, by looking at every window of every text."""
    users, times = defaultdict(set), defaultdict(int)
    for user, text in texts:
        words = text.split()
        for run in runs:
            length = len(run.split())
            for i in range(len(words) - length + 1):
                if words[i : i + length] == run.split():
                    users[run].add(user)
                    times[run] += 1
    return [users[run] for run in runs], [times[run] for run in runs]


@settings(deadline=None, max_examples=200)
@given(RUNS, st.lists(st.tuples(st.sampled_from("xyz"), TEXT), max_size=8), st.sampled_from([1, 7, 1000]))
def test_counts_are_those_of_whoever_compares_every_window(runs, texts, block):
    found = count_occurrences(runs, texts, block=block, held=4)
    users, times = twin(runs, texts)
    assert found.users.tolist() == [len(each) for each in users]
    assert found.times.tolist() == times
    owners = [None if place == NOBODY else found.names[place] for place in found.owner]
    assert owners == [next(iter(each)) if len(each) == 1 else None for each in users]


def test_one_user_who_owns_everything_and_runs_inside_runs():
    found = count_occurrences(["to be", "be", "to be or"], [("ann", "to be or not to be"), ("ann", ""), ("ann", "to")])
    assert (found.users.tolist(), found.times.tolist()) == ([1, 1, 1], [2, 2, 1])


def test_no_run_crosses_the_border_of_a_record():
    assert count_occurrences(["to be"], [("ann", "to"), ("ann", "be")]).times.tolist() == [0]


def test_capitals_and_composed_letters_are_kept_apart():
    assert count_occurrences(["Ann", "é"], [("x", "ann e\u0301")]).times.tolist() == [0, 0]


@pytest.mark.parametrize("held", [1, 100, 1 << 20])
def test_what_does_not_fit_into_memory_is_counted_all_the_same(held):
    rng = np.random.default_rng(0)
    runs = [f"w{i} w{i + 1}" for i in range(50)]
    texts = [
        (f"u{rng.integers(40)}", " ".join(f"w{i}" for i in range(int(a), int(a) + 9)))
        for a in rng.integers(45, size=300)
    ]
    users, times = twin(runs, texts)
    found = count_occurrences(runs, texts, block=50, held=held)
    assert found.users.tolist() == [len(each) for each in users]
    assert found.times.tolist() == times


def test_runs_with_equal_hashes_are_distinguished_word_by_word():
    """With all words of the same value, windows of one length share a hash; only comparing tells them apart."""
    matcher = OccurrenceMatcher([np.array([1, 2])])
    matcher._values[1:] = 7
    rebuilt = OccurrenceMatcher.__new__(OccurrenceMatcher)
    rebuilt.__dict__.update(matcher.__dict__)
    rebuilt._sorted = rebuilt._compute_keys(rebuilt._values[rebuilt._words], rebuilt._offsets, rebuilt._lengths)
    rebuilt._prefixes = [rebuilt._build_prefixes(2)]
    places, runs = rebuilt(np.array([2, 1, 2, 0, 1, 1]))
    assert (places.tolist(), runs.tolist()) == ([1], [0])
