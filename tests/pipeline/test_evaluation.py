"""Evaluation equals sums over all tokens, and its intervals cover the truth."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from recollect.corpora import Corpus, Record
from recollect.errors import NotEnoughData
from recollect.models.answers import Answers
from recollect.pipeline.evaluation import evaluate
from recollect.streams import stream


class Store:
    """Answers that were given beforehand, one block per record."""

    def __init__(self, table: dict[str, Answers]) -> None:
        self._table = table

    def iter_blocks(self, records):
        for record in records:
            yield [record], self._table[record.digest]


def answers_of(record: Record, logprobs: list[float], ranks: list[int], first: int = 0) -> Answers:
    rows = len(ranks)
    places = np.arange(first, first + rows, dtype=np.int32)
    return Answers(
        records=(record.digest,),
        offsets=np.array([0, rows]),
        pattern=np.zeros(rows, np.int32),
        position=places,
        start=places,
        end=places + 1,
        known=np.array(ranks) != 9,
        rank=np.array(ranks, np.int32),
        logprob=np.array(logprobs, np.float32),
        entropy=None,
        logprob_std=None,
    )


def world(users: int, seed: int, quality: float = 0.5):
    rng = stream(seed, "world")
    records, table = [], {}
    for user in range(users):
        ability = np.clip(quality + 0.2 * rng.standard_normal(), 0.05, 0.95)
        for i in range(3):
            length = int(rng.integers(9, 15))
            record = Record(
                id=f"{user}-{i}", user=str(user), text=f"{seed}{user:03}{i}".ljust(length + 1, "x")[: length + 1]
            )
            records.append(record)
            hits = (rng.random(length) < ability).tolist()
            table[record.digest] = answers_of(
                record, [-0.1 if h else -3.0 for h in hits], [1 if h else 7 for h in hits], 1
            )
    return Corpus.of(records), Store(table), table


def test_the_numbers_are_plain_sums_over_all_tokens():
    corpus, store, table = world(5, 0)
    found = evaluate(store, corpus)
    rank = np.concatenate([a.rank for a in table.values()])
    logprob = np.concatenate([a.logprob for a in table.values()]).astype(np.float64)
    characters = sum(len(record.text) - 1 for record in corpus)
    assert found["accuracy"].value == pytest.approx((rank == 1).mean())
    assert found["perplexity"].value == pytest.approx(math.exp(-logprob.mean()))
    assert found["bits_per_character"].value == pytest.approx(-logprob.sum() / math.log(2) / characters)
    assert found["accuracy"].n == {"tokens": len(rank), "users": 5}


def test_a_model_that_hides_some_probabilities_has_no_perplexity():
    corpus, store, table = world(5, 0)
    hidden = next(iter(table.values()))
    hidden.logprob[0] = np.nan
    assert {*evaluate(store, corpus)} == {"accuracy", "unknown_share"}


def test_a_single_owner_has_no_interval_and_it_says_why():
    record = Record(id="a", user="ann", text="abc")
    found = evaluate(Store({record.digest: answers_of(record, [-1.0, -1.0], [1, 2])}), Corpus.of([record]))
    assert found["accuracy"].value == 0.5
    assert found["accuracy"].interval is None
    assert "users" in found["accuracy"].why_no_interval


def test_intervals_of_two_and_three_users_cover_the_true_accuracy_as_often_as_they_claim():
    for users in (2, 3):
        covered = given = 0
        for seed in range(200):
            corpus, store, _ = world(users, seed)
            interval = evaluate(store, corpus)["accuracy"].interval
            given += interval is not None
            covered += interval is not None and 0.5 in interval
        assert given > 150
        assert stats.binomtest(covered, given, 0.95, alternative="less").pvalue > 1e-3


def test_a_corpus_without_predictions_is_refused():
    record = Record(id="a", text="a")
    with pytest.raises(NotEnoughData):
        evaluate(Store({record.digest: answers_of(record, [], [])}), Corpus.of([record]))


def test_intervals_by_user_cover_the_true_accuracy_as_often_as_they_claim():
    truth = np.mean(
        [np.mean(np.concatenate([a.rank for a in world(400, 1000 + s)[2].values()]) == 1) for s in range(8)]
    )
    covered = 0
    for seed in range(100):
        corpus, store, _ = world(20, seed)
        covered += truth in evaluate(store, corpus)["accuracy"].interval
    assert stats.binomtest(covered, 100, 0.95, alternative="less").pvalue > 1e-3
