"""A small corpus is read once: every later pass is over the same records."""

from __future__ import annotations

import json
import pickle

import pytest

from recollect.corpora import read_corpus
from recollect.corpora.readers import kept_records
from recollect.errors import CorpusError
from recollect.testing.refusals import refused

ROWS = [{"id": f"r{i}", "user": f"user{i % 3}", "text": f"text {i}", "written": 2000 + i} for i in range(9)]


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "people.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in ROWS))
    return path


def test_a_small_corpus_is_read_once(path):
    corpus = read_corpus(path)
    assert [record.text for record in corpus] == [row["text"] for row in ROWS]
    assert [one is other for one, other in zip(corpus, corpus, strict=True)] == [True] * len(ROWS)


def test_a_larger_corpus_is_read_anew_each_time_and_is_the_same(path, monkeypatch):
    kept = read_corpus(path)
    monkeypatch.setattr(kept_records, "KEPT_BYTES", 3_000)
    read = read_corpus(path)
    assert (list(read), read.summary) == (list(kept), kept.summary)
    assert not any(one is other for one, other in zip(read, read, strict=True))


def test_a_small_corpus_whose_file_has_changed_is_refused(path):
    corpus = read_corpus(path)
    path.write_text(path.read_text() + json.dumps({**ROWS[0], "id": "late"}) + "\n")
    with refused("file_changed", CorpusError):
        list(corpus)


def test_one_more_column_of_a_small_corpus_is_read_from_its_file(path):
    assert [record.extra for record in read_corpus(path).with_column("written")] == [row["written"] for row in ROWS]


def test_records_that_are_kept_do_not_travel_to_a_worker_process(path):
    corpus = read_corpus(path)
    sent = pickle.dumps(corpus)
    assert b"text 3" not in sent
    assert list(pickle.loads(sent)) == list(corpus)  # noqa: S301


def test_a_repeated_id_is_dropped_from_what_is_kept_too(path):
    path.write_text(path.read_text() + json.dumps(ROWS[0]) + "\n")
    corpus = read_corpus(path, skip_bad=True)
    assert (len(list(corpus)), dict(corpus.skipped)) == (len(ROWS), {"duplicate_id": 1})
