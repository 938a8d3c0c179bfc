"""The two methods against slow, obvious twins."""

import math
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
from scipy import stats
from sklearn.svm import LinearSVC

from recollect.audits.provenance import calibrated
from recollect.audits.provenance.calibrated import ASPECT, CalibratedScorer, compute_quantiles, group_similar_words
from recollect.audits.provenance.histogram import Histogram, find_histogram_bins
from recollect.audits.provenance.word_alignment import WordRanks
from recollect.errors import NotEnoughData
from recollect.testing.refusals import refused


def made_words(rng, users, models=1, each=30, texts=3):
    """Words with random ranks."""
    n = users * each
    rank = rng.integers(1, 200, size=(models, n)).astype(float)
    return WordRanks(
        users=tuple(f"u{i:03}" for i in range(users)),
        user=np.repeat(np.arange(users), each),
        text=np.tile(np.arange(each) % texts, users),
        texts=np.full(users, texts),
        log_rank=np.log(rank),
        max_rank=rank,
        frequency=rng.integers(0, 9, n),
        unknown=np.zeros(users, np.int64),
        incomplete=np.zeros(users, np.int64),
    )


@pytest.mark.parametrize(("k", "most"), [(None, 3), (None, 1), (50, 2), (5, 3), (1, 3)])
def test_histograms_agree_with_counting_by_hand(k, most):
    words = made_words(np.random.default_rng(0), 4)
    machine = Histogram(words=words, shadows=[], vocabulary=200, k=k, bins=20)
    bins = 20 if k is None else min(20, k)
    expected = np.zeros((4, bins + 1))
    for user, text, rank in zip(words.user, words.text, words.max_rank[0], strict=True):
        if text >= most:
            continue
        if k is not None and rank > k:
            expected[user, bins] += 1
        else:
            expected[user, int((rank - 1) // ((200 if k is None else k) / bins))] += 1
    np.testing.assert_array_equal(machine._count_ranks(words, words.text < most), expected)


def test_the_last_rank_is_not_dropped_and_what_is_not_shown_has_its_own_place():
    assert find_histogram_bins(np.array([1.0, 1000, 2000, np.inf]), 10, 1000).tolist() == [0, 9, 9, 10]


def test_shadows_that_saw_everybody_they_are_scored_about_teach_nothing():
    rng = np.random.default_rng(1)
    words, shadow = made_words(rng, 5), made_words(rng, 40)
    machine = Histogram(words=words, shadows=[(shadow, np.ones(40, bool))], vocabulary=200, k=None)
    with refused("one_sided_shadows", NotEnoughData):
        machine.score_users(3)


def test_plain_counts_are_what_the_paper_prints():
    rng = np.random.default_rng(1)
    words, shadow = made_words(rng, 5), made_words(rng, 40)
    saw = np.arange(40) % 2 == 0
    machine = Histogram(words=words, shadows=[(shadow, saw)], vocabulary=200, k=None, bins=10, features="counts")
    plain = LinearSVC(random_state=0, max_iter=10_000, dual="auto").fit(
        machine._count_ranks(shadow, shadow.text < 3), saw
    )
    np.testing.assert_allclose(
        machine.score_users(3), plain.decision_function(machine._count_ranks(words, words.text < 3))
    )


def test_quantiles_are_mid_ranks():
    values = np.random.default_rng(2).integers(0, 9, 50).astype(float)
    np.testing.assert_allclose(compute_quantiles(values), (stats.rankdata(values) - 0.5) / 50)


def memory(seed, learnt=2.0, users=40, each=60, models=5):
    """Words that are about equally hard for all models; the first one knows those of the first half of users."""
    rng, n = np.random.default_rng(seed), users * each
    hard = np.exp(rng.uniform(0, 6, n))
    rank = np.maximum(1, np.round(hard * np.exp(rng.normal(0, 0.5, (models, n)))))
    words = made_words(rng, users, models, each)
    rank[0] = np.where(words.user < users // 2, np.maximum(1, np.round(rank[0] / learnt)), rank[0])
    return replace(words, log_rank=np.log(rank), max_rank=rank)


@pytest.mark.parametrize(("k", "least"), [(None, 0.99), (50, 0.98), (5, 0.8), (1, 0.6)])
def test_people_the_target_saw_score_higher_at_any_output_size(k, least):
    scores = CalibratedScorer(memory(0), k).score_users(3)
    won = (scores[:20, None] > scores[20:]).mean()
    assert won >= least


@pytest.mark.parametrize("k", [None, 5])
def test_evidence_agrees_with_the_slow_way(k, monkeypatch):
    monkeypatch.setattr(calibrated, "WORDS_EACH", 10)
    words = memory(1, users=4, each=30, models=3)

    def quantile(values, place):
        return sum((v < values[place]) + 0.5 * (v == values[place]) for v in values) / len(values)

    def of(model, word, limit):
        return quantile([r if limit is None or r <= limit else math.inf for r in words.max_rank[model].tolist()], word)

    n = len(words)
    hardness = [np.mean([of(1, i, None), of(2, i, None)]) for i in range(n)]
    better = [np.mean([of(1, i, k), of(2, i, k)]) - of(0, i, k) for i in range(n)]
    rows = int((ASPECT * n / 10) ** 0.5)
    columns = int(n / 10 / rows)
    assert min(rows, columns) > 1
    row = [min(rows - 1, int(quantile(words.frequency.tolist(), i) * rows)) for i in range(n)]
    group = []
    for i in range(n):
        peers = [j for j in range(n) if row[j] == row[i]]
        place = quantile([hardness[j] for j in peers], peers.index(i))
        group.append((row[i], min(columns - 1, int(place * columns))))
    found = CalibratedScorer(words, k).evidence
    for i in range(n):
        usual = np.mean([b for b, g in zip(better, group, strict=True) if g == group[i]])
        assert found[i] == pytest.approx((better[i] - usual) * hardness[i])


def test_words_that_are_equally_frequent_and_hard_are_compared_with_each_other():
    rng = np.random.default_rng(4)
    frequency, hardness = rng.integers(0, 30, 5000).astype(float), rng.integers(0, 7, 5000).astype(float)
    group = group_similar_words(frequency, hardness)
    for pair in set(zip(frequency, hardness, strict=True)):
        assert len(set(group[(frequency == pair[0]) & (hardness == pair[1])])) == 1
    assert len(set(group)) > 40


def test_a_habit_of_the_target_is_no_evidence():
    """A target that says frequent words first, whoever wrote them, accuses nobody who writes many of them."""
    words = memory(5, learnt=1.0, users=200)
    share = np.random.default_rng(5).random(200)
    frequent = np.random.default_rng(6).random(len(words)) < share[words.user]
    rank = words.max_rank.copy()
    rank[0] = np.where(frequent, 1, rank[0])
    habit = replace(words, max_rank=rank, log_rank=np.log(rank), frequency=np.where(frequent, 9, 1))
    for k in (None, 5, 1):
        assert abs(stats.spearmanr(CalibratedScorer(habit, k).score_users(3), share).statistic) < 0.25


def test_people_with_hard_words_score_no_higher_for_it():
    words = memory(2, learnt=1.0, users=200)
    hardness = np.bincount(words.user, weights=words.log_rank[1:].mean(axis=0))
    for k in (None, 5, 1):
        assert abs(stats.spearmanr(CalibratedScorer(words, k).score_users(3), hardness).statistic) < 0.25


def test_how_wide_the_ranks_of_a_model_are_spread_does_not_matter():
    words = memory(3)
    stretched = words.max_rank * np.array([[1.0], [3.0], [1.0], [7.0], [2.0]])
    other = replace(words, log_rank=np.log(stretched), max_rank=stretched)
    np.testing.assert_allclose(
        CalibratedScorer(words, None).score_users(3), CalibratedScorer(other, None).score_users(3)
    )


def test_words_before_a_word_in_its_text_are_counted_as_by_hand():
    words = made_words(np.random.default_rng(1), 5)
    seen = Counter()
    for user, text, place in zip(words.user, words.text, words.place, strict=True):
        assert place == seen[user, text]
        seen[user, text] += 1
