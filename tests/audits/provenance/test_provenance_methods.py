"""The two methods against slow, obvious twins."""

import numpy as np
import pytest
from scipy import stats
from sklearn.svm import LinearSVC

from recollect.audits.provenance.calibrated import PRIOR, Calibrated, Ratios, _log_ratio, _others, quantiles
from recollect.audits.provenance.histogram import Histogram, binned
from recollect.audits.provenance.words import Words
from recollect.errors import NotEnoughData


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


def test_hardness_rests_on_equally_many_unseen_shadows_whether_or_not_the_user_was_in_training():
    rng = np.random.default_rng(3)
    first = rng.random((3, 200)) < 0.5
    saw = np.concatenate([first, ~first])
    for target in range(6):
        others = _others(saw, target)
        assert not others[target].any()
        assert not (others & saw).any()
        assert set(others.sum(axis=0).tolist()) == {2}


def test_ratios_are_shares_of_members_over_shares_of_others():
    counts = np.random.default_rng(4).integers(0, 1000, (2, 3, 5)).astype(float)
    table = _log_ratio(counts)
    for hardness in range(3):
        for rank in range(5):
            shares = []
            for group in counts:
                overall = (group[:, rank].sum() + 1) / (group + 1 / 3).sum()
                shares.append((group[hardness, rank] + PRIOR * overall) / (group[hardness].sum() + PRIOR))
            assert table[hardness, rank] == pytest.approx(np.log(shares[1] / shares[0]))


def memory(rng, saw, users, each, learnt):
    """Words that models find about equally hard; those they saw are easier by a factor."""
    n, models = users * each, len(saw)
    hard = np.exp(rng.uniform(0, 6, n))
    rank = np.maximum(1, np.round(hard * np.exp(rng.normal(0, 0.5, (models, n)))))
    rank = np.where(np.repeat(saw, each, axis=1), np.maximum(1, np.round(rank / learnt)), rank)
    words = made_words(rng, users, models, each)
    return Words(**{**words.__dict__, "log_rank": np.log(rank), "worst": rank})


def learnt_evidence(k, seed=0, learnt=2.0):
    rng = np.random.default_rng(seed)
    half = rng.random((2, 60)) < 0.5
    saw = np.stack([half[0], ~half[0], half[1], ~half[1]])
    trained = memory(rng, saw, 60, 60, learnt)
    members = np.zeros((5, 40), bool)
    members[0, :20] = True
    words = memory(rng, members, 40, 60, learnt)
    return Calibrated.of(words, trained, saw, k=k)


@pytest.mark.parametrize(("k", "least"), [(None, 0.99), (50, 0.98), (5, 0.8), (1, 0.6)])
def test_people_the_target_saw_score_higher_at_any_output_size(k, least):
    scores = learnt_evidence(k).scores(3)
    won = (scores[:20, None] > scores[20:]).mean()
    assert won >= least


def test_better_ranks_are_more_evidence_for_words_of_one_hardness():
    table = Ratios.learnt(*_lesson()[:3], k=None).table[5, :-1]
    assert stats.spearmanr(np.arange(len(table)), table).statistic < -0.7


def _lesson():
    rng = np.random.default_rng(5)
    half = rng.random((2, 60)) < 0.5
    saw = np.stack([half[0], ~half[0], half[1], ~half[1]])
    trained = memory(rng, saw, 60, 100, 2.0)
    return memory(rng, np.zeros((5, 40), bool), 40, 60, 2.0), trained, saw[:, trained.user], None


def test_nothing_is_learnt_from_shadows_that_all_saw_everybody():
    words, trained, saw, _ = _lesson()
    with pytest.raises(NotEnoughData, match="teach nothing"):
        Ratios.learnt(words, trained, np.ones_like(saw), k=None)
