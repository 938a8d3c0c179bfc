"""Ranks by how often others write a word: a slow twin, what is not shown, bands with too few words."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from recollect.audits.provenance.word_alignment import WordRanks
from recollect.audits.provenance.word_frequencies import BANDS, MIN_WORDS, build_frequency_table


def some_words(rank, count, user, users=4):
    rank, zeros = np.asarray(rank, dtype=np.float64), np.zeros(users, np.int64)
    return WordRanks(
        users=tuple(f"u{i}" for i in range(users)),
        user=np.asarray(user),
        text=np.zeros(len(rank), np.int64),
        texts=np.ones(users, np.int64),
        log_rank=np.stack([np.log(rank), np.zeros(len(rank))]),
        max_rank=np.stack([rank, np.ones(len(rank))]),
        frequency=np.asarray(count),
        unknown=zeros,
        incomplete=zeros,
    )


def lower_median(ranks):
    middle = sorted(ranks)[(len(ranks) - 1) // 2]
    return None if np.isinf(middle) else middle


def slowly(rank, count, user, chosen, chance):
    rows = []
    for low, high in zip(BANDS, (*BANDS[1:], np.inf), strict=True):
        own = [r for r, c, u in zip(rank, count, user, strict=True) if low <= c < high and chosen[u]]
        beside = [r for r, c, u in zip(rank, count, user, strict=True) if low <= c < high and chance[u]]
        if len(own) >= MIN_WORDS and len(beside) >= MIN_WORDS:
            rows.append((low, len(own), lower_median(own), len(beside), lower_median(beside)))
    return rows


@settings(deadline=None, max_examples=30)
@given(st.integers(0, 2**32 - 1))
def test_bands_hold_what_a_slow_twin_finds(seed):
    rng = np.random.default_rng(seed)
    rank = rng.choice([1.0, 2.0, 5.0, 70.0, np.inf], 400)
    count = rng.choice([0, 1, 9, 10, 99, 100, 20_000], 400)
    user = rng.integers(0, 4, 400)
    chosen, chance = np.array([True, False, False, False]), np.array([False, False, True, True])
    found = build_frequency_table(some_words(rank, count, user), chosen, chance).to_pylist()
    twin = slowly(rank, count, user, chosen, chance)
    assert [(row["written"], row["words"], row["calibration_words"]) for row in found] == [
        (low, own, beside) for low, own, _, beside, _ in twin
    ]
    for row, (_, _, own, _, beside) in zip(found, twin, strict=True):
        for mine, theirs in ((row["rank"], own), (row["calibration_rank"], beside)):
            assert (mine is None) == (theirs is None)
            assert mine is None or np.isclose(mine, theirs)


def test_only_the_target_is_looked_at_and_a_band_with_too_few_words_is_left_out():
    count = [5] * MIN_WORDS + [50] * (MIN_WORDS - 1) + [5] * MIN_WORDS + [50] * MIN_WORDS
    user = [0] * (2 * MIN_WORDS - 1) + [3] * (2 * MIN_WORDS)
    words = some_words([7.0] * (2 * MIN_WORDS - 1) + [9.0] * (2 * MIN_WORDS), count, user)
    (row,) = build_frequency_table(
        words, np.array([True] * 2 + [False] * 2), np.array([False] * 2 + [True] * 2)
    ).to_pylist()
    assert (row["written"], row["words"], row["calibration_words"]) == (1, MIN_WORDS, MIN_WORDS)
    assert np.allclose([row["rank"], row["calibration_rank"]], [7, 9])
