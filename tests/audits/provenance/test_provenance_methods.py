"""The two methods against slow, obvious twins."""

import math

import numpy as np
import pytest
from scipy import stats
from sklearn.svm import LinearSVC

from recollect.audits.provenance.calibrated import HARDNESS_BINS, Calibrated, quantiles
from recollect.audits.provenance.histogram import Histogram, binned
from recollect.audits.provenance.words import Words


def made_words(rng, users, models=1, each=30, texts=3):
    """Words with random ranks."""
    n = users * each
    rank = rng.integers(1, 200, size=(models, n)).astype(float)
    return Words(
        users=tuple(f"u{i:03}" for i in range(users)),
        user=np.repeat(np.arange(users), each),
        text=np.tile(np.arange(each) % texts, users),
        texts=np.full(users, texts),
        log_rank=np.log(rank),
        worst=rank,
        unknown=np.zeros(users, np.int64),
        ragged=np.zeros(users, np.int64),
    )


@pytest.mark.parametrize(("k", "most"), [(None, 3), (None, 1), (50, 2), (5, 3), (1, 3)])
def test_histograms_agree_with_counting_by_hand(k, most):
    words = made_words(np.random.default_rng(0), 4)
    machine = Histogram(words=words, shadows=[], vocabulary=200, k=k, bins=20)
    bins = 20 if k is None else min(20, k)
    expected = np.zeros((4, bins + 1))
    for user, text, rank in zip(words.user, words.text, words.worst[0], strict=True):
        if text >= most:
            continue
        if k is not None and rank > k:
            expected[user, bins] += 1
        else:
            expected[user, int((rank - 1) // ((200 if k is None else k) / bins))] += 1
    np.testing.assert_array_equal(machine._features(words, most), expected)


def test_the_last_rank_is_not_dropped_and_what_is_not_shown_has_its_own_place():
    assert binned(np.array([1.0, 1000, 2000, np.inf]), 10, 1000).tolist() == [0, 9, 9, 10]


def test_plain_counts_are_what_the_paper_prints():
    rng = np.random.default_rng(1)
    words, shadow = made_words(rng, 5), made_words(rng, 40)
    saw = np.arange(40) % 2 == 0
    machine = Histogram(words=words, shadows=[(shadow, saw)], vocabulary=200, k=None, bins=10, features="counts")
    plain = LinearSVC(random_state=0, max_iter=10_000, dual="auto").fit(machine._features(shadow, 3), saw)
    np.testing.assert_allclose(machine.scores(3), plain.decision_function(machine._features(words, 3)))


def test_quantiles_are_mid_ranks():
    values = np.random.default_rng(2).integers(0, 9, 50).astype(float)
    np.testing.assert_allclose(quantiles(values, values), (stats.rankdata(values) - 0.5) / 50)


def memory(seed, learnt=2.0, users=40, each=60, models=5):
    """Words that are about equally hard for all models; the first one knows those of the first half of users."""
    rng, n = np.random.default_rng(seed), users * each
    hard = np.exp(rng.uniform(0, 6, n))
    rank = np.maximum(1, np.round(hard * np.exp(rng.normal(0, 0.5, (models, n)))))
    words = made_words(rng, users, models, each)
    rank[0] = np.where(words.user < users // 2, np.maximum(1, np.round(rank[0] / learnt)), rank[0])
    return Words(**{**words.__dict__, "log_rank": np.log(rank), "worst": rank})


@pytest.mark.parametrize(("k", "least"), [(None, 0.99), (50, 0.98), (5, 0.8), (1, 0.6)])
def test_people_the_target_saw_score_higher_at_any_output_size(k, least):
    scores = Calibrated(memory(0), k).scores(3)
    won = (scores[:20, None] > scores[20:]).mean()
    assert won >= least


@pytest.mark.parametrize("k", [None, 5])
def test_evidence_agrees_with_the_slow_way(k):
    words = memory(1, users=4, each=30, models=3)

    def quantile(ranks, word):
        shown = [rank if k_ is None or rank <= k_ else math.inf for rank, k_ in ranks]
        return sum((r < shown[word]) + 0.5 * (r == shown[word]) for r in shown) / len(shown)

    def of(model, word, limit):
        return quantile([(rank, limit) for rank in words.worst[model]], word)

    n = len(words)
    hardness = [np.mean([of(1, i, None), of(2, i, None)]) for i in range(n)]
    better = [np.mean([of(1, i, k), of(2, i, k)]) - of(0, i, k) for i in range(n)]
    place = [quantile([(h, None) for h in hardness], i) for i in range(n)]
    group = [min(HARDNESS_BINS - 1, int(p * HARDNESS_BINS)) for p in place]
    for i in range(n):
        usual = np.mean([b for b, g in zip(better, group, strict=True) if g == group[i]])
        assert Calibrated(words, k).evidence[i] == pytest.approx((better[i] - usual) * hardness[i])


def test_people_with_hard_words_score_no_higher_for_it():
    words = memory(2, learnt=1.0, users=200)
    hardness = np.bincount(words.user, weights=words.log_rank[1:].mean(axis=0))
    for k in (None, 5, 1):
        assert abs(stats.spearmanr(Calibrated(words, k).scores(3), hardness).statistic) < 0.25


def test_how_wide_the_ranks_of_a_model_are_spread_does_not_matter():
    words = memory(3)
    stretched = words.worst * np.array([[1.0], [3.0], [1.0], [7.0], [2.0]])
    other = Words(**{**words.__dict__, "log_rank": np.log(stretched), "worst": stretched})
    np.testing.assert_allclose(Calibrated(words, None).scores(3), Calibrated(other, None).scores(3))
