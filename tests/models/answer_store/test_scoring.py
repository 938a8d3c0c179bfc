"""Asking: only what is new, each content once, block by block, whatever happens in between."""

from __future__ import annotations

import json
import os
import pickle
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pytest

from recollect.corpora.corpus import Corpus
from recollect.corpora.record import Record
from recollect.errors import ModelError
from recollect.execution.backend import attempt
from recollect.execution.local import LocalBackend
from recollect.models.access import Access
from recollect.models.answer_store import scoring
from recollect.models.answer_store.scoring import MAX_FAILURES_BEFORE_SUCCESS, score_corpus
from recollect.models.answer_store.shards import read_threads
from recollect.models.answers import Answers
from recollect.models.limited import limited, weaken
from recollect.models.model import Question
from recollect.testing.fakes import Null
from recollect.testing.refusals import refused

RECORDS = [Record(id=str(i), user=str(i % 5), text=f"message {i} to number {i % 9}") for i in range(100)]


@dataclass
class Watched:
    """A model that remembers what it was asked, and refuses some records."""

    refuses: frozenset[str] = frozenset()
    asked: list[list[str]] = field(default_factory=list)
    budgets: list[int] = field(default_factory=list)
    budget: int = 4096
    name: str = "watched"
    kind: str = "causal"
    digest: str = "d" * 32
    question: Question = field(default_factory=Question)
    access: Access = Access.PROBABILITIES

    def answer(self, records: Sequence[Record]) -> Answers:
        self.asked.append([record.id for record in records])
        self.budgets.append(self.budget)
        self.budget //= 2  # as if memory had run out
        refused = self.refuses & {record.id for record in records}
        if refused:
            raise ModelError(f"I will not speak of {min(refused)}.", do="Ask somebody else.")
        return Null().answer(records)


def contents(folder: Path) -> dict[str, bytes]:
    """All files of a store."""
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def test_only_records_that_were_not_answered_are_scored(tmp_path):
    model = Watched()
    score_corpus(model, Corpus.of(RECORDS[:30]), tmp_path, block=10)
    score_corpus(model, Corpus.of(RECORDS[20:45]), tmp_path)
    assert [len(block) for block in model.asked] == [10, 10, 10, 10, 5]
    assert model.asked[3][0] == "30"
    store = score_corpus(model, Corpus.of(RECORDS[:45]), tmp_path)
    assert len(model.asked) == 5
    assert len(store) == 45


def test_a_content_that_comes_again_is_scored_once(tmp_path):
    twice = [*RECORDS[:5], Record(id="again", user="other", text=RECORDS[2].text), *RECORDS[5:8]]
    model = Watched()
    store = score_corpus(model, Corpus.of(twice), tmp_path)
    assert model.asked == [["0", "1", "2", "3", "4", "5", "6", "7"]]
    assert len(store.get_answers(twice)) == 8


def test_blocks_follow_the_corpus_whatever_was_answered_before(tmp_path):
    whole = score_corpus(Watched(), Corpus.of(RECORDS), tmp_path / "whole", block=7)
    with refused("scoring_failed"):
        score_corpus(Watched(refuses=frozenset({"16", "50"})), Corpus.of(RECORDS), tmp_path / "parts", block=7)
    model = Watched()
    parts = score_corpus(model, Corpus.of(RECORDS), tmp_path / "parts", block=7)
    assert model.asked == [[str(i) for i in range(14, 21)], [str(i) for i in range(49, 56)]]
    assert contents(parts.folder) == contents(whole.folder)


def test_failures_are_reported_together_after_all_others_were_kept(tmp_path):
    model = Watched(refuses=frozenset({"16", "50", "99"}))
    with refused("scoring_failed") as refusal:
        score_corpus(model, Corpus.of(RECORDS), tmp_path, block=7)
    for named in ("'watched'", "16 of 100", *(f"I will not speak of {i}." for i in (16, 50, 99))):
        assert named in refusal.error.found
    for named in ("Ask somebody else.", "84 of 100"):
        assert named in refusal.error.do
    assert "I will not speak of 16" in refusal.error.__notes__[0]
    assert "Traceback" in refusal.error.__notes__[0]


def test_a_model_that_always_fails_is_soon_left_alone(tmp_path):
    model = Watched(refuses=frozenset(record.id for record in RECORDS))
    with refused("scoring_failed") as refusal:
        score_corpus(model, Corpus.of(RECORDS), tmp_path, block=2)
    assert "100 of 100" in refusal.error.found
    assert len(model.asked) == MAX_FAILURES_BEFORE_SUCCESS


def test_progress_counts_distinct_records_and_begins_where_the_last_run_ended(tmp_path):
    said: list[tuple[int, int]] = []
    score_corpus(Null(), Corpus.of(RECORDS[:30]), tmp_path, block=20)
    score_corpus(
        Null(), Corpus.of([*RECORDS, *RECORDS]), tmp_path, progress=lambda done, total, note: said.append((done, total))
    )
    assert said == [(30, 100), (50, 100), (70, 100), (90, 100), (100, 100)]


def test_every_block_has_the_budget_of_the_first_run(tmp_path):
    first = Watched(budget=512)
    score_corpus(first, Corpus.of(RECORDS[:20]), tmp_path, block=10)
    later = Watched(budget=64)
    score_corpus(later, Corpus.of(RECORDS), tmp_path)
    assert set(first.budgets + later.budgets) == {512}


def test_every_run_has_the_threads_that_it_is_given_and_its_shards_note_them(tmp_path):
    import torch

    seen = []

    class Counting(Watched):
        def answer(self, records):
            seen.append((os.environ["OMP_NUM_THREADS"], torch.get_num_threads()))
            return super().answer(records)

    score_corpus(Counting(), Corpus.of(RECORDS[:10]), tmp_path, backend=LocalBackend(threads=2), block=5)
    store = score_corpus(Counting(), Corpus.of(RECORDS[:20]), tmp_path, backend=LocalBackend(threads=1))
    assert seen == [("2", 2), ("2", 2), ("1", 1), ("1", 1)]
    assert sorted(read_threads(path) for path in store.folder.glob("*.parquet")) == [(1,), (1,), (2,), (2,)]
    assert "threads" not in json.loads((store.folder / "manifest.json").read_text())


def test_a_model_that_has_learnt_to_step_keeps_its_store(tmp_path):
    score_corpus(Watched(), Corpus.of(RECORDS), tmp_path)
    model = Watched(access=Access.FULL)
    score_corpus(model, Corpus.of(RECORDS), tmp_path)
    assert model.asked == []


def test_a_limited_model_is_requested_all_it_could_show_and_once(tmp_path):
    model = Watched()
    stores = {k: score_corpus(limited(model, Access.top(k)), Corpus.of(RECORDS), tmp_path) for k in (1, 5, 50)}
    assert len(model.asked) == 1
    for k, store in stores.items():
        assert np.array_equal(store.get_answers(RECORDS).rank, weaken(Null().answer(RECORDS), Access.top(k)).rank)
        assert store.get_answers(RECORDS).logprob is None
    assert score_corpus(model, Corpus.of(RECORDS), tmp_path).get_answers(RECORDS).logprob is not None


def test_a_least_probability_is_a_way_of_reading_too(tmp_path):
    store = score_corpus(limited(Null(), Access.PROBABILITIES, min_probability=0.1), Corpus.of(RECORDS), tmp_path)
    assert np.nanmin(np.exp(store.get_answers(RECORDS).logprob)) >= 0.1


def test_a_model_may_be_given_as_a_way_to_load_it(tmp_path):
    loads = []

    def load():
        loads.append(1)
        return Null()

    assert len(score_corpus(load, Corpus.of(RECORDS), tmp_path)) == 100
    assert len(loads) == 1


@dataclass(frozen=True)
class ByPost:
    """Two workers in this process: work, items and outcomes are pickled, as if they went from process to process."""

    workers: int = 2
    threads: int = 1
    in_process: bool = False

    def hold(self, folder, *, purpose):
        return nullcontext()

    def map(self, work, items, *, threads=None):
        mine, yours = (pickle.loads(pickle.dumps(work)) for _ in range(2))  # noqa: S301 - what multiprocessing does
        for i, item in enumerate(items):
            outcome = attempt(yours if i % 2 else mine, pickle.loads(pickle.dumps(item)))  # noqa: S301
            yield pickle.loads(pickle.dumps(outcome))  # noqa: S301


@pytest.mark.parametrize(
    "workers",
    [ByPost(), pytest.param(LocalBackend(workers=2, threads=1), marks=pytest.mark.slow)],
    ids=["by-post", "spawned"],
)
def test_two_workers_write_the_same_bytes_as_one(workers, tmp_path):
    model = limited(Null(), Access.LABEL)
    one = score_corpus(model, Corpus.of(RECORDS), tmp_path / "one", backend=LocalBackend(threads=1), block=7)
    two = score_corpus(model, Corpus.of(RECORDS), tmp_path / "two", backend=workers, block=7)
    assert contents(one.folder) == contents(two.folder)
    assert len(contents(one.folder)) == 15 + 2
    assert np.array_equal(two.get_answers(RECORDS).rank, weaken(Null().answer(RECORDS), Access.LABEL).rank)


def test_answers_about_other_records_are_refused(tmp_path):
    class Confused(Watched):
        def answer(self, records):
            return super().answer(records[::-1])

    with refused("scoring_failed") as refusal:
        score_corpus(Confused(), Corpus.of(RECORDS), tmp_path)
    assert refusal.error.__cause__.code == "answers_out_of_order"


def test_unsound_answers_are_refused(tmp_path):
    with refused("scoring_failed") as refusal:
        score_corpus(Watched(access=Access.RANKS), Corpus.of(RECORDS), tmp_path)
    assert refusal.error.__cause__.code == "column_not_shown"


def test_an_empty_corpus_makes_an_empty_store(tmp_path):
    assert len(score_corpus(Null(), Corpus.of([]), tmp_path)) == 0


@pytest.mark.parametrize("size", [0, 1, 2, 7, 50, 300])
@pytest.mark.parametrize("piece", [1, 3, 16])
def test_records_to_score_are_found_piece_by_piece_as_all_at_once(monkeypatch, size, piece):
    monkeypatch.setattr(scoring, "SORTED_PIECE", piece)
    digests = np.random.default_rng(size).integers(0, 40, size).astype("S16")

    class Store:
        def contains(self, asked):
            return np.array([int(each) % 3 == 0 for each in asked], dtype=np.bool_)

    distinct, first = np.unique(digests, return_index=True)
    expected = np.zeros(size, dtype=np.bool_)
    expected[first[~Store().contains(distinct)]] = True
    missing, count = scoring._find_unscored(digests, Store())
    assert (missing.tolist(), count) == (expected.tolist(), len(distinct))
